// Pinned host memory: PyTorch's caching host allocator over the driver's pre-faulted blocks.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include "runtime/export.h"

namespace npu::aten {

// Deletion does nothing in a forked child, where the allocator's locks may be held by threads that do not exist.
NPU_API at::HostAllocator& pinned_allocator();

// True when `address` is memory of pinned_allocator(). Never initialises the runtime, never throws.
NPU_API bool is_pinned(const void* address) noexcept;

}  // namespace npu::aten
