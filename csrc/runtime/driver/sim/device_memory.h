// The memory of one simulated device: ranges of its address window, handed out first fit in units of 2 MiB.
//
// Counts everything on the device, whoever asked for it. The window is larger than the memory, so free memory is found
// although the ranges in use are scattered.
// Threads: any method from any thread. locate() takes no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "runtime/driver/driver.h"
#include "runtime/driver/sim/address_window.h"
#include "runtime/export.h"
#include "runtime/fault_report.h"
#include "runtime/thread_annotations.h"

namespace npu {

class NPU_API DeviceMemory {
 public:
  // `device` is the driver's number. The capacity is rounded down to 2 MiB.
  DeviceMemory(DeviceIndex device, const WindowOptions& options);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const AddressWindow& window() const noexcept { return window_; }
  // What programs call the device, for the fault report; the driver's number at first.
  void show_as(DeviceIndex device) noexcept { shown_as_.store(device, std::memory_order_relaxed); }
  MemoryInfo info() const;

  // The allocation around a device address: kDevice inside the window, with a base while that allocation is live.
  MemoryLocation locate(const void* address) const noexcept;

  // A device address aligned to 2 MiB whose bytes read as zero; null when the device has not that much left. Zero bytes
  // take one unit. Throws kLimit when the machine refuses the pages.
  void* allocate(size_t bytes);
  // Throws kInvalidAddress unless `address` came from allocate() and is still live. The pages go back to the machine.
  void free(void* address);

 private:
  // What a granule belongs or last belonged to, in one word: bit 63 live, bits 32-62 number of granules, bits 0-31 first
  // granule. 0 = never allocated.
  using Granule = std::atomic<uint64_t>;

  size_t take_range(size_t bytes);               // offset; kNoRange when there is none
  void give_range(size_t offset, size_t bytes);  // merges with its neighbours
  void mark(size_t offset, size_t bytes, bool live) noexcept;
  AllocationHistory history(uintptr_t address) const noexcept;  // safe in signal handlers

  const DeviceIndex device_;
  std::atomic<DeviceIndex> shown_as_;
  const size_t capacity_;
  AddressWindow window_;
  std::unique_ptr<Granule[]> granules_;
  mutable Mutex mutex_;
  std::map<size_t, size_t> free_ranges_ GUARDED_BY(mutex_);  // offset -> bytes
  size_t used_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace npu
