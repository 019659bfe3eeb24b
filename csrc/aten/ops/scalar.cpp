// One element for the host: what .item() reads.
#include <ATen/core/Tensor.h>
#include <ATen/Dispatch_v2.h>
#include <c10/core/Scalar.h>
#include <torch/library.h>

#include <cstring>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "aten/ops/counted.h"
#include "runtime/driver/driver.h"

namespace npu::aten {
namespace {

// Waits for the current stream and reports the device's first pending error, as every synchronising call does.
at::Scalar local_scalar_dense(const at::Tensor& self) {
  TORCH_CHECK(self.numel() == 1, "a tensor with ", self.numel(), " elements cannot be converted to a number");
  const void* address = translate_errors([&] {
    current_stream(self.get_device()).synchronize();
    return npu::driver().translate(self.const_data_ptr());
  });
  return AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense", AT_WRAP([&] {
                          scalar_t value;
                          std::memcpy(&value, address, sizeof value);
                          return at::Scalar(value);
                        }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_local_scalar_dense", counted<OpId::_local_scalar_dense, Route::kSynchronous, local_scalar_dense>);
}

}  // namespace
}  // namespace npu::aten
