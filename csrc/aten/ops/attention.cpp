// Which kernel scaled_dot_product_attention takes on npu: PyTorch's own rules for CPU tensors, flash attention or the
// composition of matrix products and a softmax. Both exist as operators here.
#include <ATen/EmptyTensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <torch/library.h>

#include "aten/ops/counted.h"

namespace npu::aten {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// The rules look at a mask's last stride on all devices but the CPU, whose kernel takes any. So they see one of the same
// sizes and stride 1, without memory.
OptionalTensor contiguous_on_meta(const OptionalTensor& mask) {
  if (!mask || !mask->defined() || mask->requires_grad() || mask->dim() == 0 || mask->stride(-1) == 1) return mask;
  return at::Tensor(at::detail::empty_meta(mask->sizes(), mask->scalar_type()));
}

int64_t choose_like_cpu(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                        const OptionalTensor& mask, double dropout_p, bool is_causal, std::optional<double> scale,
                        bool enable_gqa) {
  return at::native::_fused_sdp_choice_cpp(query, key, value, contiguous_on_meta(mask), dropout_p, is_causal, scale,
                                           enable_gqa);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", counted<op::_fused_sdp_choice, Route::kLibrary, choose_like_cpu>);
}

}  // namespace
}  // namespace npu::aten

namespace at::native {

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &npu::aten::choose_like_cpu)

}  // namespace at::native
