#include "runtime/memory/free_list.h"

#include <algorithm>
#include <bit>

namespace npu {

size_t FreeList::bin_of(size_t bytes) noexcept {
  const size_t units = bytes / kBlockUnit;
  if (units < kBinsOfOctave) return units;
  const size_t octave = static_cast<size_t>(std::bit_width(units)) - std::bit_width(kBinsOfOctave);
  return std::min(kBins - 1, octave * kBinsOfOctave + (units >> octave));
}

size_t FreeList::next_bin(size_t bin) const noexcept {
  if (bin >= kBins) return kBins;
  const size_t word = bin / 64;
  if (const uint64_t bits = occupied_[word] & (~uint64_t{0} << bin % 64)) return word * 64 + std::countr_zero(bits);
  const uint64_t words = word + 1 < 64 ? occupied_words_ & (~uint64_t{0} << (word + 1)) : 0;
  if (words == 0) return kBins;
  const size_t next = static_cast<size_t>(std::countr_zero(words));
  return next * 64 + std::countr_zero(occupied_[next]);
}

void FreeList::insert(CachedBlock& block) noexcept {
  const size_t bin = bin_of(block.bytes);
  block.before = nullptr;
  block.after = bins_[bin];
  if (block.after != nullptr) block.after->before = &block;
  bins_[bin] = &block;
  occupied_[bin / 64] |= uint64_t{1} << bin % 64;
  occupied_words_ |= uint64_t{1} << bin / 64;
}

void FreeList::remove(CachedBlock& block) noexcept {
  const size_t bin = bin_of(block.bytes);
  if (block.after != nullptr) block.after->before = block.before;
  (block.before != nullptr ? block.before->after : bins_[bin]) = block.after;
  if (bins_[bin] != nullptr) return;
  occupied_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  if (occupied_[bin / 64] == 0) occupied_words_ &= ~(uint64_t{1} << bin / 64);
}

CachedBlock* FreeList::find(size_t bytes) const noexcept {
  const size_t bin = bin_of(bytes);
  CachedBlock* best = nullptr;
  for (CachedBlock* block = bins_[bin]; block != nullptr; block = block->after) {
    if (block->bytes == bytes) return block;
    if (block->bytes > bytes && (best == nullptr || block->bytes < best->bytes)) best = block;
  }
  if (best != nullptr) return best;
  const size_t next = next_bin(bin + 1);
  return next == kBins ? nullptr : bins_[next];
}

size_t FreeList::largest_bytes() const noexcept {
  if (occupied_words_ == 0) return 0;
  const size_t word = std::bit_width(occupied_words_) - 1;
  const size_t bin = word * 64 + std::bit_width(occupied_[word]) - 1;
  size_t largest = 0;
  for (const CachedBlock* block = bins_[bin]; block != nullptr; block = block->after)
    largest = std::max(largest, block->bytes);
  return largest;
}

void split(CachedBlock& block, size_t bytes, CachedBlock& rest) noexcept {
  rest.address = static_cast<char*>(block.address) + bytes;
  rest.bytes = block.bytes - bytes;
  rest.device = block.device;
  rest.kind = block.kind;
  rest.pool = block.pool;
  rest.stream = block.stream;
  rest.freed_at = block.freed_at;
  rest.previous = &block;
  rest.next = block.next;
  if (rest.next != nullptr) rest.next->previous = &rest;
  block.next = &rest;
  block.bytes = bytes;
}

void merge_with_next(CachedBlock& left) noexcept {
  CachedBlock& right = *left.next;
  left.bytes += right.bytes;
  left.freed_at = std::max(left.freed_at, right.freed_at);
  left.next = right.next;
  if (left.next != nullptr) left.next->previous = &left;
  right.previous = right.next = nullptr;
  right.state.store(CachedBlock::State::kSpare, std::memory_order_relaxed);
}

}  // namespace npu
