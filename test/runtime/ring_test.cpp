#include "runtime/driver/sim/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace npu::testing {
namespace {

const TaskInfo kTask{.name = "test::task", .run = [](const TaskContext&, const void*) {}};

struct TestRing {
  explicit TestRing(size_t slots) : ring(claimed, slots) {}

  bool push(const void* arguments, size_t bytes) {
    uint64_t number = 0;
    Slot* slot = ring.begin({kTask, arguments, bytes}, number);
    if (slot != nullptr) ring.publish(*slot, number);
    return slot != nullptr;
  }

  std::atomic<uint64_t> claimed{0};
  Ring ring;
};

TEST(RingTest, IsFullAfterAsManyTasksAsSlots) {
  TestRing test(16);
  int value = 0;
  for (; value < 16; ++value) ASSERT_TRUE(test.push(&value, sizeof(value)));
  EXPECT_FALSE(test.push(&value, sizeof(value)));
  for (int expected = 0; expected < 16; ++expected) {
    Slot* front = test.ring.front();
    ASSERT_NE(front, nullptr);
    EXPECT_EQ(*static_cast<int*>(front->arguments()), expected);
    test.ring.pop(*front);
  }
  EXPECT_EQ(test.ring.front(), nullptr);
  EXPECT_TRUE(test.push(&value, sizeof(value)));
  EXPECT_EQ(test.ring.next_number(), 17u);
}

TEST(RingTest, AnUnpublishedSlotHidesThoseBehindIt) {
  TestRing test(16);
  uint64_t first = 0;
  Slot* slot = test.ring.begin({kTask}, first);
  ASSERT_TRUE(test.push(nullptr, 0));
  EXPECT_EQ(test.ring.front(), nullptr);
  test.ring.publish(*slot, first);
  EXPECT_EQ(test.ring.front(), slot);
}

TEST(RingTest, ArenaBlocksComeBackWithTheirSlots) {
  TestRing test(16);
  std::vector<std::byte> block(200'000);
  int queued = 0;
  while (test.push(block.data(), block.size())) ++queued;  // the arena is full before the ring is
  EXPECT_GE(queued, 3);
  EXPECT_LT(queued, 16);
  for (int round = 0; round < 100; ++round) {
    std::fill(block.begin(), block.end(), static_cast<std::byte>(round));
    test.ring.pop(*test.ring.front());
    ASSERT_TRUE(test.push(block.data(), block.size()));
  }
  EXPECT_FALSE(test.push(block.data(), block.size()));
}

TEST(RingTest, BlocksTooLargeForTheArenaUseTheHeap) {
  TestRing test(16);
  std::vector<std::byte> block(3'000'000, std::byte{7});
  ASSERT_TRUE(test.push(block.data(), block.size()));
  Slot* front = test.ring.front();
  EXPECT_EQ(std::memcmp(front->arguments(), block.data(), block.size()), 0);
  test.ring.pop(*front);
}

TEST(RingTest, ManyProducersLoseAndRepeatNothing) {
  constexpr uint64_t kProducers = 4, kTasks = 20'000;
  TestRing test(64);
  std::vector<std::thread> producers;
  for (uint64_t p = 0; p < kProducers; ++p)
    producers.emplace_back([&, p] {
      std::vector<uint64_t> arguments(40);  // every third task's arguments lie in the arena
      for (uint64_t i = 0; i < kTasks; ++i) {
        arguments[0] = p * kTasks + i;
        while (!test.push(arguments.data(), i % 3 == 0 ? 320 : 8)) std::this_thread::yield();
      }
    });
  std::vector<uint64_t> next(kProducers, 0);
  for (uint64_t taken = 0; taken < kProducers * kTasks;) {
    Slot* front = test.ring.front();
    if (front == nullptr) {
      std::this_thread::yield();
      continue;
    }
    const uint64_t value = *static_cast<uint64_t*>(front->arguments());
    ASSERT_EQ(value % kTasks, next[value / kTasks]++);
    test.ring.pop(*front);
    ++taken;
  }
  for (std::thread& producer : producers) producer.join();
}

}  // namespace
}  // namespace npu::testing
