// Shape rules of convolution, pooling, padding and sampling.
#include <ATen/native/ConvUtils.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/native/Padding.h>
#include <ATen/native/PixelShuffle.h>
#include <ATen/native/Pool.h>

#include <algorithm>

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

TensorSpec in_convolution_format(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef sizes) {
  constexpr auto channels_last = at::MemoryFormat::ChannelsLast;
  TensorSpec spec = of(sizes, self.options());
  if (self.suggest_memory_format() == channels_last || weight.suggest_memory_format() == channels_last)
    spec.options = spec.options.memory_format(channels_last);
  return spec;
}

c10::SmallVector<int64_t, 6> with_last(at::IntArrayRef sizes, at::IntArrayRef last) {
  TORCH_CHECK(sizes.size() >= last.size(), "expected at least ", last.size(), " dimensions, but got sizes ", sizes);
  c10::SmallVector<int64_t, 6> result(sizes.begin(), sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  result.append(last.begin(), last.end());
  return result;
}

void check_length(at::IntArrayRef values, size_t length, const char* name) {
  TORCH_CHECK(values.size() == length, "It is expected ", name, " equals to ", length, ", but got size ",
              values.size());
}

bool all_positive(at::IntArrayRef values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value > 0; });
}

// All but the batch, which the first of `batched` dimensions is.
void check_not_empty(const at::Tensor& self, int64_t batched, const char* function, const char* words) {
  for (int64_t i = self.dim() == batched ? 1 : 0; i < self.dim(); ++i)
    TORCH_CHECK(self.size(i) > 0, function, "(): Expected input to have non-zero size for non-batch dimensions, but ",
                words, self.sizes(), " with dimension ", i, " being empty");
}

void check_adaptive_pool(const at::Tensor& self, at::IntArrayRef output_size, int64_t dims, const char* function) {
  TORCH_CHECK(static_cast<int64_t>(output_size.size()) == dims, function, ": output_size must be ", dims);
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, function, "(): Expected ", dims + 1, "D or ", dims + 2,
              "D tensor, but got ", self.sizes());
  check_not_empty(self, dims + 2, function, "input has sizes ");
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

at::MemoryFormat format_of_either(const at::Tensor& input, const at::Tensor& weight) {
  return (in_default_format(input) ? weight : input).suggest_memory_format();
}

TensorSpecs<3> gradients(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                         at::MemoryFormat format, std::array<bool, 3> output_mask) {
  TensorSpec grad_input = contiguous_like(input), grad_weight = contiguous_like(weight);
  grad_input.options = grad_input.options.memory_format(format);
  grad_weight.options = grad_weight.options.memory_format(format);
  const TensorSpec grad_bias = of({grad_output.size(1)}, grad_output.options());
  return {output_mask[0] ? grad_input : none(), output_mask[1] ? grad_weight : none(),
          output_mask[2] ? grad_bias : none()};
}

void check_convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(input.dim() >= 3 && input.dim() == weight.dim(),
              "expected an input and a weight of at least 3 dimensions each, but got sizes ", input.sizes(), " and ",
              weight.sizes());
  const auto dims = static_cast<size_t>(input.dim() - 2);
  check_length(stride, dims, "stride");
  check_length(padding, dims, "padding");
  check_length(dilation, dims, "dilation");
  if (transposed) check_length(output_padding, dims, "output_padding");
  TORCH_CHECK(all_positive(stride), "non-positive stride is not supported");
  TORCH_CHECK(all_positive(dilation), "dilation should be greater than zero");
  TORCH_CHECK(groups > 0, "non-positive groups is not supported");
}

