#include "runtime/scheduler.h"

#include "runtime/driver/driver.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr int kLevels = kLeastPriority - kGreatestPriority + 1;

// A hand-over to an awake worker costs the launching thread nothing and the task some 100-200 ns; shorter tasks are
// cheaper where they are. Waking a sleeping worker costs the launching thread 7-15 us, so a stream without a worker keeps
// short tasks, until their sum shows that a worker would pay.
constexpr uint32_t kInlineNsWatched = 300;
constexpr uint32_t kInlineNsUnwatched = 10'000;
constexpr int64_t kInlineDebtNs = 20'000;
constexpr int64_t kDebtWindowNs = 100'000;

constexpr unsigned kTasksPerTurn = 16;

class PriorityScheduler final : public Scheduler {
 public:
  PriorityScheduler(const Clock& clock, bool inline_tasks) : clock_(clock), inline_tasks_(inline_tasks) {}

  void push(Strand& strand) override {
    NPU_ASSERT(!strand.ready);
    List& list = lists_[level(strand)];
    strand.ready = true;
    strand.next = nullptr;
    strand.previous = list.last;
    (list.last != nullptr ? list.last->next : list.first) = &strand;
    list.last = &strand;
    count(level(strand), +1);
  }

  Strand* pop() override {
    for (List& list : lists_) {
      if (list.first == nullptr) continue;
      Strand* strand = list.first;
      remove(*strand);
      return strand;
    }
    return nullptr;
  }

  bool remove(Strand& strand) override {
    if (!strand.ready) return false;
    List& list = lists_[level(strand)];
    (strand.previous != nullptr ? strand.previous->next : list.first) = strand.next;
    (strand.next != nullptr ? strand.next->previous : list.last) = strand.previous;
    strand.ready = false;
    count(level(strand), -1);
    return true;
  }

  bool run_inline(const TaskInfo& info, uint32_t cost_ns, bool watched) override {
    if (!inline_tasks_ || (info.flags & kInlineable) == 0 || cost_ns == 0) return false;
    if (cost_ns <= kInlineNsWatched) return true;
    if (watched || cost_ns > kInlineNsUnwatched) return false;
    const int64_t now = clock_.now_ns();
    if (now - debt_since_.load(std::memory_order_relaxed) > kDebtWindowNs) {
      debt_since_.store(now, std::memory_order_relaxed);
      debt_ns_.store(0, std::memory_order_relaxed);
    }
    return debt_ns_.fetch_add(cost_ns, std::memory_order_relaxed) < kInlineDebtNs;
  }

  bool should_yield(const Strand& strand, unsigned tasks) const override {
    for (int i = 0; i < level(strand); ++i)
      if (counts_[i].load(std::memory_order_relaxed) > 0) return true;
    return tasks >= kTasksPerTurn && counts_[level(strand)].load(std::memory_order_relaxed) > 0;
  }

 private:
  struct List {
    Strand* first = nullptr;
    Strand* last = nullptr;
  };

  static int level(const Strand& strand) { return strand.priority() - kGreatestPriority; }
  void count(int level, int change) {
    counts_[level].store(counts_[level].load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
  }

  const Clock& clock_;
  const bool inline_tasks_;
  std::array<List, kLevels> lists_;
  std::array<std::atomic<int>, kLevels> counts_{};
  std::atomic<int64_t> debt_since_{0};
  std::atomic<int64_t> debt_ns_{0};
};

}  // namespace

std::unique_ptr<Scheduler> make_priority_scheduler(const Clock& clock, bool inline_tasks) {
  return std::make_unique<PriorityScheduler>(clock, inline_tasks);
}

}  // namespace npu
