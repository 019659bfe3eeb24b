#include "runtime/memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fake_driver.h"
#include "runtime/observer.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kCapacity = 128 * kMiB;

class CachingAllocatorTest : public testing::Test {
 protected:
  explicit CachingAllocatorTest(bool deterministic = false) : allocator_(driver_, 0, 0, deterministic) {}

  Block* allocate(size_t bytes) { return allocator_.allocate(bytes, queue_, 0); }
  // Allocates on a stream and frees there, while a task that uses it is queued.
  void use_and_free(size_t bytes, FakeQueue& queue) {
    Block* const block = allocator_.allocate(bytes, queue, 0);
    queue.submit();
    allocator_.free(block);
  }
  int64_t reserved() { return allocator_.stats().reserved_bytes[0].current; }
  std::string out_of_memory_message(size_t bytes) {
    try {
      allocate(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      return error.what();
    }
    return "no error";
  }

  FakeDriver driver_{kCapacity};
  FakeQueue queue_, other_;
  CachingAllocator allocator_;
};

class DeterministicAllocatorTest : public CachingAllocatorTest {
 protected:
  DeterministicAllocatorTest() : CachingAllocatorTest(true) {}
};

TEST_F(CachingAllocatorTest, RoundsLikePyTorch) {
  for (const auto& [requested, rounded, segment] :
       std::vector<std::array<size_t, 3>>{{0, 512, 2 * kMiB},
                                          {1, 512, 2 * kMiB},
                                          {513, 1024, 2 * kMiB},
                                          {kMiB, kMiB, 2 * kMiB},
                                          {kMiB + 1, kMiB + 512, 20 * kMiB},
                                          {10 * kMiB, 10 * kMiB, 10 * kMiB},
                                          {11 * kMiB, 12 * kMiB, 12 * kMiB}}) {
    Block* const block = allocate(requested);
    EXPECT_EQ(block->requested_bytes, requested);
    EXPECT_EQ(block->bytes, rounded) << requested;
    EXPECT_EQ(reserved(), static_cast<int64_t>(segment)) << requested;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->address) % 512, 0u);
    allocator_.free(block);
    allocator_.release_cached();
    EXPECT_EQ(reserved(), 0);
  }
}

TEST_F(CachingAllocatorTest, EmptyBlocksHaveAddressesOfTheirOwn) {
  Block* const a = allocate(0);
  Block* const b = allocate(0);
  EXPECT_NE(a->address, nullptr);
  EXPECT_NE(a->address, b->address);
}

TEST_F(CachingAllocatorTest, SmallBlocksShareASegment) {
  std::vector<Block*> blocks;
  for (int i = 0; i < 4096; ++i) blocks.push_back(allocate(512));
  EXPECT_EQ(reserved(), int64_t{2 * kMiB});
  blocks.push_back(allocate(512));
  EXPECT_EQ(reserved(), int64_t{4 * kMiB});
  for (Block* block : blocks) allocator_.free(block);
  allocate(kMiB);
  allocate(kMiB);
  EXPECT_EQ(reserved(), int64_t{4 * kMiB});  // the small ones have merged
}

TEST_F(CachingAllocatorTest, FreedOnItsStreamABlockIsReusableThereAtOnce) {
  Block* const block = allocate(4096);
  void* const address = block->address;
  queue_.submit();
  allocator_.free(block);
  EXPECT_EQ(allocate(4096)->address, address);
}

TEST_F(CachingAllocatorTest, AnotherStreamWaitsForTheTasksQueuedAtTheFree) {
  use_and_free(12 * kMiB, queue_);
  queue_.submit();  // after the free: does not matter
  Block* const early = allocator_.allocate(12 * kMiB, other_, 1);
  EXPECT_EQ(reserved(), int64_t{24 * kMiB});
  queue_.complete_until(1);
  allocator_.allocate(12 * kMiB, other_, 1);
  EXPECT_EQ(reserved(), int64_t{24 * kMiB});
  allocator_.free(early);
}

