// Shape rules of losses, normalisation, embedding, recurrent cells and attention.
#include <ATen/AccumulateType.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/layer_norm.h>
#include <ATen/native/LossMulti.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorUtils.h>

#include <algorithm>

#include "aten/ops/shape_rules.h"

namespace npu::aten::shapes {
namespace {

// Statistics of half-precision data with single-precision parameters are kept in single precision.
at::TensorOptions parameter_options(const at::Tensor& input, const std::optional<at::Tensor>& parameter) {
  const bool mixed = at::isReducedFloatingType(input.scalar_type()) && parameter && parameter->defined() &&
                     parameter->scalar_type() == at::kFloat;
  return mixed ? input.options().dtype(at::kFloat) : input.options();
}

TensorSpec if_wanted(bool wanted, TensorSpec spec) { return wanted ? spec : none(); }

TensorSpec reduced_loss(TensorSpec elements, int64_t reduction) {
  return reduction == at::Reduction::None ? elements : of({}, elements.options);
}

bool has_elements(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

// One number for each sample.
TensorSpec batch_loss(const at::Tensor& self, int64_t reduction) {
  const at::IntArrayRef sizes = self.sizes();
  return reduced_loss(of(sizes.slice(0, sizes.size() > 1 ? 1 : 0), self.options()), reduction);
}

// Heads and positions are swapped in memory: the CPU kernel makes gradients as [batch, positions, heads, head size].
TensorSpec with_heads_inside(const at::Tensor& like) {
  TensorSpec spec = of(like.sizes(), like.options());
  const int64_t heads = like.size(1), length = like.size(2), size = like.size(3);
  spec.strides = {length * heads * size, size, heads * size, 1};
  return spec;
}

}  // namespace

TensorSpec loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  return reduced_loss(broadcast(self, target), reduction);
}

TensorSpec huber_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  return loss(self, target, reduction);
}

TensorSpec multi_margin_loss(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                             const std::optional<at::Tensor>& weight, int64_t reduction) {
  TORCH_CHECK(p.toDouble() == 1 || p.toDouble() == 2, "only p == 1 and p == 2 supported");
  int64_t samples = 0, classes = 0;
  at::native::multi_margin_loss_shape_check(samples, classes, self.dim(), self, target, weight);
  return batch_loss(self, reduction);
}

TensorSpecs<2> nll_loss2d(const at::Tensor& self, int64_t reduction) {
  TORCH_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got input of size: ", self.sizes());
  const TensorSpec elements = of({self.size(0), self.size(2), self.size(3)}, self.options());
  return {reduced_loss(elements, reduction), of({}, self.options())};
}

TensorSpecs<2> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
                        at::IntArrayRef target_lengths, int64_t blank) {
  constexpr auto checking = "ctc_loss_allocate_outputs";
  const at::TensorArg log_probs_argument(log_probs, "log_probs", 1), targets_argument(targets, "targets", 2);
  at::checkDim(checking, log_probs_argument, 3);
  at::checkDimRange(checking, targets_argument, 1, 3);
  const int64_t batch = log_probs.size(1);
  TORCH_CHECK(blank >= 0 && blank < log_probs.size(-1), "blank must be in label range");
  TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  int64_t length = 0, total = 0;
  for (const int64_t target_length : target_lengths) {
    TORCH_CHECK(target_length >= 0, "Expected target_lengths to have value at least 0, but got value ", target_length,
                " (while checking arguments for ", checking, ")");
    length = std::max(length, target_length);
    total += target_length;
  }
  if (targets.dim() == 1) {
    at::checkSize(checking, targets_argument, 0, total);
  } else {
    at::checkSize(checking, targets_argument, 0, batch);
    TORCH_CHECK(targets.size(1) >= length, "Expected tensor to have size at least ", length,
                " at dimension 1, but got size ", targets.size(1), " for ", targets_argument,
                " (while checking arguments for ", checking, ")");
  }
  for (const int64_t input_length : input_lengths) {
    TORCH_CHECK(input_length >= 0, "Expected input_lengths to have value at least 0, but got value ", input_length,
                " (while checking arguments for ", checking, ")");
    TORCH_CHECK(input_length <= log_probs.size(0), "Expected input_lengths to have value at most ", log_probs.size(0),
                ", but got value ", input_length, " (while checking arguments for ", checking, ")");
  }
  return {of({batch}, log_probs.options()), of({batch, log_probs.size(0), 2 * length + 1}, log_probs.options())};
}

TensorSpecs<2> multilabel_margin_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction) {
  int64_t samples = 0, classes = 0;
  at::native::multilabel_margin_loss_shape_check(samples, classes, self.dim(), self, target);
  return {batch_loss(self, reduction), of(target.sizes(), self.options())};
}

