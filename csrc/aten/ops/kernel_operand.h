// What the kernel route asks of tensors: a few loads each, no dispatcher, no TensorIterator.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/TensorImpl.h>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"

namespace npu::aten::kernel_route {

// The kernels' name of a dtype; false when they have none.
inline bool to_kernel_dtype(at::ScalarType from, kernels::DType& to) {
  using kernels::DType;
  switch (from) {
    case at::kFloat: to = DType::kFloat32; return true;
    case at::kDouble: to = DType::kFloat64; return true;
    case at::kBFloat16: to = DType::kBFloat16; return true;
    case at::kHalf: to = DType::kFloat16; return true;
    case at::kLong: to = DType::kInt64; return true;
    case at::kInt: to = DType::kInt32; return true;
    case at::kShort: to = DType::kInt16; return true;
    case at::kChar: to = DType::kInt8; return true;
    case at::kByte: to = DType::kUInt8; return true;
    case at::kBool: to = DType::kBool; return true;
    case at::kComplexFloat: to = DType::kComplex64; return true;
    case at::kComplexDouble: to = DType::kComplex128; return true;
    default: return false;
  }
}

// A strided npu tensor whose memory is its value: no pending conjugation, negation or zero.
inline bool is_plain(const c10::TensorImpl& tensor) {
  constexpr c10::DispatchKeySet lazy{c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                     c10::DispatchKey::ZeroTensor};
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(c10::DispatchKey::PrivateUse1) && !keys.has_any(lazy);
}

// Its elements fill one stretch of memory, in some order.
inline bool is_dense(const c10::TensorImpl& tensor) {
  return tensor.is_contiguous() || tensor.is_non_overlapping_and_dense();
}

// Both dense: element i of one stretch belongs to element i of the other.
inline bool same_layout(const c10::TensorImpl& a, const c10::TensorImpl& b) {
  return a.sizes() == b.sizes() && ((a.is_contiguous() && b.is_contiguous()) || a.strides() == b.strides());
}

// Equal ranges are fine for element-wise kernels; a partial overlap is an error that the next route words.
inline bool overlaps_partly(const at::Tensor& out, const at::Tensor& in) {
  const auto a = reinterpret_cast<uintptr_t>(out.const_data_ptr()),
             b = reinterpret_cast<uintptr_t>(in.const_data_ptr());
  return a != b && a < b + in.nbytes() && b < a + out.nbytes();
}

// An uninitialised tensor with the dtype, device and layout of a dense one.
inline at::Tensor empty_like(const c10::TensorImpl& like, at::ScalarType dtype) {
  const DeviceGuard guard(like.device().index());
  c10::Allocator* allocator = c10::GetAllocator(c10::kPrivateUse1);
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  if (like.is_contiguous()) return at::detail::empty_generic(like.sizes(), allocator, keys, dtype, std::nullopt);
  return at::detail::empty_strided_generic(like.sizes(), like.strides(), allocator, keys, dtype);
}

inline void set_shape(kernels::Shape& shape, const c10::TensorImpl& tensor) {
  const at::IntArrayRef sizes = tensor.sizes();
  shape.set(sizes.data(), sizes.size(), tensor.numel());
}

template <class Arguments>
void launch(const TaskInfo& info, const at::Tensor& on, const Arguments& arguments, uint32_t cost_ns) {
  translate_errors([&] { current_stream(on.device().index()).launch(info, arguments, cost_ns); });
}

}  // namespace npu::aten::kernel_route
