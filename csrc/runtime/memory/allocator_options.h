// What a program may tune of the caching allocators: PyTorch's settings, as plain numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/export.h"

namespace npu {

struct AllocatorOptions {
  // Blocks above 1 MiB and below 10 MiB are cut from segments of this size.
  size_t large_segment_bytes = size_t{20} << 20;
  // Blocks of this size and above are never cut, and serve no request below it.
  size_t max_split_bytes = SIZE_MAX;
  // A request from max_split_bytes up takes only cached blocks that are less than this larger than it.
  size_t max_non_split_rounding_bytes = size_t{20} << 20;
  // Part of the memory the allocator may use; before it grows beyond that, it gives back what has been free for longest.
  // 0 = never.
  double garbage_collection_threshold = 0;
  // Into how many steps the sizes between two powers of two are divided: from 1 MiB (and below), from 2 MiB, ... from
  // 32 GiB up. Sizes are rounded up to a step; 0 and 1 = to 512 bytes.
  std::array<size_t, 16> roundup_power2_divisions{};
};

// Options of the allocators that contexts make from now on. A layer that knows where a program states them registers a
// source, which may throw kInvalidArgument; the defaults without one.
using AllocatorOptionsSource = AllocatorOptions (*)();
NPU_API void set_allocator_options_source(AllocatorOptionsSource source) noexcept;
AllocatorOptions initial_allocator_options();

// What a request becomes: a multiple of 512 bytes, at least 512.
size_t block_bytes(size_t requested, const AllocatorOptions& options) noexcept;
// The size of the segment that a block is cut from when nothing cached fits.
size_t segment_bytes(size_t block, const AllocatorOptions& options) noexcept;

inline constexpr size_t kLargestSmallBlock = size_t{1} << 20;  // larger ones belong to the large pool

}  // namespace npu
