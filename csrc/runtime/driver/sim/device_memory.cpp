#include "runtime/driver/sim/device_memory.h"

#include <algorithm>
#include <iterator>

#include "runtime/status.h"

namespace npu {
namespace {

constexpr size_t kGranule = AddressWindow::kGranuleBytes;
constexpr size_t kNoRange = SIZE_MAX;
constexpr uint64_t kLiveBit = uint64_t{1} << 63;

size_t to_whole_granules(size_t bytes) { return std::max(kGranule, (bytes + kGranule - 1) / kGranule * kGranule); }

WindowOptions with_whole_granules(WindowOptions options) {
  NPU_CHECK(options.capacity_bytes >= kGranule, kInvalidArgument, "a device with ", options.capacity_bytes,
            " bytes of memory; NPU_SIM_MEMORY must be at least 2M.");
  options.capacity_bytes = options.capacity_bytes / kGranule * kGranule;
  return options;
}

}  // namespace

DeviceMemory::DeviceMemory(DeviceIndex device, const WindowOptions& options)
    : device_(device),
      shown_as_(device),
      capacity_(with_whole_granules(options).capacity_bytes),
      window_(with_whole_granules(options)),
      granules_(std::make_unique<Granule[]>(window_.bytes() / kGranule)) {
  free_ranges_.emplace(0, window_.bytes());
  const auto history = [](const void* owner, uintptr_t address) noexcept {
    return static_cast<const DeviceMemory*>(owner)->history(address);
  };
  const uintptr_t begin = window_.begin();
  add_fault_region({FaultRegion::Kind::kDevice, begin, window_.bytes(), begin, history, this});
  if (const uintptr_t delta = window_.engine_delta())
    add_fault_region({FaultRegion::Kind::kEngine, begin + delta, window_.bytes(), begin, history, this});
}

DeviceMemory::~DeviceMemory() { remove_fault_regions(this); }

MemoryInfo DeviceMemory::info() const {
  MutexLock lock(mutex_);
  return {capacity_ - used_bytes_, capacity_};
}

AllocationHistory DeviceMemory::history(uintptr_t address) const noexcept {
  const uint64_t word = granules_[(address - window_.begin()) / kGranule].load(std::memory_order_acquire);
  const size_t count = (word & ~kLiveBit) >> 32;
  return {shown_as_.load(std::memory_order_relaxed), window_.begin() + (word & UINT32_MAX) * kGranule, count * kGranule,
          (word & kLiveBit) != 0};
}

MemoryLocation DeviceMemory::locate(const void* address) const noexcept {
  if (!window_.contains(address)) return {};
  const AllocationHistory found = history(reinterpret_cast<uintptr_t>(address));
  if (!found.live) return {MemoryLocation::Kind::kDevice, device_, nullptr, 0};
  return {MemoryLocation::Kind::kDevice, device_, reinterpret_cast<const void*>(found.base), found.bytes};
}

void* DeviceMemory::allocate(size_t bytes) {
  if (bytes > capacity_) return nullptr;
  bytes = to_whole_granules(bytes);
  const size_t offset = take_range(bytes);
  if (offset == kNoRange) return nullptr;
  try {
    window_.commit(offset, bytes);
  } catch (...) {
    give_range(offset, bytes);
    throw;
  }
  mark(offset, bytes, true);
  return reinterpret_cast<void*>(window_.begin() + offset);
}

void DeviceMemory::free(void* address) {
  AllocationHistory found;
  {
    MutexLock lock(mutex_);  // of two threads that free the same address, one gets the error
    if (window_.contains(address)) found = history(reinterpret_cast<uintptr_t>(address));
    NPU_CHECK(found.live && found.base == reinterpret_cast<uintptr_t>(address), kInvalidAddress, "freeing ", address,
              " on device ", device_, ": ",
              found.live        ? detail::concat("it lies inside the allocation at 0x", std::hex, found.base)
              : found.bytes > 0 ? "it was freed before"
                                : "it was never allocated there",
              ". Free exactly the address that the allocation returned, once.");
    mark(found.base - window_.begin(), found.bytes, false);
  }
  window_.decommit(found.base - window_.begin(), found.bytes);
  give_range(found.base - window_.begin(), found.bytes);
}

size_t DeviceMemory::take_range(size_t bytes) {
  MutexLock lock(mutex_);
  if (bytes > capacity_ - used_bytes_) return kNoRange;
  const auto fits = [bytes](const auto& range) { return range.second >= bytes; };
  const auto range = std::find_if(free_ranges_.begin(), free_ranges_.end(), fits);
  if (range == free_ranges_.end()) return kNoRange;
  const auto [offset, available] = *range;
  const auto next = free_ranges_.erase(range);
  if (available > bytes) free_ranges_.emplace_hint(next, offset + bytes, available - bytes);
  used_bytes_ += bytes;
  return offset;
}

void DeviceMemory::give_range(size_t offset, size_t bytes) {
  MutexLock lock(mutex_);
  used_bytes_ -= bytes;
  auto next = free_ranges_.lower_bound(offset);
  if (next != free_ranges_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_ranges_.erase(next);
  }
  if (next != free_ranges_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  free_ranges_.emplace_hint(next, offset, bytes);
}

void DeviceMemory::mark(size_t offset, size_t bytes, bool live) noexcept {
  const uint64_t first = offset / kGranule, count = bytes / kGranule;
  const uint64_t word = (live ? kLiveBit : 0) | count << 32 | first;
  for (uint64_t i = first; i < first + count; ++i) granules_[i].store(word, std::memory_order_release);
}

}  // namespace npu