TEST_F(DeterministicAllocatorTest, StreamsNeverShare) {
  use_and_free(12 * kMiB, queue_);
  queue_.complete_all();
  allocator_.allocate(12 * kMiB, other_, 1);
  EXPECT_EQ(reserved(), int64_t{24 * kMiB});
}

TEST_F(CachingAllocatorTest, MemoryOfADestroyedStreamGoesToOthersWhenItsTasksAreDone) {
  Block* const block = allocate(12 * kMiB);
  queue_.submit();
  // The stream is destroyed here; its queue works on and its block is freed later.
  allocator_.free(block);
  queue_.complete_all();
  EXPECT_EQ(allocator_.allocate(12 * kMiB, other_, 1)->address, block->address);
}

TEST_F(CachingAllocatorTest, RecordedStreamsDelayReuse) {
  Block* const block = allocate(12 * kMiB);
  void* const address = block->address;
  allocator_.record_stream(block, other_);
  allocator_.record_stream(block, queue_);  // its own stream needs no record
  other_.submit(3);
  allocator_.free(block);
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].current, 0);
  EXPECT_EQ(allocator_.stats().active_bytes[0].current, int64_t{12 * kMiB});
  EXPECT_NE(allocate(12 * kMiB)->address, address);
  other_.complete_until(2);
  EXPECT_NE(allocate(12 * kMiB)->address, address);
  other_.complete_until(3);
  EXPECT_EQ(allocate(12 * kMiB)->address, address);
}

TEST_F(CachingAllocatorTest, ABlockFreedByAnotherThreadComesBackToItsStream) {
  Block* const block = allocate(4096);
  void* const address = block->address;
  std::thread([&] { allocator_.free(block); }).join();
  EXPECT_EQ(allocate(4096)->address, address);
}

TEST_F(CachingAllocatorTest, ReleaseGivesBackWhatIsFinishedOnly) {
  use_and_free(12 * kMiB, queue_);
  Block* const live = allocator_.allocate(16 * kMiB, other_, 1);
  allocator_.release_cached();
  EXPECT_EQ(reserved(), int64_t{28 * kMiB});  // a queued task still uses the first
  queue_.complete_all();
  allocator_.release_cached();
  EXPECT_EQ(reserved(), int64_t{16 * kMiB});
  EXPECT_EQ(driver_.memory_info(0).free_bytes, kCapacity - 16 * kMiB);
  EXPECT_EQ(allocator_.stats().device_frees, 1);
  allocator_.free(live);
}

TEST_F(CachingAllocatorTest, FullDeviceReleasesTheCacheFirst) {
  allocator_.free(allocate(100 * kMiB));
  Block* const block = allocate(120 * kMiB);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(allocator_.stats().alloc_retries, 1);
  EXPECT_EQ(allocator_.stats().sync_all_streams, 0);
}

TEST_F(CachingAllocatorTest, FullDeviceDrainsStreamsWhoseMemoryIsInUse) {
  use_and_free(100 * kMiB, other_);
  Block* const recorded = allocate(20 * kMiB);
  FakeQueue reader;
  reader.submit();
  allocator_.record_stream(recorded, reader);
  allocator_.free(recorded);
  EXPECT_NE(allocate(kCapacity), nullptr);
  EXPECT_TRUE(other_.idle());
  EXPECT_TRUE(reader.idle());
  EXPECT_EQ(allocator_.stats().sync_all_streams, 1);
}

