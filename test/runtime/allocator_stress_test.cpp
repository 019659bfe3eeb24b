// Seeded threads against a simple model: what a live block holds, and what no two live blocks may share.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "fake_driver.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kThreads = 4;
constexpr int kQueues = 3;

struct Owned {
  Block* block;
  uint64_t mark;
};

// Marks the first and last bytes of a block with a number that no other block has.
class Program {
 public:
  Program(FakeDriver& driver, CachingAllocator& allocator) : driver_(driver), allocator_(allocator) {}

  void run(unsigned seed, int steps) {
    std::mt19937 random(seed);
    std::vector<Owned> mine;
    for (int step = 0; step < steps; ++step) {
      FakeQueue& queue = queues_[random() % kQueues];
      switch (random() % 8) {
        case 0: queue.submit(); break;
        case 1: queue.complete_until(queue.submitted()); break;
        case 2:
          if (!mine.empty()) allocator_.record_stream(mine[random() % mine.size()].block, queue);
          break;
        case 3: pass_on(random, mine); break;
        case 4:
        case 5:
          if (!mine.empty()) free(random, mine);
          break;
        default: allocate(random, queue, mine);
      }
      if (random() % 64 == 0) allocator_.release_cached();
      if (random() % 64 == 0) allocator_.stats();
    }
    while (!mine.empty()) free(random, mine);
  }

  void free_what_was_passed_on() {
    std::mt19937 random(0);
    while (!passed_on_.empty()) free(random, passed_on_);
  }

 private:
  uint64_t* first_word(const Block& block) {
    return reinterpret_cast<uint64_t*>(driver_.engine_pointer(block.address));
  }
  uint64_t* last_word(const Block& block) { return first_word(block) + block.bytes / sizeof(uint64_t) - 1; }

  void allocate(std::mt19937& random, FakeQueue& queue, std::vector<Owned>& mine) {
    const size_t bytes = random() % 16 == 0 ? random() % (4 * kMiB) : random() % (256 << 10);
    try {
      Owned owned{allocator_.allocate(bytes, queue, 0), next_mark_.fetch_add(1)};
      *first_word(*owned.block) = *last_word(*owned.block) = owned.mark;
      mine.push_back(owned);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kOutOfMemory);
      while (!mine.empty()) free(random, mine);
    }
  }

  void free(std::mt19937& random, std::vector<Owned>& from) {
    std::swap(from[random() % from.size()], from.back());
    const Owned owned = from.back();
    from.pop_back();
    ASSERT_EQ(*first_word(*owned.block), owned.mark);
    ASSERT_EQ(*last_word(*owned.block), owned.mark);
    allocator_.free(owned.block);
  }

  // Another thread will free it.
  void pass_on(std::mt19937& random, std::vector<Owned>& mine) {
    std::lock_guard lock(mutex_);
    if (!passed_on_.empty() && random() % 2 == 0) {
      mine.push_back(passed_on_.back());
      passed_on_.pop_back();
    } else if (!mine.empty()) {
      passed_on_.push_back(mine.back());
      mine.pop_back();
    }
  }

  FakeDriver& driver_;
  CachingAllocator& allocator_;
  FakeQueue queues_[kQueues];
  std::atomic<uint64_t> next_mark_{1};
  std::mutex mutex_;
  std::vector<Owned> passed_on_;
};

class AllocatorStressTest : public testing::TestWithParam<std::tuple<size_t, bool>> {};

TEST_P(AllocatorStressTest, LiveBlocksKeepTheirBytesAndCountersReturn) {
  const auto [capacity, deterministic] = GetParam();
  FakeDriver driver(capacity);
  CachingAllocator allocator(driver, 0, 0, deterministic);
  Program program(driver, allocator);
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= kThreads; ++seed)
    threads.emplace_back([&program, seed] { program.run(seed, 20000); });
  for (std::thread& thread : threads) thread.join();
  program.free_what_was_passed_on();

  const AllocatorStats stats = allocator.stats();
  for (int column = 0; column < 3; ++column) {
    EXPECT_EQ(stats.allocation[column].current, 0);
    EXPECT_EQ(stats.allocated_bytes[column].current, 0);
    EXPECT_EQ(stats.requested_bytes[column].current, 0);
    EXPECT_EQ(stats.allocated_bytes[column].allocated, stats.allocated_bytes[column].freed);
    EXPECT_LE(stats.allocated_bytes[column].peak, static_cast<int64_t>(capacity));
  }
  EXPECT_EQ(stats.reserved_bytes[0].current,
            static_cast<int64_t>(driver.memory_info(0).total_bytes - driver.memory_info(0).free_bytes));
}

TEST_P(AllocatorStressTest, OneThreadLeavesNothingBehind) {
  const auto [capacity, deterministic] = GetParam();
  FakeDriver driver(capacity);
  CachingAllocator allocator(driver, 0, 0, deterministic);
  FakeQueue queue;
  std::mt19937 random(3);
  std::vector<Block*> live;
  int64_t allocated = 0, peak = 0;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 40 && random() % 2 == 0) {
      live.push_back(allocator.allocate(random() % (128 << 10), queue, 0));
      allocated += static_cast<int64_t>(live.back()->bytes);
      peak = std::max(peak, allocated);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      allocated -= static_cast<int64_t>(live.back()->bytes);
      allocator.free(live.back());
      live.pop_back();
    }
  }
  EXPECT_EQ(allocator.stats().allocated_bytes[0].current, allocated);
  EXPECT_EQ(allocator.stats().allocated_bytes[0].peak, peak);
  for (Block* block : live) allocator.free(block);
  allocator.release_cached();
  const AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.active[0].current, 0);
  EXPECT_EQ(stats.inactive_split[0].current, 0);
  EXPECT_EQ(stats.reserved_bytes[0].current, 0);
  EXPECT_EQ(driver.memory_info(0).free_bytes, driver.memory_info(0).total_bytes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, AllocatorStressTest,
                         testing::Values(std::tuple(64 * kMiB, false), std::tuple(512 * kMiB, false),
                                         std::tuple(512 * kMiB, true)));

}  // namespace
}  // namespace npu
