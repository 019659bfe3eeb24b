#include "runtime/memory/free_list.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace npu {
namespace {

CachedBlock& sized(CachedBlock& block, size_t units) {
  block.bytes = units * kBlockUnit;
  return block;
}

TEST(FreeListTest, EmptyHasNothing) {
  FreeList list;
  EXPECT_EQ(list.find(kBlockUnit), nullptr);
  EXPECT_EQ(list.largest_bytes(), 0u);
}

TEST(FreeListTest, PrefersTheExactSizeThenTheSmallestLarger) {
  FreeList list;
  CachedBlock small, exact, large;
  list.insert(sized(small, 3));
  list.insert(sized(large, 900));
  list.insert(sized(exact, 10));
  EXPECT_EQ(list.find(10 * kBlockUnit), &exact);
  EXPECT_EQ(list.find(4 * kBlockUnit), &exact);
  EXPECT_EQ(list.find(11 * kBlockUnit), &large);
  EXPECT_EQ(list.find(901 * kBlockUnit), nullptr);
  EXPECT_EQ(list.largest_bytes(), 900 * kBlockUnit);
}

TEST(FreeListTest, SizesThatShareABinAreToldApart) {
  FreeList list;
  CachedBlock shorter, longer;  // both in one bin: they differ by less than 1/64
  list.insert(sized(longer, 1001));
  list.insert(sized(shorter, 1000));
  EXPECT_EQ(list.find(1000 * kBlockUnit), &shorter);
  EXPECT_EQ(list.find(1001 * kBlockUnit), &longer);
  list.remove(longer);
  EXPECT_EQ(list.find(1001 * kBlockUnit), nullptr);
}

TEST(FreeListTest, HoldsAnySize) {
  FreeList list;
  CachedBlock huge, vast;
  list.insert(sized(huge, size_t{1} << 30));  // 512 GiB
  list.insert(sized(vast, size_t{1} << 40));
  EXPECT_EQ(list.find((size_t{1} << 40) * kBlockUnit), &vast);
  EXPECT_EQ(list.find(((size_t{1} << 30) + 1) * kBlockUnit), &vast);
  list.remove(vast);
  EXPECT_EQ(list.find(kBlockUnit), &huge);
}

TEST(FreeListTest, RandomUseFindsABlockWheneverThereIsOne) {
  std::mt19937 random(7);
  FreeList list;
  std::multimap<size_t, CachedBlock*> model;
  std::vector<std::unique_ptr<CachedBlock>> blocks;
  for (int step = 0; step < 20000; ++step) {
    const size_t units = 1 + (random() >> (4 + random() % 28));
    const auto smallest = model.lower_bound(units * kBlockUnit);
    CachedBlock* const found = list.find(units * kBlockUnit);
    ASSERT_EQ(found == nullptr, smallest == model.end());
    if (found != nullptr) {
      ASSERT_GE(found->bytes, units * kBlockUnit);
      ASSERT_LE(found->bytes, smallest->first + smallest->first / 64);
    }
    if (found != nullptr && random() % 2 == 0) {
      list.remove(*found);
      for (auto entry = model.lower_bound(found->bytes);; ++entry) {
        if (entry->second != found) continue;
        model.erase(entry);
        break;
      }
    } else {
      blocks.push_back(std::make_unique<CachedBlock>());
      list.insert(sized(*blocks.back(), units));
      model.emplace(units * kBlockUnit, blocks.back().get());
    }
    ASSERT_EQ(list.largest_bytes(), model.empty() ? 0 : model.rbegin()->first);
  }
}

TEST(SplitTest, PartsCoverTheBlockAndMergeRestoresIt) {
  CachedBlock block, right, rest;
  block.address = reinterpret_cast<void*>(0x10000);
  block.freed_at = 5;
  block.next = &right;
  right.previous = &block;
  split(sized(block, 8), 3 * kBlockUnit, rest);
  EXPECT_EQ(block.bytes, 3 * kBlockUnit);
  EXPECT_EQ(rest.address, reinterpret_cast<void*>(0x10000 + 3 * kBlockUnit));
  EXPECT_EQ(rest.bytes, 5 * kBlockUnit);
  EXPECT_EQ(rest.freed_at, 5u);
  EXPECT_EQ(rest.previous, &block);
  EXPECT_EQ(rest.next, &right);
  EXPECT_EQ(right.previous, &rest);
  rest.freed_at = 9;
  merge_with_next(block);
  EXPECT_EQ(block.bytes, 8 * kBlockUnit);
  EXPECT_EQ(block.freed_at, 9u);
  EXPECT_EQ(block.next, &right);
  EXPECT_EQ(right.previous, &block);
}

}  // namespace
}  // namespace npu
