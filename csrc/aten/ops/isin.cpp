// isin of a number: as of a tensor that holds it. PyTorch's meta function of this form leaves the size to the kernel.
#include <ATen/ops/full.h>
#include <ATen/ops/isin.h>
#include <torch/library.h>

#include "aten/ops/counted.h"

namespace npu::aten {
namespace {

at::Tensor as_tensor(const at::Scalar& number, const at::Tensor& like) {
  at::Tensor tensor = at::full({}, number, like.options().dtype(number.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor isin(const at::Scalar& element, const at::Tensor& test_elements, bool assume_unique, bool invert) {
  return at::isin(as_tensor(element, test_elements), test_elements, assume_unique, invert);
}

at::Tensor& isin_out(const at::Scalar& element, const at::Tensor& test_elements, bool assume_unique, bool invert,
                     at::Tensor& out) {
  return at::isin_out(out, as_tensor(element, test_elements), test_elements, assume_unique, invert);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("isin.Scalar_Tensor", counted<op::isin_Scalar_Tensor, Route::kLibrary, isin>);
  m.impl("isin.Scalar_Tensor_out", counted<op::isin_Scalar_Tensor_out, Route::kLibrary, isin_out>);
}

}  // namespace
}  // namespace npu::aten
