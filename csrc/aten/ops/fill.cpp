// fill_ and zero_: dense tensors here, others through copy_, which knows every layout.
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/TypeCast.h>
#include <torch/library.h>

#include "aten/ops/kernel_operand.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/op_stats.h"
#include "kernels/pointwise.h"

namespace npu::aten {
namespace kernel_route {
namespace {

// The element's bytes; false when PyTorch refuses the conversion.
template <class T>
bool element(const at::Scalar& value, kernels::FillArguments& arguments) {
  const auto write = [&](auto from) {
    if (c10::overflows<T, decltype(from)>(from)) return false;
    const T converted = c10::convert<T>(from);
    for (size_t at = 0; at < sizeof(arguments.pattern); at += sizeof(T))
      std::memcpy(arguments.pattern + at, &converted, sizeof(T));
    return true;
  };
  if (value.isComplex()) return write(value.toComplexDouble());
  if (value.isFloatingPoint()) return write(value.toDouble());
  if (value.isBoolean()) return write(value.toBool());
  return write(value.toLong());
}

bool write_element(at::ScalarType dtype, const at::Scalar& value, kernels::FillArguments& arguments) {
  switch (dtype) {
#define NPU_CASE(T, name) \
  case at::ScalarType::name: return element<T>(value, arguments);
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, NPU_CASE)
    NPU_CASE(c10::complex<float>, ComplexFloat)
    NPU_CASE(c10::complex<double>, ComplexDouble)
#undef NPU_CASE
    default: return false;
  }
}

}  // namespace

bool fill(const at::Tensor& self, const at::Scalar& value) {
  const c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
  kernels::FillArguments arguments;
  if (!is_plain(impl) || !is_dense(impl) || impl.numel() == 0 || value.isSymbolic() ||
      !to_kernel_dtype(self.scalar_type(), arguments.dtype) || !write_element(self.scalar_type(), value, arguments))
    return false;
  arguments.out = self.mutable_data_ptr();
  arguments.count = impl.numel();
  set_shape(arguments.shape, impl);
  launch(kernels::kFill, self, arguments, kernels::estimate_ns(static_cast<int64_t>(self.nbytes())));
  return true;
}

}  // namespace kernel_route

namespace {

at::Tensor& fill(at::Tensor& self, const at::Scalar& value, OpScope& scope) {
  if (self.numel() == 0) return self;
  if (kernel_route::fill(self, value)) {
    scope.set_route(Route::kKernel);
    return self;
  }
  return self.copy_(at::scalar_tensor(value, at::TensorOptions(self.scalar_type())));
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  OpScope scope(OpId::fill__Scalar, Route::kLibrary);
  return fill(self, value, scope);
}

at::Tensor& zero(at::Tensor& self) {
  OpScope scope(OpId::zero_, Route::kLibrary);
  return fill(self, 0, scope);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", fill_scalar);
  m.impl("zero_", zero);
}

}  // namespace
}  // namespace npu::aten
