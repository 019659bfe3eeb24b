// The two address ranges of one simulated device: device addresses, which the host cannot touch, and as many engine
// addresses, where the simulated engines find the same bytes.
//
// Both ranges are only reserved: a device address always faults when the host follows it, and an engine page becomes
// readable and writable by commit(). engine address = device address + engine_delta(). Neither range is copied into
// forked children or core dumps.
// Threads: commit and decommit of different pages may run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/export.h"

namespace npu {

struct WindowOptions {
  size_t capacity_bytes = 0;  // memory of the device; a multiple of kGranuleBytes
  size_t window_bytes = 0;    // 0 = 4 x capacity, at most 256 GiB; less, down to the capacity, if the system refuses
  bool unified = false;       // one range for both: the host may follow device addresses
};

class NPU_API AddressWindow {
 public:
  // Unit of allocation and alignment; the size of a huge page.
  static constexpr size_t kGranuleBytes = size_t{2} << 20;

  // Throws kLimit when the system does not give even the capacity, kInvalidArgument for a window below the capacity.
  explicit AddressWindow(const WindowOptions& options);
  ~AddressWindow();
  AddressWindow(const AddressWindow&) = delete;
  AddressWindow& operator=(const AddressWindow&) = delete;

  uintptr_t begin() const noexcept { return device_; }
  size_t bytes() const noexcept { return bytes_; }
  uintptr_t engine_delta() const noexcept { return engine_ - device_; }  // 0 when unified; wraps around
  bool contains(const void* address) const noexcept { return reinterpret_cast<uintptr_t>(address) - device_ < bytes_; }

  // Offsets and sizes in whole granules. Fresh pages read as zero and take no memory until they are touched.
  void commit(size_t offset, size_t bytes);             // throws kLimit when the system refuses
  void decommit(size_t offset, size_t bytes) noexcept;  // the pages go back to the machine; their content is lost

 private:
  uintptr_t device_ = 0;
  uintptr_t engine_ = 0;
  size_t bytes_ = 0;
};

}  // namespace npu
