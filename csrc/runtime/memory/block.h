// One piece of cached device memory: what the program gets, and how the allocator keeps it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/driver/driver.h"
#include "runtime/memory/stats.h"

namespace npu {

class BlockPool;

// One allocation. The caller keeps the pointer and hands it back; `address` is the device address.
struct Block {
  void* address = nullptr;
  size_t bytes = 0;  // rounded
  size_t requested_bytes = 0;
  DeviceIndex device = 0;
};

// Blocks of a segment (one driver allocation) form a list by address and lie in one BlockPool, whose lock guards them.
// While a block is live, `freed_at` and the numbers in `uses` belong to whoever frees it.
struct alignas(64) CachedBlock : Block {
  enum class State : uint8_t {
    kSpare,    // describes no memory
    kLive,     // the program has it
    kFreed,    // on its pool's stack
    kPending,  // waits for recorded uses
    kFree,     // in a free list
  };

  std::atomic<State> state{State::kSpare};
  StatType kind = StatType::kSmallPool;
  bool is_oversize = false;          // counted as such when it was handed out
  bool in_oversize_segment = false;  // of the segment's first block
  BlockPool* pool = nullptr;         // changes only while the whole segment is free
  CachedBlock* previous = nullptr;   // neighbours in the segment; null at its ends
  CachedBlock* next = nullptr;
  CachedBlock* before = nullptr;  // in whatever list the state says
  CachedBlock* after = nullptr;
  uint64_t freed_at = 0;         // tasks of the pool's queue up to this number may touch the memory
  StreamId stream = 0;           // it was allocated for, for observers
  std::vector<QueuePoint> uses;  // by other queues; the numbers are known when it is freed

  bool is_split() const noexcept { return previous != nullptr || next != nullptr; }
};

}  // namespace npu
