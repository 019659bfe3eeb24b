#include "runtime/memory/allocator_options.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "fake_driver.h"
#include "runtime/memory/caching_allocator.h"
#include "test_device.h"

namespace npu {
namespace {

constexpr size_t kKiB = size_t{1} << 10, kMiB = size_t{1} << 20;

TEST(AllocatorOptionsTest, SizesAreRoundedUpToStepsBetweenPowersOfTwo) {
  AllocatorOptions options;
  EXPECT_EQ(block_bytes(1200 * kKiB, options), 1200 * kKiB);
  options.roundup_power2_divisions.fill(4);
  EXPECT_EQ(block_bytes(1200 * kKiB, options), 1280 * kKiB);
  EXPECT_EQ(block_bytes(1025 * kKiB, options), 1280 * kKiB);
  EXPECT_EQ(block_bytes(1793 * kKiB, options), 2048 * kKiB);
  EXPECT_EQ(block_bytes(1024 * kKiB, options), 1024 * kKiB);
  EXPECT_EQ(block_bytes(1500, options), 1536u) << "too small for steps of 512 bytes";
}

TEST(AllocatorOptionsTest, StepsDependOnTheSize) {
  AllocatorOptions options;
  options.roundup_power2_divisions[0] = 8;   // below 2 MiB
  options.roundup_power2_divisions[6] = 2;   // from 64 MiB
  options.roundup_power2_divisions[15] = 1;  // from 32 GiB
  EXPECT_EQ(block_bytes(600 * kKiB, options), 640 * kKiB);
  EXPECT_EQ(block_bytes(65 * kMiB, options), 96 * kMiB);
  EXPECT_EQ(block_bytes(3 * kMiB + 1, options), 3 * kMiB + 512);
  EXPECT_EQ(block_bytes(60000 * kMiB + 1, options), 60000 * kMiB + 512);
}

class OptionsOfAllocatorTest : public ::testing::Test {
 protected:
  Block* allocate(size_t bytes) { return allocator_.allocate(bytes, queue_, 0); }
  size_t reserved() { return static_cast<size_t>(allocator_.stats().reserved_bytes[0].current); }

  FakeDriver driver_{128 * kMiB};
  FakeQueue queue_;
  CachingAllocator allocator_{driver_, 0, 0, false};
};

TEST_F(OptionsOfAllocatorTest, BlocksFromTheSplitLimitUpServeNoSmallRequest) {
  allocator_.set_options({.max_split_bytes = 32 * kMiB});
  Block* const large = allocate(40 * kMiB);
  void* const address = large->address;
  allocator_.free(large);
  EXPECT_NE(allocate(12 * kMiB)->address, address);
  EXPECT_EQ(reserved(), 52 * kMiB);
  Block* const again = allocate(36 * kMiB);
  EXPECT_EQ(again->address, address);
  EXPECT_EQ(again->bytes, 40 * kMiB) << "not cut";
  const AllocatorStats stats = allocator_.stats();
  EXPECT_EQ(stats.oversize_allocations.current, 1);
  EXPECT_EQ(stats.oversize_allocations.allocated, 2);
  EXPECT_EQ(stats.oversize_segments.current, 1);
}

TEST_F(OptionsOfAllocatorTest, SegmentsStayWhatTheyWereCountedAs) {
  allocator_.set_options({.max_split_bytes = 32 * kMiB});
  Block* const large = allocate(40 * kMiB);
  allocator_.set_options({});
  allocator_.free(large);
  allocator_.release_cached();
  EXPECT_EQ(allocator_.stats().oversize_segments.current, 0);
}

TEST_F(OptionsOfAllocatorTest, MuchLargerBlocksAreNotWastedOnARequest) {
  allocator_.set_options({.max_split_bytes = 32 * kMiB, .max_non_split_rounding_bytes = 4 * kMiB});
  Block* const large = allocate(40 * kMiB);
  allocator_.free(large);
  EXPECT_NE(allocate(36 * kMiB)->address, large->address);
  EXPECT_EQ(allocate(38 * kMiB)->address, large->address);
}

TEST_F(OptionsOfAllocatorTest, SegmentsThatBlocksShareHaveTheSizeAskedFor) {
  allocator_.set_options({.large_segment_bytes = 64 * kMiB});
  allocate(2 * kMiB);
  EXPECT_EQ(reserved(), 64 * kMiB);
  allocate(2 * kMiB);
  EXPECT_EQ(reserved(), 64 * kMiB);
}

TEST_F(OptionsOfAllocatorTest, WhatHasBeenFreeForLongestIsGivenBackAboveTheThreshold) {
  allocator_.set_options({.garbage_collection_threshold = 0.5});
  Block* const old = allocate(20 * kMiB);
  Block* const recent = allocate(22 * kMiB);
  Block* const live = allocate(24 * kMiB);
  allocator_.free(old);
  queue_.submit(10);
  queue_.complete_all();
  allocator_.free(recent);
  EXPECT_EQ(reserved(), 66 * kMiB);
  void* const kept = recent->address;
  allocate(30 * kMiB);
  EXPECT_EQ(reserved(), 76 * kMiB) << "20 of 66 MiB went before the 30 came";
  EXPECT_EQ(allocate(22 * kMiB)->address, kept);
  allocator_.free(live);
}

TEST_F(OptionsOfAllocatorTest, WithoutAThresholdNothingIsGivenBackEarly) {
  allocator_.free(allocate(40 * kMiB));
  allocator_.free(allocate(44 * kMiB));
  EXPECT_EQ(reserved(), 84 * kMiB);
}

TEST_F(OptionsOfAllocatorTest, MemoryThatTasksStillUseIsNotCollected) {
  allocator_.set_options({.garbage_collection_threshold = 0.1});
  Block* const block = allocate(20 * kMiB);
  queue_.submit();
  allocator_.free(block);
  allocate(30 * kMiB);
  EXPECT_EQ(reserved(), 50 * kMiB);
}

TEST(AllocatorOptionsSourceTest, ContextsAskTheSourceAndPassItsErrorsOn) {
  set_allocator_options_source([] { return AllocatorOptions{.large_segment_bytes = 48 * kMiB}; });
  {
    const testing::TestDevice device;
    EXPECT_EQ(device.context.allocator().options().large_segment_bytes, 48 * kMiB);
  }
  set_allocator_options_source([]() -> AllocatorOptions { throw std::invalid_argument("unusable"); });
  EXPECT_THROW(testing::TestDevice(), std::invalid_argument);
  set_allocator_options_source(nullptr);
}

}  // namespace
}  // namespace npu
