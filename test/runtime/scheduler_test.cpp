#include "runtime/scheduler.h"

#include <gtest/gtest.h>

#include <memory>

#include "runtime/driver/driver.h"

namespace npu::testing {
namespace {

class TestStrand final : public Strand {
 public:
  explicit TestStrand(int priority) { priority_ = priority; }
};

class ManualClock final : public Clock {
 public:
  int64_t now_ns() const noexcept override { return now; }
  int64_t now = 1'000'000'000;
};

const TaskInfo kInlineableTask{.name = "test::inlineable", .run = [](const TaskContext&, const void*) {}};
const TaskInfo kQueuedTask{.name = "test::queued", .run = [](const TaskContext&, const void*) {}, .flags = 0};

TEST(SchedulerTest, PopsByPriorityThenInOrderOfArrival) {
  const auto scheduler = make_priority_scheduler(Clock::host(), true);
  TestStrand low1(kLeastPriority), low2(kLeastPriority), high(kGreatestPriority);
  for (TestStrand* strand : {&low1, &low2, &high}) scheduler->push(*strand);
  EXPECT_EQ(scheduler->pop(), &high);
  EXPECT_EQ(scheduler->pop(), &low1);
  EXPECT_EQ(scheduler->pop(), &low2);
  EXPECT_EQ(scheduler->pop(), nullptr);
}

TEST(SchedulerTest, RemovesFromAnywhereOnce) {
  const auto scheduler = make_priority_scheduler(Clock::host(), true);
  TestStrand a(0), b(0), c(0);
  for (TestStrand* strand : {&a, &b, &c}) scheduler->push(*strand);
  EXPECT_TRUE(scheduler->remove(b));
  EXPECT_FALSE(scheduler->remove(b));
  EXPECT_EQ(scheduler->pop(), &a);
  EXPECT_EQ(scheduler->pop(), &c);
}

TEST(SchedulerTest, YieldsAtOnceToHigherPriorityAndAfterATurnToEqual) {
  const auto scheduler = make_priority_scheduler(Clock::host(), true);
  TestStrand running(-1), equal(-1), higher(kGreatestPriority);
  EXPECT_FALSE(scheduler->should_yield(running, 1'000'000));
  scheduler->push(equal);
  EXPECT_FALSE(scheduler->should_yield(running, 1));
  EXPECT_TRUE(scheduler->should_yield(running, 100));
  scheduler->push(higher);
  EXPECT_TRUE(scheduler->should_yield(running, 0));
}

TEST(SchedulerTest, OnlyTinyInlineableTasksOfKnownCostRunInline) {
  ManualClock clock;
  const auto scheduler = make_priority_scheduler(clock, true);
  EXPECT_TRUE(scheduler->run_inline(kInlineableTask, 100, true));
  EXPECT_FALSE(scheduler->run_inline(kInlineableTask, 5'000, true));
  EXPECT_TRUE(scheduler->run_inline(kInlineableTask, 5'000, false));
  EXPECT_FALSE(scheduler->run_inline(kInlineableTask, 1'000'000, false));
  EXPECT_FALSE(scheduler->run_inline(kInlineableTask, 0, false));
  EXPECT_FALSE(scheduler->run_inline(kQueuedTask, 100, false));
  EXPECT_FALSE(make_priority_scheduler(clock, false)->run_inline(kInlineableTask, 100, false));
}

TEST(SchedulerTest, ABusyPeriodEndsInliningUntilItIsOver) {
  ManualClock clock;
  const auto scheduler = make_priority_scheduler(clock, true);
  int inlined = 0;
  while (scheduler->run_inline(kInlineableTask, 5'000, false)) ASSERT_LT(++inlined, 100);
  EXPECT_GE(inlined, 2);
  clock.now += 1'000'000;
  EXPECT_TRUE(scheduler->run_inline(kInlineableTask, 5'000, false));
}

}  // namespace
}  // namespace npu::testing
