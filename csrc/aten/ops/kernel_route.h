// Route "kernel": hot cases of an operator, decided in a few nanoseconds before any TensorIterator exists.
//
// Each function looks whether its case applies: plain contiguous npu tensors of one device, dtype and shape (or one such
// tensor and a number), dtypes that csrc/kernels computes, no conj or neg bit, no partial overlap. If so it queues one
// task on the current stream and returns true. Otherwise it has done nothing and returns false, and the caller goes on to
// the operator's next route, which also words every error: these functions reject, they never complain.
//
// `out` is the result: undefined = allocate it (functional form), defined = write into it (out= and in-place forms; pass
// `self` itself for in-place). An out= tensor that would need a resize is not a hot case.
// Threads: any. Errors: only out of memory and a lost device.
#pragma once

#include <ATen/core/TensorBody.h>
#include <c10/core/Scalar.h>

namespace npu::aten::kernel_route {

// Element-wise. `other` may be a number wrapped in a 0-dim CPU tensor, as Python's `x * 2.0` passes it.
bool add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out);
bool sub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out);
bool mul(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);
bool div(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);  // true division of floating types
bool relu(const at::Tensor& self, at::Tensor& out);
bool neg(const at::Tensor& self, at::Tensor& out);
bool exp(const at::Tensor& self, at::Tensor& out);

// self = src and self[...] = value. `src` may have another dtype; both lie on one device.
bool copy(const at::Tensor& self, const at::Tensor& src);
bool fill(const at::Tensor& self, const at::Scalar& value);

// Matrices are row-major or transposed, fp32 or fp64; `self` of addmm has the result's shape or is one row of it.
bool mm(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& out);
bool bmm(const at::Tensor& self, const at::Tensor& mat2, at::Tensor& out);
bool addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
           const at::Scalar& alpha, at::Tensor& out);

// Of a zero tensor without memory, as forward-mode differentiation makes them: another one, and no task.
bool dot(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);

}  // namespace npu::aten::kernel_route