TEST_F(CachingAllocatorTest, OutOfMemorySaysWhatThereIsAndLeaksNothing) {
  Block* const live = allocate(100 * kMiB);
  const AllocatorStats before = allocator_.stats();
  const std::string message = out_of_memory_message(64 * kMiB);
  for (const char* part : {"npu:0", "64.00 MiB", "128.00 MiB capacity", "28.00 MiB is free", "reserved 100.00 MiB",
                           "largest free cached block", "NPU_SIM_MEMORY"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  const AllocatorStats after = allocator_.stats();
  EXPECT_EQ(after.ooms, 1);
  EXPECT_EQ(after.allocated_bytes[0].current, before.allocated_bytes[0].current);
  EXPECT_EQ(after.reserved_bytes[0].current, before.reserved_bytes[0].current);
  allocator_.free(live);
  EXPECT_NE(allocate(kCapacity), nullptr);
}

TEST_F(CachingAllocatorTest, WhatCanNeverFitFailsWithoutWaiting) {
  use_and_free(12 * kMiB, queue_);
  EXPECT_NE(out_of_memory_message(kCapacity + 1), "no error");
  EXPECT_NE(out_of_memory_message(SIZE_MAX), "no error");
  EXPECT_FALSE(queue_.idle());
}

TEST_F(CachingAllocatorTest, AWaitThatIsInterruptedLeaksNothing) {
  use_and_free(100 * kMiB, queue_);
  driver_.on_wait = [](Queue&, uint64_t) { throw std::runtime_error("interrupted"); };
  EXPECT_THROW(allocator_.allocate(100 * kMiB, other_, 1), std::runtime_error);
  driver_.on_wait = nullptr;
  EXPECT_NE(allocator_.allocate(100 * kMiB, other_, 1), nullptr);
}

TEST_F(CachingAllocatorTest, MemoryFractionLimitsWhatIsReserved) {
  allocator_.set_memory_fraction(0.5);
  EXPECT_EQ(allocator_.memory_fraction(), 0.5);
  Block* const half = allocate(64 * kMiB);
  const std::string message = out_of_memory_message(12 * kMiB);
  for (const char* part : {"may use 0.5", "give this process a larger fraction"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  allocator_.free(half);
  EXPECT_THROW(allocator_.set_memory_fraction(0), Error);
  EXPECT_THROW(allocator_.set_memory_fraction(1.5), Error);
}

TEST_F(CachingAllocatorTest, FindsTheLiveBlockAroundAnAddress) {
  allocate(512);
  Block* const block = allocate(4096);
  EXPECT_EQ(allocator_.find(static_cast<char*>(block->address) + 4095), block);
  EXPECT_EQ(allocator_.find(&driver_), nullptr);
  allocator_.free(block);
  EXPECT_EQ(allocator_.find(block->address), nullptr);
}

TEST_F(CachingAllocatorTest, ObserversSeeEveryBlock) {
  struct Recorder : Observer {
    void on_allocate(DeviceIndex, StreamId stream, const void*, size_t bytes) override { note('+', stream, bytes); }
    void on_free(DeviceIndex, StreamId stream, const void*, size_t bytes) override { note('-', stream, bytes); }
    void note(char sign, StreamId stream, size_t bytes) {
      text += sign + std::to_string(stream) + ":" + std::to_string(bytes) + " ";
    }
    std::string text;
  } recorder;
  attach_observer(recorder);
  allocator_.free(allocator_.allocate(600, other_, 7));
  detach_observer(recorder);
  EXPECT_EQ(recorder.text, "+7:1024 -7:1024 ");
}

TEST_F(CachingAllocatorTest, FreeingTwiceIsReportedAndHarmless) {
  Block* const block = allocate(512);
  allocator_.free(block);
  testing::internal::CaptureStderr();
  allocator_.free(block);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("freed twice"), std::string::npos);
  EXPECT_NE(allocate(512)->address, allocate(512)->address);
}

TEST(CachingAllocatorLifetimeTest, GivesAllMemoryBackAtItsEnd) {
  FakeDriver driver(kCapacity);
  FakeQueue queue;
  {
    CachingAllocator allocator(driver, 0, 0, false);
    allocator.allocate(512, queue, 0);
    allocator.free(allocator.allocate(12 * kMiB, queue, 0));
  }
  EXPECT_EQ(driver.memory_info(0).free_bytes, kCapacity);
}

}  // namespace
}  // namespace npu
