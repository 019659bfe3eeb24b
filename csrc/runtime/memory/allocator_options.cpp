#include "runtime/memory/allocator_options.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "runtime/memory/free_list.h"

namespace npu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kLargestSharedBlock = 10 * kMiB;  // from here up, blocks have segments of their own
constexpr size_t kSegmentUnit = 2 * kMiB;

std::atomic<AllocatorOptionsSource> g_source{nullptr};

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t divisions_of(size_t bytes, const AllocatorOptions& options) {
  const auto octave = static_cast<size_t>(std::bit_width(bytes));
  constexpr size_t kFirst = std::bit_width(kMiB);
  const auto& divisions = options.roundup_power2_divisions;
  return divisions[octave < kFirst ? 0 : std::min(octave - kFirst, divisions.size() - 1)];
}

}  // namespace

void set_allocator_options_source(AllocatorOptionsSource source) noexcept { g_source.store(source); }

AllocatorOptions initial_allocator_options() {
  const AllocatorOptionsSource source = g_source.load();
  return source == nullptr ? AllocatorOptions{} : source();
}

size_t block_bytes(size_t requested, const AllocatorOptions& options) noexcept {
  const size_t divisions = divisions_of(requested, options);
  const bool has_steps = divisions > 1 && requested > kBlockUnit * divisions;  // steps are then multiples of 512 bytes
  const size_t unit = has_steps ? std::bit_floor(requested) / divisions : kBlockUnit;
  return std::max(kBlockUnit, round_up(requested, unit));
}

size_t segment_bytes(size_t block, const AllocatorOptions& options) noexcept {
  if (block <= kLargestSmallBlock) return kSmallSegment;
  return block < kLargestSharedBlock ? options.large_segment_bytes : round_up(block, kSegmentUnit);
}

}  // namespace npu
