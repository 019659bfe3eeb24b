// What operators without a shape rule of ours require of their arguments, in PyTorch's words, and what they say under
// torch.use_deterministic_algorithms. The column `check` of npu_functions.yaml calls these before anything is queued.
#pragma once

#include <ATen/core/TensorBody.h>

#include <string_view>

namespace npu::aten::checks {

void gelu(std::string_view approximate);
void masked_fill(const at::Tensor& value);
void put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate);
void max_unpool2d(const at::Tensor& indices);
void max_unpool3d(const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
                  at::IntArrayRef padding);

}  // namespace npu::aten::checks
