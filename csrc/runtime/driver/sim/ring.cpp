#include "runtime/driver/sim/ring.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>
#include <cstring>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 20;
constexpr size_t kLargestArenaBlock = kArenaBytes / 4;
constexpr size_t kArenaAlignment = 64;

// Zero-filled and not yet backed by memory.
void* map_pages(size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  NPU_CHECK(pages != MAP_FAILED, kLimit, "cannot map ", bytes,
            " bytes for a stream's queue; the machine or `ulimit -v` is ",
            "at its limit: free memory or use fewer streams");
  return pages;
}

}  // namespace

Ring::Ring(std::atomic<uint64_t>& claimed, size_t slots)
    : claimed_(claimed), mask_(slots - 1), shift_(static_cast<unsigned>(std::countr_zero(slots))) {
  NPU_ASSERT(std::has_single_bit(slots));
  slots_ = static_cast<Slot*>(map_pages(slots * sizeof(Slot) + kArenaBytes));
  arena_ = reinterpret_cast<std::byte*>(slots_ + slots);
}

Ring::~Ring() { munmap(slots_, capacity() * sizeof(Slot) + kArenaBytes); }

Slot* Ring::claim(uint64_t& position) noexcept {
  position = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    Slot& slot = slots_[position & mask_];
    const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
    const uint64_t free_sequence = 2 * (position >> shift_);
    if (sequence == free_sequence) {
      if (claimed_.compare_exchange_weak(position, position + 1, std::memory_order_acq_rel)) return &slot;
    } else if (sequence < free_sequence) {
      return nullptr;  // the task one turn earlier has not been consumed
    } else {
      position = claimed_.load(std::memory_order_relaxed);
    }
  }
}

Slot* Ring::begin(const Submission& submission, uint64_t& number) {
  if (submission.bytes > kInlineArgumentBytes) return begin_outside(submission, number);
  uint64_t position;
  Slot* slot = claim(position);
  if (slot == nullptr) return nullptr;
  slot->info = &submission.info;
  slot->outside = nullptr;
  slot->arena_end = 0;
  slot->traceback = submission.traceback;
  if (submission.bytes != 0) std::memcpy(slot->inside, submission.arguments, submission.bytes);
  number = position + 1;
  return slot;
}

Slot* Ring::begin_outside(const Submission& submission, uint64_t& number) {
  const bool in_arena = submission.bytes <= kLargestArenaBlock;
  void* heap = in_arena ? nullptr : std::malloc(submission.bytes);
  if (!in_arena && heap == nullptr) throw std::bad_alloc();

  MutexLock lock(arena_mutex_);
  const uint64_t head_before = arena_head_;
  uint64_t end = 0;
  void* outside = in_arena ? take_from_arena(submission.bytes, end) : heap;
  uint64_t position;
  Slot* slot = outside != nullptr ? claim(position) : nullptr;
  if (slot == nullptr) {
    arena_head_ = head_before;
    std::free(heap);
    return nullptr;
  }
  std::memcpy(outside, submission.arguments, submission.bytes);
  slot->info = &submission.info;
  slot->outside = outside;
  slot->arena_end = end;
  slot->traceback = submission.traceback;
  number = position + 1;
  return slot;
}

void* Ring::take_from_arena(size_t bytes, uint64_t& end) {
  bytes = (bytes + kArenaAlignment - 1) & ~(kArenaAlignment - 1);
  uint64_t begin = arena_head_;
  if (begin % kArenaBytes + bytes > kArenaBytes) begin += kArenaBytes - begin % kArenaBytes;  // a block never wraps
  end = begin + bytes;
  if (end - arena_tail_.load(std::memory_order_acquire) > kArenaBytes) return nullptr;
  arena_head_ = end;
  return arena_ + begin % kArenaBytes;
}

Slot* Ring::front() const noexcept { return published(head_) ? &slots_[head_ & mask_] : nullptr; }

void Ring::pop(Slot& front) noexcept {
  if (front.outside != nullptr) {
    if (front.arena_end != 0)
      arena_tail_.store(front.arena_end, std::memory_order_release);
    else
      std::free(front.outside);
  }
  delete front.traceback;
  const uint64_t turn = head_ >> shift_;
  ++head_;
  front.sequence.store(2 * turn + 2, std::memory_order_release);
}

}  // namespace npu
