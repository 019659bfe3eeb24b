// Shape rules of neural-network operators.
#include <ATen/AccumulateType.h>
#include <ATen/core/Reduction.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/layer_norm.h>
#include <ATen/native/LossMulti.h>
#include <ATen/native/PixelShuffle.h>
#include <ATen/native/Pool.h>
#include <ATen/OpMathType.h>

#include "aten/ops/arguments.h"
#include "aten/ops/shape_rules.h"

namespace npu::aten::shapes {
namespace {

TensorSpec in_suggested_format(const at::Tensor& self, at::IntArrayRef sizes) {
  TensorSpec spec = of(sizes, self.options());
  if (self.suggest_memory_format() != at::MemoryFormat::Contiguous && self.dim() == static_cast<int64_t>(sizes.size()))
    spec.options = spec.options.memory_format(self.suggest_memory_format());
  return spec;
}

// Statistics of half-precision data with single-precision parameters are kept in single precision.
at::TensorOptions parameter_options(const at::Tensor& input, const std::optional<at::Tensor>& parameter) {
  const bool mixed = at::isReducedFloatingType(input.scalar_type()) && parameter && parameter->defined() &&
                     parameter->scalar_type() == at::kFloat;
  return mixed ? input.options().dtype(at::kFloat) : input.options();
}

TensorSpec in_convolution_format(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef sizes) {
  constexpr auto channels_last = at::MemoryFormat::ChannelsLast;
  TensorSpec spec = of(sizes, self.options());
  if (self.suggest_memory_format() == channels_last || weight.suggest_memory_format() == channels_last)
    spec.options = spec.options.memory_format(channels_last);
  return spec;
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

// Heads and positions are swapped in memory: the CPU kernel makes gradients as [batch, positions, heads, head size].
TensorSpec with_heads_inside(const at::Tensor& like) {
  TensorSpec spec = of(like.sizes(), like.options());
  const int64_t heads = like.size(1), length = like.size(2), size = like.size(3);
  spec.strides = {length * heads * size, size, heads * size, 1};
  return spec;
}

// The format in which the CPU's convolution of these tensors leaves its result. PyTorch picks among its CPU kernels by
// device and sizes, so it is asked about CPU tensors of these sizes, without data.
at::MemoryFormat convolution_format(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                    at::IntArrayRef output_padding, int64_t groups) {
  const auto on_host = [](const at::Tensor& tensor) {
    return make_alias(nullptr, tensor.sizes(), tensor.strides(), tensor.scalar_type());
  };
  const at::Tensor host_input = on_host(input), host_weight = on_host(weight);
  const auto symbolic = [](at::IntArrayRef values) { return c10::fromIntArrayRefSlow(values); };
  const at::native::ConvBackend backend =
      at::native::select_conv_backend(host_input, host_weight, std::nullopt, symbolic(stride), symbolic(padding),
                                      symbolic(dilation), transposed, symbolic(output_padding), groups, std::nullopt);
  return at::native::_determine_backend_memory_format(host_input, host_weight, backend);
}

bool in_default_format(const at::Tensor& tensor) {
  return tensor.suggest_memory_format() == at::MemoryFormat::Contiguous;
}

}  // namespace

TensorSpec in_suggested_format(const at::Tensor& self) { return in_suggested_format(self, self.sizes()); }

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
  TORCH_CHECK(log_probs.dim() == 2 || log_probs.dim() == 3,
              "ctc_loss: expected log_probs of 2 or 3 dimensions, but got sizes ", log_probs.sizes());
  const int64_t batch = log_probs.dim() == 3 ? log_probs.size(1) : 1;
  TORCH_CHECK(blank >= 0 && blank < log_probs.size(-1), "blank must be in label range");
  TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == batch, "target_lengths must be of size batch_size");
  const auto longest = std::max_element(target_lengths.begin(), target_lengths.end());
  const int64_t length = longest == target_lengths.end() ? 0 : std::max<int64_t>(*longest, 0);
  TORCH_CHECK(targets.dim() != 2 || targets.size(1) >= length, "ctc_loss: expected targets with ", length,
              " columns, the longest of target_lengths, but got sizes ", targets.sizes());
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
  TensorSpec output = in_suggested_format(input);
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

TensorSpec convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  const std::vector<int64_t> sizes =
      transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride, dilation,
                                               groups)
                 : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
  TensorSpec spec = of(sizes, input.options());
  if (!in_default_format(input) || !in_default_format(weight))
    spec.options = spec.options.memory_format(
        convolution_format(input, weight, stride, padding, dilation, transposed, output_padding, groups));
  return spec;
}

