#include "runtime/driver/sim/completion_list.h"

#include <algorithm>

namespace npu {

bool CompletionList::add(Completion& completion, uint64_t number) {
  MutexLock lock(mutex_);
  completion.number_ = number;
  completion.next_ = first_;
  first_ = &completion;
  update_smallest();
  if (counter_.load(std::memory_order_seq_cst) < number) return true;
  unlink(completion);
  return false;
}

bool CompletionList::remove(Completion& completion) {
  MutexLock lock(mutex_);
  return unlink(completion);
}

void CompletionList::fire(uint64_t value, const Clock& clock) {
  const int64_t now = clock.now_ns();
  // on_complete runs under the lock: remove() may then promise that it has returned.
  MutexLock lock(mutex_);
  Completion** link = &first_;
  while (*link != nullptr) {
    Completion& completion = **link;
    if (completion.number_ <= value) {
      *link = completion.next_;
      completion.on_complete(now);
    } else {
      link = &completion.next_;
    }
  }
  update_smallest();
}

bool CompletionList::unlink(Completion& completion) {
  for (Completion** link = &first_; *link != nullptr; link = &(*link)->next_) {
    if (*link != &completion) continue;
    *link = completion.next_;
    update_smallest();
    return true;
  }
  return false;
}

void CompletionList::update_smallest() {
  uint64_t smallest = UINT64_MAX;
  for (Completion* completion = first_; completion != nullptr; completion = completion->next_)
    smallest = std::min(smallest, completion->number_);
  smallest_.store(smallest, std::memory_order_seq_cst);
}

}  // namespace npu
