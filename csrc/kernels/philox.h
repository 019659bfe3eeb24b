// Philox4x32-10: a counter-based random generator (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", 2011). The same key and counter give the same four words on any thread at any time.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace npu::kernels {

// A place in a generator's sequence.
struct RandomState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};
// How far an operator moves the offset; fixed, so that the next operator's place does not depend on data.
inline constexpr uint64_t kRandomStep = 4;

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock philox(uint64_t key, PhiloxBlock counter) {
  auto low = static_cast<uint32_t>(key);
  auto high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

// Block `index` of the sequence at `state`. `draw` counts further blocks of the same index (rejection methods).
inline PhiloxBlock philox(const RandomState& state, uint64_t index, uint32_t draw = 0) {
  return philox(state.seed, {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32) ^ (draw << 16),
                             static_cast<uint32_t>(state.offset), static_cast<uint32_t>(state.offset >> 32)});
}

constexpr uint64_t word64(const PhiloxBlock& block, int half) {
  return block[2 * half] | static_cast<uint64_t>(block[2 * half + 1]) << 32;
}

// As many numbers as one element needs: methods that draw until a sample fits.
class Draws {
 public:
  Draws(const RandomState& state, uint64_t element) : state_(state), element_(element) {}

  uint32_t word() {
    if (used_ == 4) {
      block_ = philox(state_, element_, draw_++);
      used_ = 0;
    }
    return block_[static_cast<size_t>(used_++)];
  }
  double uniform() { return (word() + 0.5) * 0x1p-32; }  // in (0, 1)
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  const RandomState& state_;
  const uint64_t element_;
  PhiloxBlock block_{};
  int used_ = 4;
  uint32_t draw_ = 0;
};

}  // namespace npu::kernels
