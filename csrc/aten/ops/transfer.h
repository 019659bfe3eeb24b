// Moves bytes between the host, a device and another device: the part of copy_ that has nothing to do with layouts.
//
// Every range is contiguous. Tasks run on the current stream of their device and on the engine of the direction: DMA in
// (host to device), DMA out (device to host, device to another device).
// Threads: any. Errors: PyTorch's exception types.
#pragma once

#include <ATen/core/TensorBody.h>

namespace npu::aten {

// `host` and `device` have one dtype and the same strides, without gaps; they are the memory of the first `bytes` bytes.

// With `wait`, returns once the data has arrived, so that any stream may use it. Without, pinned memory is queued (and held
// until the copy is done), pageable memory is staged: the source may be reused at once.
void copy_to_device(const at::Tensor& device, const at::Tensor& host, size_t bytes, bool wait);

// Returns once the data is there, or, with `wait` false, once the copy into pinned memory is queued.
void copy_to_host(const at::Tensor& host, const at::Tensor& device, size_t bytes, bool wait);

// Queues the copy on the source's current stream, after the work of the destination's current stream, which then waits.
void copy_to_peer(const at::Tensor& destination, const at::Tensor& source, size_t bytes);

// Blocks until what is queued on the current stream of the tensor's device is done.
void wait_for_copies(const at::Tensor& device);

}  // namespace npu::aten
