// Shape rules of neural-network operators.
#include <ATen/AccumulateType.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/layer_norm.h>
#include <ATen/native/LossMulti.h>
#include <ATen/native/Pool.h>
#include <ATen/OpMathType.h>

#include "aten/ops/shape_rules.h"

namespace npu::aten::shapes {
namespace {

// Contiguous, or channels last when the tensor is.
TensorSpec in_suggested_format(const at::Tensor& self, at::IntArrayRef sizes) {
  TensorSpec spec = of(sizes, self.options());
  if (self.suggest_memory_format() != at::MemoryFormat::Contiguous && self.dim() == static_cast<int64_t>(sizes.size()))
    spec.options = spec.options.memory_format(self.suggest_memory_format());
  return spec;
}

TensorSpec in_suggested_format(const at::Tensor& self) { return in_suggested_format(self, self.sizes()); }

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

c10::SmallVector<int64_t, 6> with_last(at::IntArrayRef sizes, at::IntArrayRef last) {
  TORCH_CHECK(sizes.size() >= last.size(), "expected at least ", last.size(), " dimensions, but got sizes ", sizes);
  c10::SmallVector<int64_t, 6> result(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  result.append(last.begin(), last.end());
  return result;
}

// One number for each sample.
TensorSpec batch_loss(const at::Tensor& self, int64_t reduction) {
  const at::IntArrayRef sizes = self.sizes();
  return reduced_loss(of(sizes.slice(0, sizes.size() > 1 ? 1 : 0), self.options()), reduction);
}

// Heads and positions are swapped in memory: the CPU kernel computes with [batch, positions, heads, head size].
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
  return {in_suggested_format(input), statistics, statistics};
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

TensorSpecs<2> weight_norm(const at::Tensor& v, const at::Tensor& g) {
  return {contiguous_like(v), of(g.sizes(), g.options().dtype(at::toOpMathType(g.scalar_type())))};
}

TensorSpec convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const std::vector<int64_t> sizes =
      transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride, dilation,
                                               groups)
                 : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  TensorSpec spec = of(sizes, input.options());
  const auto is_channels_last = [](const at::Tensor& tensor) {
    return tensor.suggest_memory_format() == at::MemoryFormat::ChannelsLast;
  };
  // The kernels that double precision is left to keep the layout in two dimensions.
  const bool kept = input.scalar_type() == at::kDouble && (is_channels_last(input) || is_channels_last(weight));
  if (kept || at::native::mkldnn_conv_use_channels_last(input, weight))
    spec.options = spec.options.memory_format(input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                                               : at::MemoryFormat::ChannelsLast);
  return spec;
}

TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    std::array<bool, 3> output_mask) {
  return {if_wanted(output_mask[0], in_suggested_format(input)), if_wanted(output_mask[1], in_suggested_format(weight)),
          if_wanted(output_mask[2], of({grad_output.size(1)}, grad_output.options()))};
}

TensorSpec adaptive_pool(const at::Tensor& self, at::IntArrayRef output_size) {
  return in_suggested_format(self, with_last(self.sizes(), output_size));
}

