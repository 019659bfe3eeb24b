// A host thread that waits helps to execute, but stays the caller's: it keeps deadlines and hears signals.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "runtime/blocking.h"
#include "test_device.h"

namespace npu::testing {
namespace {

struct WaitArguments {
  std::atomic<bool>* started;
  std::atomic<bool>* released;
};
const TaskInfo kBusy{
    .name = "test::busy",
    .run =
        [](const TaskContext&, const void* arguments) {
          const auto& wait = *static_cast<const WaitArguments*>(arguments);
          *wait.started = true;
          while (!*wait.released) std::this_thread::yield();
        },
    .flags = 0,
};
struct CountArguments {
  std::atomic<int>* count;
};
const TaskInfo kCount{
    .name = "test::count",
    .run = [](const TaskContext&, const void* arguments) { ++*static_cast<const CountArguments*>(arguments)->count; },
};

SimOptions one_worker() {
  SimOptions options = small_device();
  options.workers = 1;
  return options;
}

// A clock on which every look takes longer than a host helps without looking for signals.
class HurriedClock final : public Clock {
 public:
  int64_t now_ns() const noexcept override { return time_ns_.fetch_add(100'000'000); }

 private:
  mutable std::atomic<int64_t> time_ns_{0};
};

// A device whose only worker is busy until the test releases it, so that whatever else runs is run by hosts.
class HostHelpTest : public ::testing::Test {
 protected:
  void occupy_worker(Context& context) {
    context.create_stream().launch(kBusy, WaitArguments{&started_, &released_});
    while (!started_) std::this_thread::yield();
  }
  void TearDown() override {
    released_ = true;
    set_blocking_hooks({});
  }

  std::atomic<bool> started_{false};
  std::atomic<bool> released_{false};
  std::atomic<int> count_{0};
};

TEST_F(HostHelpTest, AWaitingHostRunsTheTasksItWaitsFor) {
  TestDevice device(one_worker());
  occupy_worker(device.context);
  Stream& stream = device.stream();
  for (int i = 0; i < 3; ++i) stream.launch(kCount, CountArguments{&count_});
  stream.synchronize();
  EXPECT_EQ(count_, 3);
  released_ = true;
}

TEST_F(HostHelpTest, AWaitWithADeadlineStartsNoTaskItCouldNotLeave) {
  TestDevice device(one_worker());
  occupy_worker(device.context);
  Stream& stream = device.stream();
  stream.launch(kCount, CountArguments{&count_});
  EXPECT_FALSE(stream.synchronize_for(1000));
  EXPECT_EQ(count_, 0);
  released_ = true;
  stream.synchronize();
  EXPECT_EQ(count_, 1);
}

TEST_F(HostHelpTest, ASignalEndsAWaitBetweenTwoTasks) {
  const HurriedClock clock;
  SimDriver driver(one_worker(), 0, clock);
  Context context(driver, 0, 0);
  occupy_worker(context);
  Stream& stream = context.create_stream();
  for (int i = 0; i < 3; ++i) stream.launch(kCount, CountArguments{&count_});
  set_blocking_hooks({.poll = [] { throw std::runtime_error("interrupted"); }});
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_LT(count_, 3);
  set_blocking_hooks({});
  released_ = true;
  stream.synchronize();
  EXPECT_EQ(count_, 3);
}

}  // namespace
}  // namespace npu::testing
