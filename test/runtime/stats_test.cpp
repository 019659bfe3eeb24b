#include "runtime/memory/stats.h"

#include <gtest/gtest.h>

#include <functional>

#include "fake_driver.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/memory/pool_counters.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr auto kAllocated = static_cast<size_t>(Counter::kAllocatedBytes);

TEST(PoolCountersTest, CountByColumn) {
  PoolCounters counters;
  counters.increase(StatType::kSmallPool, Counter::kAllocatedBytes, 512);
  counters.increase(StatType::kLargePool, Counter::kAllocatedBytes, 4096);
  counters.decrease(StatType::kSmallPool, Counter::kAllocatedBytes, 512);
  EXPECT_EQ(counters.current()[0][kAllocated], 4096);
  EXPECT_EQ(counters.current()[1][kAllocated], 0);
  EXPECT_EQ(counters.current()[2][kAllocated], 4096);
  EXPECT_EQ(counters.increases()[0][kAllocated], 4608);
}

TEST(PoolCountersTest, ReportsThatItRoseAboveItsAllowance) {
  PoolCounters counters;
  Amounts allowance{};
  for (auto& column : allowance) column.fill(1000);
  counters.set_allowance(allowance);
  counters.increase(StatType::kSmallPool, Counter::kAllocatedBytes, 1000);
  EXPECT_FALSE(counters.is_above_allowance());
  counters.increase(StatType::kSmallPool, Counter::kAllocatedBytes, 1);
  counters.decrease(StatType::kSmallPool, Counter::kAllocatedBytes, 1);
  EXPECT_TRUE(counters.is_above_allowance());  // until it gets a new one
  counters.set_allowance(allowance);
  EXPECT_FALSE(counters.is_above_allowance());
  EXPECT_EQ(counters.current()[1][kAllocated], 1000);
}

class StatsTest : public testing::Test {
 protected:
  Block* allocate(size_t bytes) { return allocator_.allocate(bytes, queue_, 0); }

  FakeDriver driver_{256 * kMiB};
  FakeQueue queue_, other_queue_;
  CachingAllocator allocator_{driver_, 0, 0, false};
};

TEST_F(StatsTest, FollowOneSmallAndOneLargeBlock) {
  Block* const small = allocate(1000);
  Block* const large = allocate(12 * kMiB);
  const AllocatorStats stats = allocator_.stats();
  EXPECT_EQ(stats.allocation[0].current, 2);
  EXPECT_EQ(stats.allocation[1].current, 1);
  EXPECT_EQ(stats.allocated_bytes[1].current, 1024);
  EXPECT_EQ(stats.requested_bytes[1].current, 1000);
  EXPECT_EQ(stats.allocated_bytes[2].current, int64_t{12 * kMiB});
  EXPECT_EQ(stats.reserved_bytes[0].current, int64_t{14 * kMiB});
  EXPECT_EQ(stats.segment[0].current, 2);
  EXPECT_EQ(stats.active[0].current, 2);
  EXPECT_EQ(stats.inactive_split[0].current, 1);
  EXPECT_EQ(stats.inactive_split_bytes[1].current, int64_t{2 * kMiB} - 1024);
  EXPECT_EQ(stats.device_allocs, 2);
  allocator_.free(small);
  allocator_.free(large);
}

TEST_F(StatsTest, ReturnToZeroAndKeepTheirPeaks) {
  Block* const a = allocate(512);
  Block* const b = allocate(1536);
  allocator_.free(a);
  allocator_.free(b);
  const AllocatorStats stats = allocator_.stats();
  EXPECT_EQ(stats.allocated_bytes[0].current, 0);
  EXPECT_EQ(stats.allocated_bytes[0].peak, 2048);
  EXPECT_EQ(stats.allocated_bytes[0].allocated, 2048);
  EXPECT_EQ(stats.allocated_bytes[0].freed, 2048);
  EXPECT_EQ(stats.active_bytes[0].current, 0);
  EXPECT_EQ(stats.inactive_split[0].current, 0);
  EXPECT_EQ(stats.reserved_bytes[0].current, int64_t{2 * kMiB});
}

TEST_F(StatsTest, PeakIsThatOfTheSumOverStreams) {
  Block* const first = allocator_.allocate(4096, queue_, 0);
  allocator_.free(first);
  Block* const second = allocator_.allocate(4096, other_queue_, 1);
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].peak, 4096);  // never both at a time
  Block* const third = allocator_.allocate(1024, queue_, 0);
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].peak, 5120);
  allocator_.free(second);
  allocator_.free(third);
  for (int round = 0; round < 3; ++round) {
    allocator_.free(allocator_.allocate(3072, queue_, 0));
    allocator_.free(allocator_.allocate(5120, other_queue_, 1));
  }
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].peak, 5120);
}

TEST_F(StatsTest, ResetPeakStartsFromTheCurrentValue) {
  Block* const kept = allocate(512);
  allocator_.free(allocate(8192));
  allocator_.reset_peak_stats();
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].peak, 512);
  allocator_.free(allocate(1024));
  EXPECT_EQ(allocator_.stats().allocated_bytes[0].peak, 1536);
  allocator_.free(kept);
}

TEST_F(StatsTest, ResetAccumulatedForgetsSumsOnly) {
  Block* const kept = allocate(512);
  allocator_.free(allocate(1024));
  allocator_.reset_accumulated_stats();
  AllocatorStats stats = allocator_.stats();
  EXPECT_EQ(stats.allocated_bytes[0].allocated, 0);
  EXPECT_EQ(stats.allocated_bytes[0].freed, 0);
  EXPECT_EQ(stats.allocated_bytes[0].current, 512);
  EXPECT_EQ(stats.device_allocs, 0);
  allocator_.free(kept);
  stats = allocator_.stats();
  EXPECT_EQ(stats.allocated_bytes[0].allocated, 0);
  EXPECT_EQ(stats.allocated_bytes[0].freed, 512);
}

}  // namespace
}  // namespace npu
