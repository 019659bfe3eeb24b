// Who wants to be told when a counter that only grows reaches a number: parked streams, host threads, timing events.
//
// The side that advances the counter pays one load when nobody waits. Threads: any method from any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/clock.h"
#include "runtime/driver/driver.h"
#include "runtime/thread_annotations.h"

namespace npu {

class CompletionList {
 public:
  explicit CompletionList(const std::atomic<uint64_t>& counter) : counter_(counter) {}

  // False when the counter has reached `number` already; nothing is kept then.
  bool add(Completion& completion, uint64_t number);
  // False when on_complete has been called; it has also returned by then.
  bool remove(Completion& completion);
  // To be called after each store to the counter. The store must be sequentially consistent: it pairs with the
  // store of the smallest number in add(), so that either we see the new waiter here or the waiter sees the new value there.
  void advanced(uint64_t value, const Clock& clock) {
    if (value >= smallest_.load(std::memory_order_seq_cst)) [[unlikely]]
      fire(value, clock);
  }

 private:
  void fire(uint64_t value, const Clock& clock);
  void link(Completion& completion) REQUIRES(mutex_);
  void unlink(Completion& completion) REQUIRES(mutex_);

  const std::atomic<uint64_t>& counter_;
  std::atomic<uint64_t> smallest_{UINT64_MAX};
  Mutex mutex_;
  Completion* first_ GUARDED_BY(mutex_) = nullptr;  // by number
  Completion* last_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace npu
