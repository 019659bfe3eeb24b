#include "runtime/observer.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "test_device.h"

namespace npu::testing {
namespace {

class Recorder final : public Observer {
 public:
  Recorder() { attach_observer(*this); }
  ~Recorder() override { detach_observer(*this); }

  void on_submit(const TaskEvent& task) override { note("submit", task); }
  void on_start(const TaskEvent& task) override { note("start", task); }
  void on_end(const TaskEvent& task, bool failed) override { note(failed ? "failed" : "end", task); }
  void on_skip(const TaskEvent& task) override { note("skip", task); }
  void on_record(DeviceIndex, StreamId, uint64_t, uint64_t number) override { add("record " + std::to_string(number)); }
  void on_wait(DeviceIndex, StreamId, StreamId, uint64_t number) override { add("wait " + std::to_string(number)); }
  void on_allocate(DeviceIndex, StreamId, const void*, size_t bytes) override {
    add("allocate " + std::to_string(bytes));
  }
  void on_free(DeviceIndex, StreamId, const void*, size_t bytes) override { add("free " + std::to_string(bytes)); }

  std::vector<std::string> take() {
    std::lock_guard lock(mutex_);
    return std::move(lines_);
  }

 private:
  void note(const char* what, const TaskEvent& task) {
    add(std::string(what) + " " + task.info->name + " " + std::to_string(task.number));
  }
  void add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST(ObserverTest, SeesTheLifeOfATask) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  Recorder recorder;
  Gate gate(stream);
  stream.launch(kStore, StoreArguments{value.address(), 1});
  gate.open();
  stream.synchronize();
  EXPECT_EQ(recorder.take(), (std::vector<std::string>{"submit wait_value 1", "submit test::store 2",
                                                       "start test::store 2", "end test::store 2"}));
}

TEST(ObserverTest, SeesFailures) {
  TestDevice device;
  Stream& stream = device.stream();
  Recorder recorder;
  stream.launch(kFail, 0);
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_EQ(recorder.take().back(), "failed test::fail 1");
}

TEST(ObserverTest, SeesWhatIsSkippedAfterAFailure) {
  TestDevice device;
  Stream& stream = device.stream();
  DeviceInt value(device.context, 0);
  stream.set_failure_mode(FailureMode::kStop);
  Recorder recorder;
  Gate gate(stream);
  stream.launch(kFail, 0);
  stream.launch(kStore, StoreArguments{value.address(), 1});
  gate.open();
  EXPECT_THROW(stream.synchronize(), Error);
  EXPECT_EQ(recorder.take().back(), "skip test::store 3");
}

TEST(ObserverTest, SeesElidedWaitsAndRecords) {
  TestDevice device;
  Recorder recorder;
  Event event;
  event.record(device.stream());
  device.stream().wait(event);
  EXPECT_EQ(recorder.take(), (std::vector<std::string>{"record 0", "wait 0"}));
}

TEST(ObserverTest, SeesMemory) {
  TestDevice device;
  Recorder recorder;
  Block* block = device.context.allocator().allocate(100, device.context.default_stream());
  device.context.allocator().free(block);
  EXPECT_EQ(recorder.take(), (std::vector<std::string>{"allocate 512", "free 512"}));
}

TEST(ObserverTest, ADetachedObserverSeesNothing) {
  TestDevice device;
  {
    Recorder recorder;
  }
  EXPECT_FALSE(detail::g_observed);
  device.stream();
}

}  // namespace
}  // namespace npu::testing
