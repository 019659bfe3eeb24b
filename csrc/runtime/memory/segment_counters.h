// What an allocator counts about its segments: pure data, guarded by the allocator's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "runtime/memory/stats.h"

namespace npu {

class SegmentCounters {
 public:
  int64_t reserved_bytes() const noexcept { return reserved_bytes_[0].current; }

  void add(StatType kind, size_t bytes, bool is_oversize) noexcept { change(kind, bytes, is_oversize, 1); }
  void remove(StatType kind, size_t bytes, bool is_oversize) noexcept { change(kind, bytes, is_oversize, -1); }

  void reset_peaks() noexcept {
    for_each([](StatValue& value) { value.peak = value.current; });
  }
  void reset_accumulated() noexcept {
    for_each([](StatValue& value) { value.allocated = value.freed = 0; });
  }

  void add_to(AllocatorStats& stats) const {
    stats.segment = segments_;
    stats.reserved_bytes = reserved_bytes_;
    stats.oversize_segments = oversize_;
  }

 private:
  static void change(StatValue& value, int64_t amount) noexcept {
    value.current += amount;
    value.peak = std::max(value.peak, value.current);
    (amount > 0 ? value.allocated : value.freed) += std::abs(amount);
  }

  void change(StatType kind, size_t bytes, bool is_oversize, int64_t sign) noexcept {
    for (const size_t column : {size_t{0}, static_cast<size_t>(kind)}) {
      change(segments_[column], sign);
      change(reserved_bytes_[column], sign * static_cast<int64_t>(bytes));
    }
    if (is_oversize) change(oversize_, sign);
  }

  template <class Function>
  void for_each(const Function& function) noexcept {
    for (StatValue& value : segments_) function(value);
    for (StatValue& value : reserved_bytes_) function(value);
    function(oversize_);
  }

  StatArray<StatValue> segments_;
  StatArray<StatValue> reserved_bytes_;
  StatValue oversize_;
};

}  // namespace npu
