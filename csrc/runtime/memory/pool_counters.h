// What a pool counts about its blocks, without a shared cache line: pure data, guarded by the pool's lock.
//
// The peak of a sum over pools would need all pools at each allocation. Instead each pool has an allowance for each counter,
// and the allowances of all pools together never exceed the peak so far. While every pool stays within its allowance there
// is no new peak; a pool that rises above it has the sums taken and the allowances dealt anew.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "runtime/memory/stats.h"

namespace npu {

enum class Counter : uint8_t {
  kAllocation,
  kActive,
  kInactiveSplit,
  kAllocatedBytes,
  kActiveBytes,
  kInactiveSplitBytes,
  kRequestedBytes,
  kOversizeAllocation,
};
inline constexpr size_t kCounters = 8;

// One number for each column and counter.
using Amounts = StatArray<std::array<int64_t, kCounters>>;

// to = function(to, from), element by element.
template <class Function>
void combine(Amounts& to, const Amounts& from, const Function& function) {
  for (size_t column = 0; column < kStatTypes; ++column)
    for (size_t i = 0; i < kCounters; ++i) to[column][i] = function(to[column][i], from[column][i]);
}

class PoolCounters {
 public:
  void increase(StatType kind, Counter counter, int64_t amount) noexcept {
    const auto column = static_cast<size_t>(kind), i = static_cast<size_t>(counter);
    increases_[column][i] += amount;
    above_ |= (room_[0][i] -= amount) | (room_[column][i] -= amount);
  }
  void decrease(StatType kind, Counter counter, int64_t amount) noexcept {
    const auto column = static_cast<size_t>(kind), i = static_cast<size_t>(counter);
    room_[0][i] += amount;
    room_[column][i] += amount;
  }

  Amounts increases() const noexcept {
    Amounts amounts = increases_;
    for (size_t i = 0; i < kCounters; ++i) amounts[0][i] = amounts[1][i] + amounts[2][i];
    return amounts;
  }
  Amounts current() const noexcept {
    Amounts amounts = allowance_;
    combine(amounts, room_, [](int64_t allowance, int64_t room) { return allowance - room; });
    return amounts;
  }

  bool is_above_allowance() const noexcept { return above_ < 0; }
  void set_allowance(const Amounts& allowance) noexcept {
    combine(room_, allowance_, [](int64_t room, int64_t before) { return room - before; });
    combine(room_, allowance, [](int64_t room, int64_t now) { return room + now; });
    allowance_ = allowance;
    above_ = 0;
  }

 private:
  Amounts increases_{};  // since the beginning; the aggregate is not kept
  Amounts allowance_{};
  Amounts room_{};     // allowance - current
  int64_t above_ = 0;  // negative once a room was
};

}  // namespace npu
