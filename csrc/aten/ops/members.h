// Tensors whose data lie in other tensors, their members:
//   sparse COO                  indices, values
//   sparse CSR, CSC, BSR, BSC   compressed indices, plain indices, values
//   nested                      the buffer; sizes, strides and offsets of the parts stay on the host
//   quantized                   the storage's bytes; scales and zero points when each channel has its own
// Threads: any. No function waits or reads an element.
#pragma once

#include <ATen/core/TensorBody.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/util/FunctionRef.h>

namespace npu::aten {

using MemberMap = c10::function_ref<at::Tensor(const at::Tensor&)>;

bool has_members(const at::Tensor& tensor);

// The same tensor, layout and quantisation, over map(member) for each member. It is on the device of the mapped members.
at::Tensor with_members(const at::Tensor& tensor, MemberMap map);

// The same quantisation over map(member) for its scales and zero points, if those are tensors.
at::QuantizerPtr with_members(const at::QuantizerPtr& quantizer, MemberMap map);

// The stored integers of a quantized tensor: a dense tensor of the same sizes and strides over the same memory, or of all
// its bytes where elements share bytes.
at::Tensor integers_of(const at::Tensor& quantized);

// Makes `tensor` what `other` is, sizes and members: both have the same layout and device. Its identity, gradient and
// version stay.
void become(const at::Tensor& tensor, const at::Tensor& other);

}  // namespace npu::aten
