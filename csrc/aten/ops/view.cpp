// Views and questions about tensors: metadata only, by PyTorch's own native functions where they know out-of-tree devices.
// Views that are not listed are composed of these by PyTorch.
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/TensorImpl.h>
#include <torch/library.h>

#include "aten/ops/counted.h"

namespace npu::aten {
namespace {

// Lets Module.to() and `parameter.data = ...` keep the identity of a tensor that moves between npu and CPU. PyTorch's
// own rule knows only built-in devices: two tensors are compatible when both are plain dense ones.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
  const auto plain = [](const at::Tensor& tensor) {
    const c10::DispatchKeySet keys = tensor.key_set();
    return keys.has_any(c10::DispatchKeySet({c10::BackendComponent::CPUBit, c10::BackendComponent::PrivateUse1Bit})) &&
           keys.has(c10::DispatchKey::Dense);
  };
  return (plain(self) && plain(from)) || self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type",
         counted<op::_has_compatible_shallow_copy_type, Route::kView, has_compatible_shallow_copy_type>);
  m.impl("_reshape_alias", counted<op::_reshape_alias, Route::kView, at::native::_reshape_alias>);
  m.impl("as_strided", counted<op::as_strided, Route::kView, at::native::as_strided_tensorimpl>);
  m.impl("is_set_to", counted<op::is_set_to, Route::kView, at::native::is_set_to>);
  m.impl("unfold", counted<op::unfold, Route::kView, at::native::unfold>);
  m.impl("view", counted<op::view, Route::kView, at::native::view>);
  m.impl("view_as_complex", counted<op::view_as_complex, Route::kView, at::native::view_as_complex>);
  m.impl("view_as_real", counted<op::view_as_real, Route::kView, at::native::view_as_real>);
}

}  // namespace
}  // namespace npu::aten