// The CPU's kernels for 2 and 3 dimensions and those with dilation each have words of their own.
void check_plain_convolution(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  const bool dilated = !dilation.empty();
  const auto dims = static_cast<size_t>(std::max<int64_t>((dilated ? weight : self).dim(), 2) - 2);
  const auto check = [&](at::IntArrayRef values, const char* name, const char* dilated_name) {
    TORCH_CHECK(!dilated || values.size() == dims, dilated_name, " length should be ", dims, ", but got ",
                values.size());
    TORCH_CHECK(dims == 3 || values.size() == dims, dims, "D ", name, " expected");
    check_length(values, dims, name);
  };
  TORCH_CHECK(!dilated || self.dim() >= 2, "input must be 4D or 5D tensor but got ", self.dim(), "D tensor");
  TORCH_CHECK(dims == 2 || dims == 3, "non-empty 5D input tensor expected but got: ", self.sizes());
  check(kernel_size, "kernel_size", "kernel sizes");
  check(stride, "stride", "strides");
  check(padding, "padding", "pads");
  if (dilated) {
    check(dilation, "dilation", "dilations");
    TORCH_CHECK(all_positive(kernel_size), "kernel size should be greater than zero, but got ", kernel_size);
    TORCH_CHECK(all_positive(stride), "stride should be greater than zero, but got ", stride);
    TORCH_CHECK(all_positive(dilation), "dilation should be greater than zero, but got ", dilation);
  } else if (dims == 2) {
    TORCH_CHECK(all_positive(kernel_size),
                "kernel size should be greater than zero, but got kernel_height: ", kernel_size[0],
                " kernel_width: ", kernel_size[1]);
    TORCH_CHECK(all_positive(stride), "stride should be greater than zero, but got stride_height: ", stride[0],
                " stride_width: ", stride[1]);
  } else {
    TORCH_CHECK(all_positive(kernel_size), "kernel size should be greater than zero, but got: ", kernel_size[0], " x ",
                kernel_size[1], " x ", kernel_size[2], " (TxHxW)");
    TORCH_CHECK(all_positive(stride), "stride should be greater than zero, but got: ", stride[0], " x ", stride[1],
                " x ", stride[2], " (TxHxW)");
  }
}

// Kernels find this out as they start, which is late where the sample is too large to be rehearsed.
void check_dtype_of_grid(const at::Tensor& input, const at::Tensor& grid) {
  const at::ScalarType dtype = input.scalar_type();
  TORCH_CHECK((dtype != at::kFloat && dtype != at::kDouble) || grid.scalar_type() == dtype, "expected scalar type ",
              at::toString(dtype), " but found ", at::toString(grid.scalar_type()));
}

}  // namespace

TensorSpec in_suggested_format(const at::Tensor& self) { return in_suggested_format(self, self.sizes()); }

TensorSpec convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups) {
  check_convolution(input, weight, stride, padding, dilation, transposed, output_padding, groups);
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

TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    std::array<bool, 3> output_mask) {
  return gradients(grad_output, input, weight, format_of_either(input, weight), output_mask);
}

TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                    bool transposed, at::IntArrayRef output_padding, int64_t groups,
                                    std::array<bool, 3> output_mask) {
  at::MemoryFormat format = format_of_either(input, weight);
  if (format == at::MemoryFormat::ChannelsLast3d)  // which not all kernels know
    format = convolution_format(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  return gradients(grad_output, input, weight, format, output_mask);
}

TensorSpec plain_convolution(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  check_plain_convolution(self, weight, kernel_size, stride, padding, dilation);
  c10::SmallVector<int64_t, 6> last = {weight.size(0)};
  for (size_t i = 0; i < kernel_size.size(); ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - static_cast<int64_t>(kernel_size.size()));
    const int64_t extent = dilation.empty() ? kernel_size[i] : dilation[i] * (kernel_size[i] - 1) + 1;
    TORCH_CHECK(size + 2 * padding[i] >= extent, "a kernel of ", extent, " elements exceeds the padded input of ",
                size + 2 * padding[i], " in dimension ", i, " of sizes ", self.sizes());
    last.push_back((size + 2 * padding[i] - extent) / stride[i] + 1);
  }
  return in_convolution_format(self, weight, with_last(self.sizes(), last));
}

TensorSpec plain_convolution_transpose(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef output_padding,
                                       at::IntArrayRef dilation) {
  check_length(kernel_size, 3, "kernel_size");
  check_length(dilation, 3, "dilation");
  check_length(padding, 3, "padding");
  check_length(stride, 3, "stride");
  check_length(output_padding, 3, "stride");
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input, but got: ", self.sizes());
  TORCH_CHECK(all_positive(stride), "stride should be greater than zero, but got stride_depth: ", stride[0],
              " stride_height: ", stride[1], " stride_width: ", stride[2]);
  TORCH_CHECK(all_positive(dilation), "dilation should be greater than zero, but got dilation_depth: ", dilation[0],
              ", dilation_height: ", dilation[1], ", dilation_width: ", dilation[2]);
  c10::SmallVector<int64_t, 6> last = {weight.size(1)};
  for (size_t i = 0; i < kernel_size.size(); ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - static_cast<int64_t>(kernel_size.size()));
    last.push_back((size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + output_padding[i] +
                   1);
  }
  return of(with_last(self.sizes(), last), self.options());
}

TensorSpec adaptive_pool(const at::Tensor& self, at::IntArrayRef output_size) {
  check_adaptive_pool(self, output_size, 2, "adaptive_avg_pool2d");
  return in_suggested_format(self, with_last(self.sizes(), output_size));
}

