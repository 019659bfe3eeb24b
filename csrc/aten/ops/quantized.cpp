// What quantized tensors need besides PyTorch's own functions: copies, which move the stored integers.
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/quantized/QTensorImpl.h>
#include <torch/library.h>

#include "aten/ops/members.h"
#include "aten/ops/op_stats.h"

namespace npu::aten {
namespace {

at::Tensor quantize_like(const at::Tensor& values, const at::Tensor& example) {
  if (example.qscheme() == at::kPerTensorAffine)
    return at::quantize_per_tensor(values, example.q_scale(), example.q_zero_point(), example.scalar_type());
  return at::quantize_per_channel(values, example.q_per_channel_scales(), example.q_per_channel_zero_points(),
                                  example.q_per_channel_axis(), example.scalar_type());
}

int64_t elements_of_byte(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kQUInt4x2 ? 2 : tensor.scalar_type() == at::kQUInt2x4 ? 4 : 1;
}

// Elements that share bytes cannot be moved one by one: what is copied is all of a storage, and no view of it.
void check_whole(const at::Tensor& tensor) {
  const int64_t in_a_byte = elements_of_byte(tensor);
  if (in_a_byte == 1 || tensor.numel() == 0) return;
  const int64_t row = tensor.dim() == 0 ? 1 : tensor.size(-1);
  const int64_t bytes = tensor.numel() / row * ((row + in_a_byte - 1) / in_a_byte);
  const bool whole = tensor.is_contiguous() && static_cast<int64_t>(tensor.storage().nbytes()) <= bytes;
  TORCH_CHECK_NOT_IMPLEMENTED(whole, "\"copy_kernel\" not implemented for '", c10::toString(tensor.scalar_type()), "'");
}

// What PyTorch requires where a copy quantizes, as it does nowhere else: nothing is cast, rearranged or expanded.
void check_quantizable(const at::Tensor& source, const at::Tensor& dst) {
  const auto both = [&](at::MemoryFormat format) { return source.is_contiguous(format) && dst.is_contiguous(format); };
  TORCH_CHECK(source.scalar_type() == at::kFloat, "Quantized copy only works with kFloat as source Tensor");
  TORCH_CHECK(both(at::MemoryFormat::Contiguous) || both(at::MemoryFormat::ChannelsLast),
              "Quantized copy only works with contiguous and NHWC Tensors");
  TORCH_CHECK(source.sizes() == dst.sizes(), "Quantized copy only works with Tensors with the same shape");
}

// The rules and words of PyTorch's copy_ between CPU tensors: it hands copies that touch other devices on before it
// looks at quantisation.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  static OpCounters& counters = op_counters("aten::_copy_from");
  const OpScope scope(counters, Route::kKernel);
  TORCH_CHECK(dst.is_quantized(),
              "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
              "float Tensor from a quantized Tensor");
  if (!self.is_quantized()) check_quantizable(self, dst);
  const at::Tensor source = self.is_quantized() ? self : quantize_like(self.to(dst.device()), dst);
  TORCH_CHECK(source.qscheme() == dst.qscheme(), "Quantized Copy only works with same qscheme");
  TORCH_CHECK(source.scalar_type() == dst.scalar_type(), "Quantized copy only works with the same dtype");
  check_whole(source);
  check_whole(dst);
  integers_of(dst).copy_(integers_of(source), non_blocking);
  const auto to_dst = [&](const at::Tensor& member) { return member.to(dst.device()); };
  at::set_quantizer_(dst, with_members(at::get_qtensorimpl(source)->quantizer(), to_dst));
  return dst;
}

at::Tensor int_repr(const at::Tensor& self) {
  static OpCounters& counters = op_counters("aten::int_repr");
  const OpScope scope(counters, Route::kLibrary);
  const int64_t in_a_byte = elements_of_byte(self);
  if (in_a_byte == 1) return integers_of(self).clone(self.suggest_memory_format());
  return integers_of(self).flatten().narrow(0, 0, (self.numel() + in_a_byte - 1) / in_a_byte).clone();
}

TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  m.impl("_copy_from", copy_from);
  m.impl("int_repr", int_repr);
}

}  // namespace
}  // namespace npu::aten
