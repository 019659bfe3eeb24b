// Copies of bytes: between host and device, and within and between devices.
#pragma once

#include <cstddef>

#include "runtime/export.h"
#include "runtime/task.h"

namespace npu::kernels {

// Copies memory that both sides can address, on the calling thread. Blocks beyond the caches are stored past them, at
// about twice the rate of memcpy. The ranges do not overlap, unless they are equal.
NPU_API void copy_bytes(void* to, const void* from, size_t bytes);

struct CopyArguments {
  void* to;
  const void* from;
  size_t bytes;
};

// Tasks over CopyArguments. A device address is translated; the host address of kCopyIn and kCopyOut is used as it is, so
// it must stay valid until the task is done: pinned memory, or memory whose owner waits.
// The plain forms may run on the host thread that waits for them; the Async forms never do: they are for copies that must
// overlap with what the host does next.
NPU_API extern const TaskInfo kCopyIn, kCopyInAsync;    // host to device, on DMA in
NPU_API extern const TaskInfo kCopyOut, kCopyOutAsync;  // device to host, on DMA out
NPU_API extern const TaskInfo kCopyWithin;              // device to the same device, on a vector core

}  // namespace npu::kernels
