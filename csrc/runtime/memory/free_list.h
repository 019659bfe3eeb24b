// Free blocks by size, and how blocks are cut and joined: pure data, no lock, no device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/memory/block.h"

namespace npu {

inline constexpr size_t kBlockUnit = 512;  // sizes and addresses of blocks are multiples

// Bins of sizes: exact up to 32 KiB, then 64 for each power of two. A bitmap finds the next bin that is not empty.
class FreeList {
 public:
  void insert(CachedBlock& block) noexcept;
  void remove(CachedBlock& block) noexcept;

  // A block of at least `bytes` that is at most 1/64 larger than the smallest such block; null when there is none.
  CachedBlock* find(size_t bytes) const noexcept;
  size_t largest_bytes() const noexcept;

 private:
  static constexpr size_t kBinsOfOctave = 64;
  static constexpr size_t kBins = 24 * kBinsOfOctave;  // the last one holds everything from 256 GiB up
  static size_t bin_of(size_t bytes) noexcept;
  size_t next_bin(size_t bin) const noexcept;  // the first bin >= `bin` that is not empty; kBins when there is none

  std::array<CachedBlock*, kBins> bins_{};
  std::array<uint64_t, kBins / 64> occupied_{};  // one bit a bin
  uint64_t occupied_words_ = 0;                  // one bit a word
};

// Leaves the first `bytes` of `block` to it and gives the others to `rest`, which must be spare.
void split(CachedBlock& block, size_t bytes, CachedBlock& rest) noexcept;

// `left` takes over its next neighbour, which becomes spare. Both must be out of any list.
void merge_with_next(CachedBlock& left) noexcept;

}  // namespace npu