// Both gradients are in channels last when one of the forward pass's tensors is; the 3D kernels for doubles know no such.
TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    std::array<bool, 3> output_mask) {
  const at::Tensor& model = in_default_format(input) ? weight : input;
  const bool kept = !in_default_format(model) && (input.dim() == 4 || input.scalar_type() != at::kDouble);
  const at::MemoryFormat format = kept ? model.suggest_memory_format() : at::MemoryFormat::Contiguous;
  TensorSpec grad_input = contiguous_like(input), grad_weight = contiguous_like(weight);
  grad_input.options = grad_input.options.memory_format(format);
  grad_weight.options = grad_weight.options.memory_format(format);
  return {if_wanted(output_mask[0], grad_input), if_wanted(output_mask[1], grad_weight),
          if_wanted(output_mask[2], of({grad_output.size(1)}, grad_output.options()))};
}

TensorSpec plain_convolution(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  c10::SmallVector<int64_t, 6> last = {weight.size(0)};
  for (size_t i = 0; i < kernel_size.size(); ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - static_cast<int64_t>(kernel_size.size()));
    const int64_t extent = dilation.empty() ? kernel_size[i] : dilation[i] * (kernel_size[i] - 1) + 1;
    last.push_back((size + 2 * padding[i] - extent) / stride[i] + 1);
  }
  return in_convolution_format(self, weight, with_last(self.sizes(), last));
}

TensorSpec plain_convolution_transpose(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef output_padding,
                                       at::IntArrayRef dilation) {
  c10::SmallVector<int64_t, 6> last = {weight.size(1)};
  for (size_t i = 0; i < kernel_size.size(); ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - static_cast<int64_t>(kernel_size.size()));
    last.push_back((size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + output_padding[i] +
                   1);
  }
  return of(with_last(self.sizes(), last), self.options());
}

TensorSpec adaptive_pool(const at::Tensor& self, at::IntArrayRef output_size) {
  return in_suggested_format(self, with_last(self.sizes(), output_size));
}

TensorSpec with_last_sizes(const at::Tensor& self, at::IntArrayRef last) {
  return of(with_last(self.sizes(), last), self.options());
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
  return output_size.size() == 2 ? adaptive_pool(self, output_size) : with_last_sizes(self, output_size);
}

TensorSpec padded(const at::Tensor& self, at::IntArrayRef padding) {
  const size_t dims = padding.size() / 2;
  TORCH_CHECK(self.dim() > static_cast<int64_t>(dims), "padding of ", dims,
              " dimensions needs an input with more, but got ", self.sizes());
  c10::SmallVector<int64_t, 6> sizes(self.sizes().begin(), self.sizes().end());
  for (size_t i = 0; i < dims; ++i) sizes[sizes.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
  return in_suggested_format(self, sizes);
}

TensorSpec pixel_shuffle(const at::Tensor& self, int64_t upscale_factor) {
  at::native::check_pixel_shuffle_shapes(self, upscale_factor);
  return in_suggested_format(
      self, with_last(self.sizes(), {self.size(-3) / (upscale_factor * upscale_factor), self.size(-2) * upscale_factor,
                                     self.size(-1) * upscale_factor}));
}

TensorSpec pixel_unshuffle(const at::Tensor& self, int64_t downscale_factor) {
  at::native::check_pixel_unshuffle_shapes(self, downscale_factor);
  return in_suggested_format(
      self, with_last(self.sizes(), {self.size(-3) * downscale_factor * downscale_factor,
                                     self.size(-2) / downscale_factor, self.size(-1) / downscale_factor}));
}

TensorSpec im2col(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
                  at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "Expected 3D or 4D input to im2col, but got sizes ", self.sizes());
  int64_t blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - 2) + 2 * padding[i];
    blocks *= div_rtn<int64_t>(size - dilation[i] * (kernel_size[i] - 1) - 1, stride[i]) + 1;
  }
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
  return {like(query), logsumexp};
}

TensorSpecs<3> flash_attention_backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return {with_heads_inside(query), with_heads_inside(key), with_heads_inside(value)};
}

TensorSpecs<2> fake_quantize(const at::Tensor& self) { return {like(self), like(self, at::kBool)}; }

TensorSpecs<3> fake_quantize_backward(const at::Tensor& self, const at::Tensor& scale) {
  const TensorSpec parameter = of(scale.dim() == 0 ? at::IntArrayRef({1}) : scale.sizes(), scale.options());
  return {like(self), parameter, parameter};
}

}  // namespace npu::aten::shapes
