// The allocator under real streams: blocks are freed while tasks that use them are queued, on a device so small that
// streams take each other's memory and allocations drain. A block that is reused too early holds another block's mark.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/memory/caching_allocator.h"
#include "test_device.h"

namespace npu::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct MarkArguments {
  int64_t* address;
  size_t count;
  int64_t mark;
};
constexpr size_t kStride = 509;  // words between those that are looked at

const TaskInfo kMark{.name = "test::mark", .run = [](const TaskContext& context, const void* arguments) {
                       const auto& mark = *static_cast<const MarkArguments*>(arguments);
                       int64_t* const words = context.translate(mark.address);
                       for (size_t i = 0; i < mark.count; i += kStride) words[i] = mark.mark;
                     }};
const TaskInfo kCheck{.name = "test::check", .run = [](const TaskContext& context, const void* arguments) {
                        const auto& mark = *static_cast<const MarkArguments*>(arguments);
                        const int64_t* const words = context.translate(mark.address);
                        for (size_t i = 0; i < mark.count; i += kStride)
                          if (words[i] != mark.mark) throw std::runtime_error("another block's bytes");
                      }};

void run_program(Context& context, const std::vector<Stream*>& streams, unsigned seed) {
  std::mt19937 random(seed);
  CachingAllocator& allocator = context.allocator();
  Event event(false);
  for (int step = 0; step < 500; ++step) {
    Stream& producer = *streams[random() % streams.size()];
    Stream& consumer = *streams[random() % streams.size()];
    const size_t bytes = random() % 4 == 0 ? 10 * kMiB + random() % (4 * kMiB) : 8 + random() % (64 << 10);
    Block* const block = allocator.allocate(bytes, producer);
    const MarkArguments mark{static_cast<int64_t*>(block->address), block->requested_bytes / sizeof(int64_t),
                             static_cast<int64_t>(seed) << 32 | step};
    producer.launch(kMark, mark);
    producer.launch(kCheck, mark);
    if (&consumer != &producer) {
      event.record(producer);
      consumer.wait(event);
      allocator.record_stream(block, consumer);
    }
    consumer.launch(kCheck, mark);
    allocator.free(block);
  }
}

class AllocatorStreamsTest : public ::testing::TestWithParam<bool> {};

TEST_P(AllocatorStreamsTest, QueuedTasksNeverSeeAnotherBlocksBytes) {
  SimOptions options = small_device();
  options.inline_tasks = GetParam();
  TestDevice device(options);
  const std::vector<Stream*> streams = {&device.stream(), &device.stream(), &device.stream()};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed)
    threads.emplace_back([&device, &streams, seed] { run_program(device.context, streams, seed); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_NO_THROW(device.context.synchronize());
  const AllocatorStats stats = device.context.allocator().stats();
  EXPECT_EQ(stats.allocated_bytes[0].current, 0);
  EXPECT_EQ(stats.active_bytes[0].current, 0);
  device.context.allocator().release_cached();
  EXPECT_EQ(device.driver.memory_info(0).free_bytes, device.driver.memory_info(0).total_bytes);
}

INSTANTIATE_TEST_SUITE_P(InlineOnAndOff, AllocatorStreamsTest, ::testing::Bool());

TEST(AllocatorContextTest, FullDeviceWaitsForQueuedTasks) {
  TestDevice device;
  Stream& stream = device.stream();
  CachingAllocator& allocator = device.context.allocator();
  Gate gate(stream);
  Block* const first = allocator.allocate(40 * kMiB, stream);
  stream.launch(kStore, StoreArguments{static_cast<int64_t*>(first->address), 1});
  allocator.free(first);
  std::thread opener([&] { gate.open(); });
  Block* const second = allocator.allocate(40 * kMiB, device.context.default_stream());
  opener.join();
  EXPECT_NE(second, nullptr);
  allocator.free(second);
}

TEST(AllocatorContextTest, ALostDeviceRefuses) {
  TestDevice device;
  device.context.mark_lost("unplugged");
  EXPECT_THROW(device.context.allocator().allocate(512, device.context.default_stream()), Error);
}

}  // namespace
}  // namespace npu::testing
