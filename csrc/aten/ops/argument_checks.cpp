#include "aten/ops/argument_checks.h"

#include <ATen/native/Activation.h>

namespace npu::aten::checks {

void gelu(std::string_view approximate) { at::native::get_gelutype_enum(approximate); }

void masked_fill(const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
}

}  // namespace npu::aten::checks
