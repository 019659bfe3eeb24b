#include "runtime/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "runtime/config.h"
#include "runtime/status.h"
#include "test_device.h"

namespace npu::testing {
namespace {

// The runtime of a process is initialised once, so each case runs in a process of its own; 0 = every check held.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("NPU_SIM_MEMORY", "64M", 1);
    bool good = false;
    try {
      good = body();
    } catch (const std::exception& error) {
      fprintf(stderr, "child: %s\n", error.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(DeviceTest, CountingDevicesInitialisesNothing) {
  EXPECT_EQ(in_child([] { return device_count() == 2 && current_device() == 0 && !is_initialized(); }), 0);
}

TEST(DeviceTest, VisibleDevicesAreRenumbered) {
  EXPECT_EQ(in_child([] {
              setenv("NPU_VISIBLE_DEVICES", "1", 1);
              return device_count() == 1 && primary_context(0).ordinal() == 1 && primary_context(0).device() == 0;
            }),
            0);
}

TEST(DeviceTest, AVisibleDeviceThatDoesNotExistIsAnError) {
  EXPECT_EQ(in_child([] {
              setenv("NPU_VISIBLE_DEVICES", "0,5", 1);
              return code_of([] { device_count(); }) == ErrorCode::kInvalidArgument;
            }),
            0);
}

TEST(DeviceTest, BadDevicesAreRefused) {
  EXPECT_EQ(in_child([] {
              return code_of([] { set_device(2); }) == ErrorCode::kInvalidDevice &&
                     code_of([] { set_device(-3); }) == ErrorCode::kInvalidDevice &&
                     code_of([] { primary_context(7); }) == ErrorCode::kInvalidDevice && !has_primary_context(0);
            }),
            0);
}

TEST(DeviceTest, DeviceAndStreamBelongToTheThread) {
  EXPECT_EQ(in_child([] {
              set_device(1);
              Stream& side = primary_context(1).pool_stream();
              exchange_stream(side);
              bool other_thread_sees_defaults = false;
              std::thread([&] {
                other_thread_sees_defaults =
                    current_device() == 0 && &current_stream(1) == &primary_context(1).default_stream();
              }).join();
              return other_thread_sees_defaults && current_device() == 1 && &current_stream(1) == &side;
            }),
            0);
}

TEST(DeviceTest, AGuardRestoresTheDevice) {
  EXPECT_EQ(in_child([] {
              {
                DeviceGuard guard(1);
                if (current_device() != 1) return false;
              }
              return current_device() == 0;
            }),
            0);
}

TEST(DeviceTest, AForkedChildOfAnInitialisedProcessIsRefused) {
  EXPECT_EQ(in_child([] {
              primary_context(0);
              return in_child([] {
                       return in_bad_fork() && !is_initialized() &&
                              code_of([] { primary_context(0); }) == ErrorCode::kInvalidState;
                     }) == 0;
            }),
            0);
}

TEST(DeviceTest, AForkBeforeInitialisationWorks) {
  EXPECT_EQ(in_child([] {
              device_count();
              return in_child([] {
                       current_stream(0).synchronize();
                       return is_initialized();
                     }) == 0;
            }),
            0);
}

TEST(DeviceTest, ShutdownAbandonsWhatDoesNotEnd) {
  EXPECT_EQ(in_child([] {
              setenv("NPU_EXIT_TIMEOUT_S", "0.05", 1);
              Signal& never = driver().create_signal();
              current_stream(0).wait_value(never, 1);
              shutdown();
              shutdown();
              return true;
            }),
            0);
}

}  // namespace
}  // namespace npu::testing
