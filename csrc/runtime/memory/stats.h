// Counters of an allocator, with the meaning PyTorch gives them for CUDA.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace npu {

// A plain copy of one counter.
struct StatValue {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;  // sum of all increases
  int64_t freed = 0;      // sum of all decreases
};

// A counter that any thread may change; peak is exact up to concurrent changes.
class Stat {
 public:
  void increase(int64_t amount) noexcept {
    allocated_.fetch_add(amount, std::memory_order_relaxed);
    const int64_t now = current_.fetch_add(amount, std::memory_order_relaxed) + amount;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }
  void decrease(int64_t amount) noexcept {
    current_.fetch_sub(amount, std::memory_order_relaxed);
    freed_.fetch_add(amount, std::memory_order_relaxed);
  }
  void reset_peak() noexcept { peak_.store(current_.load(std::memory_order_relaxed), std::memory_order_relaxed); }
  void reset_accumulated() noexcept {
    allocated_.store(0, std::memory_order_relaxed);
    freed_.store(0, std::memory_order_relaxed);
  }
  StatValue read() const noexcept {
    return {current_.load(std::memory_order_relaxed), peak_.load(std::memory_order_relaxed),
            allocated_.load(std::memory_order_relaxed), freed_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<int64_t> current_{0}, peak_{0}, allocated_{0}, freed_{0};
};

// PyTorch's three columns.
enum class StatType : uint8_t { kAggregate, kSmallPool, kLargePool };
template <class T>
using StatArray = std::array<T, 3>;

template <class S>
struct AllocatorStatsOf {
  StatArray<S> allocation, segment, active, inactive_split;                            // counts
  StatArray<S> allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
};

struct AllocatorStats : AllocatorStatsOf<StatValue> {
  int64_t alloc_retries = 0;      // the cache was released to make an allocation fit
  int64_t ooms = 0;               // allocations that failed after that
  int64_t sync_all_streams = 0;
  int64_t device_allocs = 0;      // driver allocations
  int64_t device_frees = 0;
};

}  // namespace npu