TensorSpecs<3> batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                          const std::optional<at::Tensor>& running_mean, bool training) {
  TORCH_CHECK(input.dim() >= 2, "batch_norm expects an input with at least 2 dimensions, but got ", input.sizes());
  const at::TensorOptions options = parameter_options(input, has_elements(weight) ? weight : running_mean);
  const TensorSpec statistics = of({training ? input.size(1) : 0}, options);
  // What lies in both formats, as images of one element do, is contiguous here.
  TensorSpec output = input.is_contiguous() ? contiguous_like(input) : in_suggested_format(input);
  output.new_only = true;
  return {output, statistics, statistics};
}

TensorSpecs<4> batch_norm_with_reserve(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                       const std::optional<at::Tensor>& running_mean) {
  const TensorSpecs<3> specs = batch_norm(input, weight, running_mean, /*training=*/true);
  return {specs[0], specs[1], specs[2], of({0}, input.options().dtype(at::kByte))};
}

TensorSpecs<3> batch_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                   std::array<bool, 3> output_mask) {
  const TensorSpec parameter = of({input.size(1)}, parameter_options(input, weight));
  return {if_wanted(output_mask[0], in_suggested_format(input)), if_wanted(output_mask[1], parameter),
          if_wanted(output_mask[2], parameter)};
}

TensorSpecs<2> batch_norm_statistics(const at::Tensor& input) {
  const TensorSpec statistics = of({input.size(1)}, input.options());
  return {statistics, statistics};
}

TensorSpecs<3> layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                          const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias) {
  at::native::_check_layer_norm_inputs(input, normalized_shape, weight.value_or(at::Tensor()),
                                       bias.value_or(at::Tensor()));
  const auto normalized = static_cast<int64_t>(normalized_shape.size());
  TensorSpec statistics = of(input.sizes(), parameter_options(input, weight));
  std::fill(statistics.sizes.end() - normalized, statistics.sizes.end(), 1);
  return {contiguous_like(input), statistics, statistics};
}

TensorSpecs<3> layer_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                   const std::optional<at::Tensor>& bias, std::array<bool, 3> output_mask) {
  return {if_wanted(output_mask[0], contiguous_like(input)),
          output_mask[1] && has_elements(weight) ? contiguous_like(*weight) : none(),
          output_mask[2] && has_elements(bias) ? contiguous_like(*bias) : none()};
}

TensorSpecs<3> group_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight, int64_t samples,
                          int64_t groups) {
  const TensorSpec statistics = of({samples, groups}, parameter_options(input, weight));
  return {in_suggested_format(input), statistics, statistics};
}

TensorSpecs<3> group_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight, int64_t channels,
                                   std::array<bool, 3> output_mask) {
  const TensorSpec parameter = of({channels}, has_elements(weight) ? weight->options() : input.options());
  return {if_wanted(output_mask[0], in_suggested_format(input)), if_wanted(output_mask[1], parameter),
          if_wanted(output_mask[2], parameter)};
}

TensorSpec embedding_dense_backward(const at::Tensor& grad_output, int64_t num_weights) {
  return of({num_weights, grad_output.size(-1)}, grad_output.options());
}

TensorSpecs<4> embedding_bag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                             int64_t mode, const std::optional<at::Tensor>& per_sample_weights,
                             bool include_last_offset, int64_t padding_idx, bool for_gradient) {
  TORCH_CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1,
              "embedding_bag: expected a weight matrix and vectors of indices and offsets, but got sizes ",
              weight.sizes(), ", ", indices.sizes(), " and ", offsets.sizes());
  constexpr int64_t kSum = 0, kMax = 2;
  TORCH_CHECK(mode >= kSum && mode <= kMax, "`mode` must be sum, mean, or max.");
  TORCH_CHECK(padding_idx >= -1 && padding_idx < std::max<int64_t>(weight.size(0), 1),
              "padding_idx must be within the number of embeddings, ", -weight.size(0), " through ", weight.size(0) - 1,
              ", but got ", padding_idx);
  if (has_elements(per_sample_weights)) {
    TORCH_CHECK(mode == kSum, "embedding_bag: per_sample_weights only supported with mode='sum'");
    TORCH_CHECK(per_sample_weights->dim() == 1,
                "Expected per_sample_weights.value().dim() == 1 to be true, but got false.");
    TORCH_CHECK(per_sample_weights->numel() == indices.numel(),
                "Expected per_sample_weights.value().numel() == indices.numel() to be true, but got false.");
  }
  const int64_t bags = offsets.size(0) - (include_last_offset ? 1 : 0);
  TORCH_CHECK(bags >= 0, "include_last_offset: number of offsets should be at least 1");
  // Sums of whole rows need no map from index to bag: the CPU kernel leaves it empty.
  const at::ScalarType dtype = weight.scalar_type();
  const bool sums_rows = mode == kSum && padding_idx < 0 && weight.stride(1) == 1 &&
                         (dtype == at::kFloat || dtype == at::kHalf || dtype == at::kBFloat16) &&
                         (!has_elements(per_sample_weights) || per_sample_weights->stride(0) == 1);
  const at::TensorOptions index =
      offsets.options().dtype(at::promoteTypes(indices.scalar_type(), offsets.scalar_type()));
  const int64_t sizes = for_gradient || mode != kSum ? bags : offsets.size(0);
  return {of({bags, weight.size(1)}, weight.options()), of({sums_rows ? 0 : indices.size(0)}, index),
          of({sizes}, index), mode == kMax ? of({bags, weight.size(1)}, index) : of({sizes}, index)};
}

