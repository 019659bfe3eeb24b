#include "runtime/memory/snapshot.h"

#include <gtest/gtest.h>

#include "fake_driver.h"
#include "runtime/memory/caching_allocator.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
using State = BlockSnapshot::State;

TEST(SnapshotTest, ShowsSegmentsAndTheirBlocksInOrder) {
  FakeDriver driver(64 * kMiB);
  FakeQueue queue, other;
  CachingAllocator allocator(driver, 0, 0, false);
  EXPECT_TRUE(allocator.snapshot().empty());
  Block* const first = allocator.allocate(1000, queue, 5);
  Block* const freed = allocator.allocate(2048, queue, 5);
  Block* const pending = allocator.allocate(512, queue, 5);
  allocator.allocate(12 * kMiB, other, 6);
  allocator.record_stream(pending, other);
  other.submit();
  allocator.free(freed);
  allocator.free(pending);

  const std::vector<SegmentSnapshot> segments = allocator.snapshot();
  ASSERT_EQ(segments.size(), 2u);
  const SegmentSnapshot& small = segments[0].kind == StatType::kSmallPool ? segments[0] : segments[1];
  const SegmentSnapshot& large = segments[0].kind == StatType::kSmallPool ? segments[1] : segments[0];
  EXPECT_LT(segments[0].address, segments[1].address);
  EXPECT_EQ(small.bytes, 2 * kMiB);
  EXPECT_EQ(small.stream, 5);
  EXPECT_EQ(small.address, reinterpret_cast<uintptr_t>(first->address));
  ASSERT_EQ(small.blocks.size(), 4u);
  EXPECT_EQ(small.blocks[0].state, State::kAllocated);
  EXPECT_EQ(small.blocks[0].requested_bytes, 1000u);
  EXPECT_EQ(small.blocks[0].bytes, 1024u);
  EXPECT_EQ(small.blocks[1].state, State::kInactive);
  EXPECT_EQ(small.blocks[2].state, State::kPendingFree);
  EXPECT_EQ(small.blocks[3].state, State::kInactive);
  EXPECT_EQ(large.stream, 6);
  EXPECT_EQ(large.blocks.size(), 1u);
  other.complete_all();
}

TEST(SnapshotTest, BlocksLeaveNoGaps) {
  FakeDriver driver(64 * kMiB);
  FakeQueue queue;
  CachingAllocator allocator(driver, 0, 0, false);
  std::vector<Block*> blocks;
  for (size_t i = 0; i < 20; ++i) blocks.push_back(allocator.allocate(i * 700, queue, 0));
  for (size_t i = 0; i < blocks.size(); i += 3) allocator.free(blocks[i]);
  for (const SegmentSnapshot& segment : allocator.snapshot()) {
    uintptr_t end = segment.address;
    for (const BlockSnapshot& block : segment.blocks) {
      EXPECT_EQ(block.address, end);
      end += block.bytes;
    }
    EXPECT_EQ(end, segment.address + segment.bytes);
  }
}

}  // namespace
}  // namespace npu
