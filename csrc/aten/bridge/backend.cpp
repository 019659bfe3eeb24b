// What loading the library does: names the backend, and ends the devices when the process ends.
#include <c10/core/DeviceType.h>
#include <c10/core/TensorImpl.h>
#include <torch/library.h>

#include <cstdlib>

#include "runtime/device.h"

namespace npu::aten {
namespace {

const bool g_loaded = [] {
  c10::register_privateuse1_backend("npu");
  std::atexit([] { npu::shutdown(); });
  return true;
}();

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
  m.impl("_has_compatible_shallow_copy_type", has_compatible_shallow_copy_type);
}

}  // namespace
}  // namespace npu::aten
