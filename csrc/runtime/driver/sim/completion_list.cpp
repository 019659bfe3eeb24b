#include "runtime/driver/sim/completion_list.h"

namespace npu {

bool CompletionList::add(Completion& completion, uint64_t number) {
  MutexLock lock(mutex_);
  completion.number_ = number;
  link(completion);
  if (counter_.load(std::memory_order_seq_cst) < number) return true;
  unlink(completion);
  return false;
}

bool CompletionList::remove(Completion& completion) {
  MutexLock lock(mutex_);
  if (!completion.listed_) return false;
  unlink(completion);
  return true;
}

void CompletionList::fire(uint64_t value, const Clock& clock) {
  const int64_t now = clock.now_ns();
  // on_complete runs under the lock: remove() may then promise that it has returned.
  MutexLock lock(mutex_);
  while (first_ != nullptr && first_->number_ <= value) {
    Completion& completion = *first_;
    unlink(completion);
    completion.on_complete(now);  // which may end its life
  }
}

// Numbers mostly arrive in order, so the place is found from the end.
void CompletionList::link(Completion& completion) {
  Completion* before = last_;
  while (before != nullptr && before->number_ > completion.number_) before = before->previous_;
  completion.previous_ = before;
  completion.next_ = before != nullptr ? before->next_ : first_;
  (completion.previous_ != nullptr ? completion.previous_->next_ : first_) = &completion;
  (completion.next_ != nullptr ? completion.next_->previous_ : last_) = &completion;
  completion.listed_ = true;
  smallest_.store(first_->number_, std::memory_order_seq_cst);
}

void CompletionList::unlink(Completion& completion) {
  (completion.previous_ != nullptr ? completion.previous_->next_ : first_) = completion.next_;
  (completion.next_ != nullptr ? completion.next_->previous_ : last_) = completion.previous_;
  completion.listed_ = false;
  smallest_.store(first_ != nullptr ? first_->number_ : UINT64_MAX, std::memory_order_seq_cst);
}

}  // namespace npu