TensorSpecs<2> weight_norm(const at::Tensor& v, const at::Tensor& g) {
  return {contiguous_like(v), of(g.sizes(), g.options().dtype(at::toOpMathType(g.scalar_type())))};
}

TensorSpecs<3> lstm_cell(const at::Tensor& gates, const at::Tensor& cx) {
  return {contiguous_like(cx), contiguous_like(cx), contiguous_like(gates)};
}

TensorSpecs<3> lstm_cell_backward(const at::Tensor& cx, const at::Tensor& workspace, bool has_bias) {
  return {contiguous_like(workspace), contiguous_like(cx),
          if_wanted(has_bias, of({workspace.size(1)}, workspace.options()))};
}

TensorSpecs<2> gru_cell(const at::Tensor& hx) {
  return {contiguous_like(hx), of({hx.size(0), 5 * hx.size(1)}, hx.options())};
}

TensorSpecs<5> gru_cell_backward(const at::Tensor& grad_hy, bool has_bias) {
  const int64_t gates = 3 * grad_hy.size(1);
  const TensorSpec grad_gates = of({grad_hy.size(0), gates}, grad_hy.options());
  const TensorSpec grad_bias = if_wanted(has_bias, of({gates}, grad_hy.options()));
  return {grad_gates, grad_gates, contiguous_like(grad_hy), grad_bias, grad_bias};
}

TensorSpecs<2> multi_head_attention(const at::Tensor& query, const at::Tensor& key, int64_t heads, bool need_weights,
                                    bool average_weights) {
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(heads > 0, "expected a positive number of heads, but got ", heads);
  const int64_t batch = query.size(0), rows = query.size(1), columns = key.size(1);
  const TensorSpec weights = average_weights ? of({batch, rows, columns}, query.options())
                                             : of({batch, heads, rows, columns}, query.options());
  return {contiguous_like(query), if_wanted(need_weights, weights)};
}

TensorSpecs<2> flash_attention(const at::Tensor& query) {
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  TensorSpec logsumexp = of({batch, heads, length}, query.options().dtype(at::toOpMathType(query.scalar_type())));
  logsumexp.strides = {length * heads, 1, heads};
  return {like(query), logsumexp};
}

TensorSpecs<3> flash_attention_backward(const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value) {
  if (!grad_out.defined()) return {none(), none(), none()};
  return {with_heads_inside(query), with_heads_inside(key), with_heads_inside(value)};
}

TensorSpec jagged_to_padded(const at::Tensor& values, at::TensorList offsets, at::IntArrayRef max_lengths) {
  TORCH_CHECK(offsets.size() == 1 && max_lengths.size() == 1, "jagged tensors have one ragged dimension, but got ",
              offsets.size(), " offsets and ", max_lengths.size(), " lengths");
  TORCH_CHECK(values.dim() > 0 && offsets[0].dim() == 1 && offsets[0].numel() > 0,
              "expected values of at least one dimension and a vector of offsets, but got sizes ", values.sizes(),
              " and ", offsets[0].sizes());
  TensorSpec spec = of({offsets[0].numel() - 1, max_lengths[0]}, values.options());
  spec.sizes.append(values.sizes().begin() + 1, values.sizes().end());
  return spec;
}

TensorSpec padded_to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total_length) {
  TORCH_CHECK(offsets.size() == 1, "jagged tensors have one ragged dimension, but got ", offsets.size(), " offsets");
  TORCH_CHECK(dense.dim() > 1, "expected a batch of padded parts, but got sizes ", dense.sizes());
  TensorSpec spec = of({*total_length}, dense.options());
  spec.sizes.append(dense.sizes().begin() + 2, dense.sizes().end());
  return spec;
}

TensorSpecs<2> fake_quantize(const at::Tensor& self) { return {like(self), like(self, at::kBool)}; }

TensorSpecs<3> fake_quantize_backward(const at::Tensor& self, const at::Tensor& scale) {
  const TensorSpec parameter = of(scale.dim() == 0 ? at::IntArrayRef({1}) : scale.sizes(), scale.options());
  return {like(self), parameter, parameter};
}

}  // namespace npu::aten::shapes
