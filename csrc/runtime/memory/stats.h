// Counters of an allocator, with the meaning PyTorch gives them for CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace npu {

struct StatValue {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // sum of all increases
  int64_t freed = 0;      // sum of all decreases
};

// PyTorch's three columns.
enum class StatType : uint8_t { kAggregate, kSmallPool, kLargePool };
inline constexpr size_t kStatTypes = 3;
template <class T>
using StatArray = std::array<T, kStatTypes>;

struct AllocatorStats {
  StatArray<StatValue> allocation, segment, active, inactive_split;  // counts
  StatArray<StatValue> allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  StatValue oversize_allocations, oversize_segments;  // counts, of what is not cut: AllocatorOptions::max_split_bytes
  int64_t alloc_retries = 0;                          // the cache was released to make an allocation fit
  int64_t ooms = 0;                                   // allocations that failed after that
  int64_t sync_all_streams = 0;
  int64_t device_allocs = 0;  // driver allocations
  int64_t device_frees = 0;
};

}  // namespace npu
