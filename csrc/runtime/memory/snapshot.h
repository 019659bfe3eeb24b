// What a caching allocator holds at one moment, for people and tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/driver/driver.h"
#include "runtime/memory/stats.h"

namespace npu {

struct BlockSnapshot {
  enum class State : uint8_t {
    kAllocated,    // the program has it
    kPendingFree,  // freed, but other streams still use it
    kInactive,     // cached
  };

  uintptr_t address = 0;  // device address
  size_t bytes = 0;       // rounded
  size_t requested_bytes = 0;
  State state = State::kInactive;
};

// One driver allocation. Its blocks are in the order of their addresses and leave no gaps.
struct SegmentSnapshot {
  uintptr_t address = 0;
  size_t bytes = 0;
  StatType kind = StatType::kSmallPool;
  StreamId stream = 0;  // it is cached for
  std::vector<BlockSnapshot> blocks;
};

}  // namespace npu
