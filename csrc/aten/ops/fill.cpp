// fill_ and zero_: dense tensors by a kernel of our own, others by PyTorch's, which knows every layout and refuses values
// out of range.
#include <ATen/core/Tensor.h>
#include <c10/util/TypeCast.h>
#include <torch/library.h>

#include "aten/ops/kernel_operand.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/library.h"
#include "aten/ops/numbers.h"
#include "kernels/pointwise.h"
#include "op_counters.h"

namespace npu::aten {
namespace kernel_route {
namespace {

template <class T>
void write_element(const at::Scalar& value, kernels::FillArguments& arguments) {
  const auto write = [&](auto from) {
    const T converted = c10::convert<T>(from);
    for (size_t at = 0; at < sizeof(arguments.pattern); at += sizeof(T))
      std::memcpy(arguments.pattern + at, &converted, sizeof(T));
  };
  if (value.isComplex()) return write(value.toComplexDouble());
  if (value.isFloatingPoint()) return write(value.toDouble());
  if (value.isBoolean()) return write(value.toBool());
  return write(value.toLong());
}

// The element's bytes; false when the dtype has no kernel or PyTorch refuses the conversion.
bool write_element(at::ScalarType dtype, const at::Scalar& value, kernels::FillArguments& arguments) {
  if (!fits_all(value) && !fits(value, dtype)) return false;
  switch (dtype) {
#define NPU_CASE(T, name) \
  case at::ScalarType::name: return write_element<T>(value, arguments), true;
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

constexpr ArgumentName kFillNames[] = {{"self", Operand::Access::kWrite}, {"value"}};

void run_fill(const TaskContext& context, const void* block) {
  run_library_task(context, block, [](ArgumentReader& in) {
    at::Tensor self = in.read<at::Tensor>();
    const auto value = in.read<at::Scalar>();
    self.fill_(value);
  });
}

constexpr TaskInfo kFill = make_task("aten::fill_.Scalar", run_fill, kVectorEngine);

at::Tensor& fill(at::Tensor& self, const at::Scalar& value, OpScope& scope) {
  if (kernel_route::fill(self, value)) {
    scope.set_route(Route::kKernel);
    return self;
  }
  if (self.numel() == 0 && fits(value, self.scalar_type())) return self;
  ArgumentWriter arguments(kFillNames);
  arguments.write(self);
  arguments.write(value);
  arguments.launch(kFill);
  return self;
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  OpScope scope(op::fill__Scalar, Route::kLibrary);
  return fill(self, value, scope);
}

at::Tensor& zero(at::Tensor& self) {
  OpScope scope(op::zero_, Route::kLibrary);
  return fill(self, 0, scope);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Scalar", fill_scalar);
  m.impl("zero_", zero);
}

}  // namespace
}  // namespace npu::aten
