// What operators without a shape rule of ours require of their arguments, in PyTorch's words. The column `check` of
// npu_functions.yaml calls these before anything is queued.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string_view>

namespace npu::aten::checks {

void gelu(std::string_view approximate);
void masked_fill(const at::Tensor& value);

}  // namespace npu::aten::checks