TensorSpec with_last_sizes(const at::Tensor& self, at::IntArrayRef last) {
  check_adaptive_pool(self, last, 3, "adaptive_avg_pool3d");
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
  TORCH_CHECK(self.suggest_memory_format() != at::MemoryFormat::ChannelsLast,
              "Unsupported memory format. Supports only ChannelsLast3d, Contiguous");
  const TensorSpec values = in_suggested_format(self, with_last(self.sizes(), last));
  TensorSpec indices = values;
  indices.options = indices.options.dtype(at::kLong);
  return {values, indices};
}

TensorSpec max_unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size) {
  const bool in_space = output_size.size() == 3;
  const int64_t dims = in_space ? 3 : 2;
  TORCH_CHECK(in_space || output_size.size() == 2,
              "There should be exactly two elements (height, width) in output_size, but got ", output_size.size(),
              " elements.");
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Input to max_unpooling", dims, "d should be a ",
              dims + 1, "d or ", dims + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  check_not_empty(self, dims + 2, in_space ? "max_unpooling3d_forward_out_cpu" : "max_unpooling2d_forward_out_cpu",
                  "got ");
  const auto sizes = with_last(self.sizes(), output_size);
  return in_space ? of(sizes, self.options()) : in_suggested_format(self, sizes);
}

TensorSpec padded(const at::Tensor& self, at::IntArrayRef padding) {
  at::native::padding::check_valid_input<2>(self, padding);
  c10::SmallVector<int64_t, 6> sizes(self.sizes().begin(), self.sizes().end());
  for (size_t i = 0; i < 2; ++i) {
    int64_t& size = sizes[sizes.size() - 1 - i];
    const int64_t before = padding[2 * i], after = padding[2 * i + 1];
    TORCH_CHECK(before < size && after < size, "Argument #", 4 + 2 * i,
                ": Padding size should be less than the corresponding input dimension, but got: padding (", before,
                ", ", after, ") at dimension ", sizes.size() - 1 - i, " of input ", self.sizes());
    size += before + after;
  }
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
  check_length(kernel_size, 2, "kernel_size");
  check_length(dilation, 2, "dilation");
  check_length(padding, 2, "padding");
  check_length(stride, 2, "stride");
  at::native::im2col_shape_check(self, {}, kernel_size[0], kernel_size[1], dilation[0], dilation[1], padding[0],
                                 padding[1], stride[0], stride[1]);
  int64_t blocks = 1;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i) - 2) + 2 * padding[i];
    blocks *= div_rtn<int64_t>(size - dilation[i] * (kernel_size[i] - 1) - 1, stride[i]) + 1;
  }
  const int64_t rows = self.size(-3) * kernel_size[0] * kernel_size[1];
  return self.dim() == 4 ? of({self.size(0), rows, blocks}, self.options()) : of({rows, blocks}, self.options());
}

TensorSpec col2im(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size) {
  check_length(output_size, 2, "output_size");
  check_length(kernel_size, 2, "kernel_size");
  TORCH_CHECK(all_positive(kernel_size),
              "kernel size should be greater than zero, but got kernel_height: ", kernel_size[0],
              " kernel_width: ", kernel_size[1]);
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3, "Expected 2D or 3D input to col2im, but got sizes ", self.sizes());
  const int64_t rows = self.size(-2), channels = rows / kernel_size[0] / kernel_size[1];
  TORCH_CHECK(channels * kernel_size[0] * kernel_size[1] == rows,
              "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got ",
              "input.size(1)=", rows, " and kernel_size=(", kernel_size[0], ", ", kernel_size[1], ").");
  return self.dim() == 3 ? of({self.size(0), channels, output_size[0], output_size[1]}, self.options())
                         : of({channels, output_size[0], output_size[1]}, self.options());
}

TensorSpec grid_sample(const at::Tensor& input, const at::Tensor& grid) {
  at::native::check_grid_sampler_common(input, grid);
  if (grid.dim() == 4) at::native::check_grid_sampler_2d(input, grid);
  TORCH_CHECK(input.dim() == grid.dim(), "grid_sampler(): expected 5D input and grid with same number of dimensions, ",
              "but got input with sizes ", input.sizes(), " and grid with sizes ", grid.sizes());
  check_dtype_of_grid(input, grid);
  c10::SmallVector<int64_t, 6> sizes = {input.size(0), input.size(1)};
  for (int64_t i = 1; i + 1 < grid.dim(); ++i) sizes.push_back(grid.size(i));
  return of(sizes, input.options());
}

TensorSpecs<2> grid_sample_backward(const at::Tensor& input, const at::Tensor& grid, std::array<bool, 2> output_mask) {
  check_dtype_of_grid(input, grid);
  return {output_mask[0] ? contiguous_like(input) : none(), contiguous_like(grid)};
}

}  // namespace npu::aten::shapes