TensorSpecs<2> max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                          at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode) {
  using Triple = std::array<int, 3>;
  const auto triple = [](at::IntArrayRef values, const char* complaint) {
    TORCH_CHECK(values.size() == 1 || values.size() == 3, complaint);
    const auto pick = [&](size_t i) {
      return at::native::safe_downcast<int, int64_t>(values[values.size() == 1 ? 0 : i]);
    };
    return Triple{pick(0), pick(1), pick(2)};
  };
  const Triple k = triple(kernel_size, "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
  TORCH_CHECK(stride.empty() || stride.size() == 1 || stride.size() == 3,
              "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
  const Triple s = stride.empty() ? k : triple(stride, "");
  const Triple p = triple(padding, "max_pool3d: padding must either be a single int, or a tuple of three ints");
  const Triple d = triple(dilation, "max_pool3d: dilation must be either a single int, or a tuple of three ints");
  TORCH_CHECK(
      self.dim() == 4 || self.dim() == 5,
      "max_pool3d_with_indices_out_cpu_template(): Expected 4D or 5D tensor for input, but got: ", self.sizes());
  std::array<int64_t, 3> in{}, last{};
  for (size_t i = 0; i < 3; ++i) {
    in[i] = self.size(static_cast<int64_t>(i) - 3);
    last[i] = at::native::pooling_output_shape<int64_t>(in[i], k[i], p[i], s[i], d[i], ceil_mode);
  }
  at::native::pool3d_shape_check(self, self.size(-4), k[0], k[1], k[2], s[0], s[1], s[2], p[0], p[1], p[2], d[0], d[1],
                                 d[2], in[0], in[1], in[2], last[0], last[1], last[2],
                                 "max_pool3d_with_indices_out_cpu_template()");
  const TensorSpec values = in_suggested_format(self, with_last(self.sizes(), last));
  TensorSpec indices = values;
  indices.options = indices.options.dtype(at::kLong);
  return {values, indices};
}

TensorSpec max_unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size) {
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  return adaptive_pool(self, output_size);
}

TensorSpec padded(const at::Tensor& self, at::IntArrayRef padding) {
  const size_t dims = padding.size() / 2;
  TORCH_CHECK(self.dim() > static_cast<int64_t>(dims), "padding of ", dims,
              " dimensions needs an input with more, but got ", self.sizes());
  c10::SmallVector<int64_t, 6> sizes(self.sizes().begin(), self.sizes().end());
  for (size_t i = 0; i < dims; ++i) sizes[sizes.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
  return in_suggested_format(self, sizes);
}

TensorSpec im2col(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
                  at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "Expected 3D or 4D input to im2col, but got sizes ", self.sizes());
  int64_t blocks = 1;
  for (size_t i = 0; i < 2; ++i)
    blocks *= at::native::pooling_output_shape<int64_t>(self.size(static_cast<int64_t>(i) - 2), kernel_size[i],
                                                        padding[i], stride[i], dilation[i], /*ceil_mode=*/false);
  const int64_t rows = self.size(-3) * kernel_size[0] * kernel_size[1];
  return self.dim() == 4 ? of({self.size(0), rows, blocks}, self.options()) : of({rows, blocks}, self.options());
}

TensorSpec col2im(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "Expected 2D or 3D input to col2im, but got sizes ", self.sizes());
  const int64_t channels = self.size(-2) / (kernel_size[0] * kernel_size[1]);
  return self.dim() == 3 ? of({self.size(0), channels, output_size[0], output_size[1]}, self.options())
                         : of({channels, output_size[0], output_size[1]}, self.options());
}

TensorSpec grid_sample(const at::Tensor& input, const at::Tensor& grid) {
  c10::SmallVector<int64_t, 6> sizes = {input.size(0), input.size(1)};
  for (int64_t i = 1; i + 1 < grid.dim(); ++i) sizes.push_back(grid.size(i));
  return of(sizes, input.options());
}

TensorSpecs<2> grid_sample_backward(const at::Tensor& input, const at::Tensor& grid, std::array<bool, 2> output_mask) {
  return {if_wanted(output_mask[0], contiguous_like(input)), contiguous_like(grid)};
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
  const int64_t batch = query.size(0), rows = query.size(1), columns = key.size(1);
  const TensorSpec weights = average_weights ? of({batch, rows, columns}, query.options())
                                             : of({batch, heads, rows, columns}, query.options());
  return {contiguous_like(query), if_wanted(need_weights, weights)};
}

TensorSpecs<2> flash_attention(const at::Tensor& query) {
  const int64_t batch = query.size(0), heads = query.size(1), length = query.size(2);
  TensorSpec logsumexp = of({batch, heads, length}, query.options().dtype(at::toOpMathType(query.scalar_type())));
  logsumexp.strides = {length * heads, 1, heads};
  return {with_heads_inside(query), logsumexp};
}

TensorSpecs<3> flash_attention_backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return {with_heads_inside(query), with_heads_inside(key), with_heads_inside(value)};
}

}  // namespace npu::aten::shapes
