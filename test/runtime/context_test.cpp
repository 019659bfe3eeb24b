#include "runtime/context.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "test_device.h"

namespace npu::testing {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(ContextTest, ATaskErrorIsReportedOnceByAnyStreamOfTheDevice) {
  TestDevice device;
  Stream& failing = device.stream();
  Stream& other = device.stream();
  failing.launch(kFail, 0);
  while (!failing.query()) std::this_thread::yield();
  const std::string message = error_of([&] { other.synchronize(); });
  EXPECT_NE(message.find("test::fail failed on npu:0"), std::string::npos) << message;
  EXPECT_NE(message.find("index 7 is out of range"), std::string::npos);
  EXPECT_NE(message.find("stream " + std::to_string(failing.id())), std::string::npos);
  EXPECT_NO_THROW(failing.synchronize());
}

TEST(ContextTest, ErrorsNameTheOperands) {
  TestDevice device;
  Stream& stream = device.stream();
  static const TaskInfo fails{.name = "test::fails",
                              .run = [](const TaskContext&, const void*) { throw std::runtime_error("broken"); },
                              .visit = kStore.visit};
  DeviceInt value(device.context, 0);
  stream.launch(fails, StoreArguments{value.address(), 1});
  const std::string message = error_of([&] { stream.synchronize(); });
  EXPECT_NE(message.find("address int64[1] at 0x"), std::string::npos) << message;
}

TEST(ContextTest, LaterTasksGoOnAfterAnError) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  stream.launch(kFail, 0);
  stream.launch(kStore, StoreArguments{value.address(), 1});
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_EQ(value.read(), 1);
}

TEST(ContextTest, FailureModeStopSkipsUntilResumed) {
  TestDevice device;
  Stream& stream = device.stream();
  stream.set_failure_mode(FailureMode::kStop);
  DeviceInt value(device.context, 0);
  stream.launch(kFail, 0);
  stream.launch(kStore, StoreArguments{value.address(), 1});
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_EQ(value.read(), 0);
  stream.resume();
  stream.launch(kStore, StoreArguments{value.address(), 2});
  stream.synchronize();
  EXPECT_EQ(value.read(), 2);
}

TEST(ContextTest, ErrorsOfOneDeviceDoNotTouchAnother) {
  SimDriver driver(small_device());
  Context first(driver, 0, 0), second(driver, 1, 1);
  first.default_stream().launch(kFail, 0);
  while (!first.default_stream().query()) std::this_thread::yield();
  EXPECT_NO_THROW(second.synchronize());
  EXPECT_THROW(first.synchronize(), Error);
}

TEST(ContextTest, LaunchBlockingRethrowsTheTasksOwnException) {
  TestDevice device(small_device(), {.launch_blocking = true});
  Stream& stream = device.stream();
  EXPECT_THROW(stream.launch(kFail, 0), std::out_of_range);
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(ContextTest, ALostDeviceRefusesWorkUntilReset) {
  TestDevice device;
  Stream& stream = device.stream();
  device.context.mark_lost("test");
  EXPECT_THROW(stream.launch(kStore, StoreArguments{nullptr, 1}), Error);
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_THROW(stream.synchronize(), Error);
  device.context.reset();
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(ContextTest, PoolStreamsAreReusedRoundRobinAndNeverTheDefaultStream) {
  TestDevice device;
  std::set<StreamId> ids;
  Stream* first = &device.context.pool_stream();
  ids.insert(first->id());
  for (int i = 1; i < Context::kPoolStreams; ++i) ids.insert(device.context.pool_stream().id());
  EXPECT_EQ(ids.size(), static_cast<size_t>(Context::kPoolStreams));
  EXPECT_FALSE(ids.contains(0));
  EXPECT_EQ(&device.context.pool_stream(), first);
  EXPECT_EQ(device.context.pool_stream(-100).priority(), kGreatestPriority);
  EXPECT_EQ(device.context.pool_stream(100).priority(), kLeastPriority);
  EXPECT_THROW(device.context.destroy_stream(*first), Error);
}

TEST(ContextTest, AnUnknownAddressFailsTheTaskByName) {
  TestDevice device;
  static int64_t host_value;
  Stream& stream = device.stream();
  stream.launch(kStore, StoreArguments{&host_value, 1});
  const std::string message = error_of([&] { stream.synchronize(); });
  EXPECT_NE(message.find("neither device memory nor pinned host memory"), std::string::npos) << message;
}

}  // namespace
}  // namespace npu::testing
