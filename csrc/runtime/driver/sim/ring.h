// The slots of one queue: bounded, many producers, one consumer at a time.
//
// A slot is four cache lines: a header and the arguments. Arguments that do not fit lie in the ring's arena, a FIFO of
// bytes whose blocks are given back together with their slots; blocks too large for the arena are allocated on the heap.
//
// The sequence of a slot tells its state without a lock. With turn = position / slots it is
//   2 * turn      free for `position`
//   2 * turn + 1  published
//   2 * turn + 2  consumed, that is: free for position + slots
// so that zero-filled memory is a valid empty ring and unused slots cost no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/driver/driver.h"
#include "runtime/task.h"
#include "runtime/thread_annotations.h"

namespace npu {

struct alignas(64) Slot {
  std::atomic<uint64_t> sequence;
  const TaskInfo* info;
  void* outside;                 // arguments that are not in the slot; null = they are
  const std::string* traceback;  // owned
  uint64_t arena_end;  // where the arena's tail goes when the slot is consumed; 0 = `outside` is not in the arena
  std::byte inside[kInlineArgumentBytes];

  void* arguments() { return outside != nullptr ? outside : inside; }
};
static_assert(sizeof(Slot) == 256, "a slot is four cache lines");

class Ring {
 public:
  // `claimed` is the producers' counter of positions; `slots` a power of two. Throws kLimit when the machine has no memory.
  Ring(std::atomic<uint64_t>& claimed, size_t slots);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Producers. begin() copies the submission into the next slot; the consumer sees it after publish(). A slot once begun
  // must be published. number = position + 1. Null = full, and nothing has happened.
  Slot* begin(const Submission& submission, uint64_t& number);
  void publish(Slot& slot, uint64_t number) noexcept {
    slot.sequence.store(2 * ((number - 1) >> shift_) + 1, std::memory_order_seq_cst);
  }

  // The consumer. front() is null when the next slot is not published yet.
  Slot* front() const noexcept;
  uint64_t next_number() const noexcept { return head_ + 1; }
  void pop(Slot& front) noexcept;  // gives the slot and its arguments back

  // Whether front() would find a task. For threads that are not the consumer.
  bool has_front(uint64_t consumed) const noexcept { return published(consumed); }
  size_t capacity() const noexcept { return mask_ + 1; }

 private:
  Slot* claim(uint64_t& position) noexcept;
  Slot* begin_outside(const Submission& submission, uint64_t& number);
  bool published(uint64_t position) const noexcept {
    return slots_[position & mask_].sequence.load(std::memory_order_seq_cst) == 2 * (position >> shift_) + 1;
  }
  void* take_from_arena(size_t bytes, uint64_t& end) REQUIRES(arena_mutex_);

  std::atomic<uint64_t>& claimed_;
  const uint64_t mask_;
  const unsigned shift_;
  Slot* slots_ = nullptr;
  uint64_t head_ = 0;  // the consumer's; handed over with the queue's state
  std::byte* arena_ = nullptr;
  Mutex arena_mutex_;  // producers of large arguments: keeps the order of blocks equal to the order of slots
  uint64_t arena_head_ GUARDED_BY(arena_mutex_) = 0;
  std::atomic<uint64_t> arena_tail_{0};
};

}  // namespace npu
