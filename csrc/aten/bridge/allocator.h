// Device memory for PyTorch: the contexts' caching allocators behind one c10::DeviceAllocator.
//
// A DataPtr holds the device address as data and the allocator's Block as context, so freeing looks nothing up.
// Threads: any. Neither allocation nor deletion takes the GIL; deletion never blocks, and does nothing in a forked child.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StorageImpl.h>

#include "runtime/export.h"
#include "runtime/memory/caching_allocator.h"

namespace npu::aten {

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  // On the current device, for its current stream. c10::OutOfMemoryError when the device is full.
  c10::DataPtr allocate(size_t bytes) override;
  // Copies within one device, in order with its current stream.
  void copy_data(void* destination, const void* source, size_t bytes) const override;
  bool is_simple_data_ptr(const c10::DataPtr& data) const override;

  bool initialized() override;
  void emptyCache(c10::MempoolId_t pool = {0, 0}) override;
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override;
};

NPU_API DeviceAllocator& device_allocator();

// Throws kInvalidArgument with `source`, the value and what would be right when `settings`, in the form of
// PYTORCH_ALLOC_CONF, cannot be used.
NPU_API void check_allocator_settings(const std::string& source, const std::string& settings);

// Changes the size of a device storage and keeps its contents; in order with the current stream of its device.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

}  // namespace npu::aten
