// What every driver must do, written once and run on each.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "runtime/driver/driver.h"
#include "runtime/status.h"
#include "test_device.h"

namespace npu::testing {
namespace {

struct DriverCase {
  const char* name;
  std::function<std::unique_ptr<Driver>()> make;
};

class DriverConformanceTest : public ::testing::TestWithParam<DriverCase> {
 protected:
  std::unique_ptr<Driver> driver = GetParam().make();
};

TEST_P(DriverConformanceTest, ReportsItsDevices) {
  ASSERT_GE(driver->device_count(), 1);
  const DeviceProperties properties = driver->properties(0);
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GT(properties.memory_bytes, 0u);
  EXPECT_GE(properties.cube_cores, 1);
  EXPECT_GE(properties.vector_cores, 1);
  EXPECT_THROW(driver->properties(static_cast<DeviceIndex>(driver->device_count())), Error);
}

TEST_P(DriverConformanceTest, MemoryIsFiniteAndComesBack) {
  const MemoryInfo before = driver->memory_info(0);
  EXPECT_EQ(driver->allocate(0, before.total_bytes + 1), nullptr);
  void* all = driver->allocate(0, before.free_bytes);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(driver->memory_info(0).free_bytes, 0u);
  EXPECT_EQ(driver->allocate(0, 1), nullptr);
  driver->free(0, all);
  EXPECT_EQ(driver->memory_info(0).free_bytes, before.free_bytes);
  EXPECT_THROW(driver->free(0, all), Error);
}

TEST_P(DriverConformanceTest, LocatesAndTranslatesAddresses) {
  auto* device = static_cast<char*>(driver->allocate(0, 4096));
  auto* pinned = static_cast<char*>(driver->allocate_host(4096));
  const MemoryLocation on_device = driver->locate(device + 100);
  EXPECT_EQ(on_device.kind, MemoryLocation::Kind::kDevice);
  EXPECT_EQ(on_device.device, 0);
  EXPECT_EQ(on_device.base, device);
  EXPECT_EQ(driver->locate(pinned + 100).kind, MemoryLocation::Kind::kPinned);
  EXPECT_EQ(driver->locate(&on_device).kind, MemoryLocation::Kind::kUnknown);
  std::memset(driver->translate(device), 5, 4096);
  EXPECT_EQ(*static_cast<char*>(driver->translate(device + 4095)), 5);
  EXPECT_EQ(driver->translate(pinned + 7), pinned + 7);
  EXPECT_THROW(driver->translate(&on_device), Error);
  driver->free_host(pinned);
  driver->free(0, device);
}

TEST_P(DriverConformanceTest, QueuesRunInOrderAndCount) {
  Queue& queue = driver->create_queue({});
  auto* value = static_cast<int64_t*>(driver->allocate(0, sizeof(int64_t)));
  for (int64_t digit : {1, 2, 3}) {
    const StoreArguments arguments{value, digit};
    EXPECT_EQ(driver->submit(queue, {kAppend, &arguments, sizeof(arguments)}), static_cast<uint64_t>(digit));
  }
  EXPECT_TRUE(driver->wait(queue, 3, Driver::kForever));
  EXPECT_EQ(queue.completed(), 3u);
  EXPECT_EQ(*static_cast<int64_t*>(driver->translate(value)), 123);
  driver->destroy_queue(queue);
  driver->free(0, value);
}

TEST_P(DriverConformanceTest, SignalsHoldQueuesBackWithoutAWorker) {
  Queue& first = driver->create_queue({});
  Queue& second = driver->create_queue({});
  Signal& signal = driver->create_signal();
  driver->submit_wait(first, signal, 1);
  driver->submit_wait(second, first, 1);
  EXPECT_FALSE(driver->wait(second, 1, 0));
  for (const char* wait : {"waits for a value >= 1", "waits for task 1 of npu:0"})
    while (driver->describe_waits().find(wait) == std::string::npos) std::this_thread::yield();
  driver->write(signal, 1);
  EXPECT_TRUE(driver->wait(second, 1, Driver::kForever));
  EXPECT_TRUE(driver->describe_waits().empty());
  driver->destroy_signal(signal);
  driver->destroy_queue(first);
  driver->destroy_queue(second);
}

TEST_P(DriverConformanceTest, CompletionsAreToldOnceOrCancelled) {
  struct Told final : Completion {
    void on_complete(int64_t) noexcept override { ++times; }
    std::atomic<int> times{0};
  } told, cancelled, late;
  Queue& queue = driver->create_queue({});
  Signal& signal = driver->create_signal();
  driver->submit_wait(queue, signal, 1);
  driver->notify(queue, 1, told);
  driver->notify(queue, 1, cancelled);
  EXPECT_TRUE(driver->cancel(queue, cancelled));
  EXPECT_EQ(told.times, 0);
  driver->write(signal, 1);
  driver->wait(queue, 1, Driver::kForever);
  // The counter moves just before on_complete is called: a cancellation may still come first.
  const bool too_early = driver->cancel(queue, told);
  EXPECT_EQ(told.times, too_early ? 0 : 1);
  EXPECT_EQ(cancelled.times, 0);
  driver->notify(queue, 1, late);
  EXPECT_EQ(late.times, 1);
  driver->destroy_signal(signal);
  driver->destroy_queue(queue);
}

TEST_P(DriverConformanceTest, ARecycledQueueKeepsCounting) {
  Queue& first = driver->create_queue({});
  const int nothing = 0;
  driver->submit(first, {kFail, &nothing, sizeof(nothing)});  // no error sink: nobody is told
  driver->wait(first, 1, Driver::kForever);
  driver->destroy_queue(first);
  Queue& second = driver->create_queue({});
  EXPECT_GE(second.submitted(), &first == &second ? 1u : 0u);
  EXPECT_TRUE(second.idle());
  driver->destroy_queue(second);
}

TEST_P(DriverConformanceTest, NothingStartsAfterShutdown) {
  Queue& queue = driver->create_queue({});
  EXPECT_TRUE(driver->shutdown(Driver::kForever));
  const int nothing = 0;
  EXPECT_THROW(driver->submit(queue, {kFail, &nothing, sizeof(nothing)}), Error);
}

TEST_P(DriverConformanceTest, ShutdownGivesUpAtTheDeadline) {
  Queue& queue = driver->create_queue({});
  Signal& signal = driver->create_signal();
  driver->submit_wait(queue, signal, 1);
  EXPECT_FALSE(driver->shutdown(0));
  driver->write(signal, 1);
  EXPECT_TRUE(driver->shutdown(Driver::kForever));
}

INSTANTIATE_TEST_SUITE_P(Drivers, DriverConformanceTest,
                         ::testing::Values(DriverCase{"sim",
                                                      [] { return std::make_unique<SimDriver>(small_device()); }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace npu::testing
