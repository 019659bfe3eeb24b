// Which kernel scaled_dot_product_attention takes on npu: PyTorch's own rules for CPU tensors, flash attention or the
// composition of matrix products and a softmax. Both exist as operators here.
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>

namespace at::native {
namespace {

int64_t choose_like_cpu(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                        double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  return _fused_sdp_choice_cpp(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa);
}

}  // namespace

REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &choose_like_cpu)

}  // namespace at::native
