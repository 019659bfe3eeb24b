// Shapes of results, for operators whose shape inference PyTorch does not offer as a C++ meta function. The column
// `shape` of npu_functions.yaml calls them with the operator's arguments.
//
// A rule looks at sizes, strides and dtypes only and follows the CPU kernel, memory format included. Errors: TORCH_CHECK,
// before anything is queued.
#pragma once

#include <ATen/core/TensorBody.h>
#include <c10/util/OptionalArrayRef.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <optional>
#include <string_view>

namespace at {
struct TensorIteratorBase;
}

namespace npu::aten {

// One result. Empty strides: contiguous, or the options' memory format.
struct TensorSpec {
  c10::SmallVector<int64_t, 6> sizes;
  at::TensorOptions options;
  c10::SmallVector<int64_t, 6> strides = {};
  bool any_dtype = false;  // an out= tensor of another dtype is welcome; the kernel casts
  bool defined = true;     // false: this call has no such result
  bool conjugate = false;  // a new result has the conj bit
  bool new_only = false;   // `strides` are those of a new result; an out= tensor that is resized becomes contiguous
};

template <size_t kCount>
using TensorSpecs = std::array<TensorSpec, kCount>;

namespace shapes {

TensorSpec of(at::IntArrayRef sizes, const at::TensorOptions& options);  // contiguous
TensorSpec none();

// Element-wise results.
TensorSpec like(const at::Tensor& self);  // dense strides kept
TensorSpec like(const at::Tensor& self, at::ScalarType dtype);
TensorSpec resized(TensorSpec spec);  // by a kernel that resizes an empty output: contiguous where it has no elements
TensorSpec contiguous_like(const at::Tensor& self);
TensorSpec real_like(const at::Tensor& self);                    // complex -> its real type
TensorSpec floating_like(const at::Tensor& self);                // integers -> the default dtype, complex -> real
TensorSpec in_suggested_format(const at::Tensor& self);          // contiguous, or channels last when the tensor is
TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b);  // dtype by promotion
TensorSpec broadcast(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);
TensorSpec contiguous_broadcast(const at::Tensor& a, const at::Tensor& b);  // dtype of `a`
TensorSpec contiguous_broadcast(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);
// The strides of a new result of `iterator` where the CPU would compute on copies of its operands: those of another dtype
// than the common one are copied there, and copies are dense. Null: the iterator's own strides are right.
std::optional<c10::SmallVector<int64_t, 6>> strides_from_copies(const at::TensorIteratorBase& iterator);
// Like `a` where the others do not make it larger, else contiguous.
TensorSpec like_first(const at::Tensor& a, const at::Tensor& b);
TensorSpec like_first(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);
TensorSpec where(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b);
TensorSpec complex_of(const at::Tensor& real, const at::Tensor& imaginary);
TensorSpecs<2> frexp(const at::Tensor& self);

// Reductions and selections.
TensorSpec scalar_like(const at::Tensor& self);
TensorSpec extremum(const at::Tensor& self, const char* function);  // of at least one element
TensorSpec trace(const at::Tensor& self);
TensorSpec nonzero_static(const at::Tensor& self, int64_t size);
TensorSpec scalar(const at::Tensor& self, at::ScalarType dtype);
at::ScalarType sum_dtype(const at::Tensor& self, std::optional<at::ScalarType> dtype = std::nullopt);
TensorSpec reduced(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim, at::ScalarType dtype);
TensorSpec variance(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim);  // real
TensorSpecs<2> variance_and_mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim);
TensorSpecs<2> values_and_indices(const at::Tensor& self, int64_t dim, bool keepdim, const char* function);
TensorSpecs<2> kthvalue(const at::Tensor& self, int64_t k, int64_t dim, bool keepdim);
TensorSpec along(const at::Tensor& self, int64_t dim);  // of the sizes of `self`
TensorSpec flip(const at::Tensor& self, at::IntArrayRef dims);
TensorSpec roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims);
TensorSpec index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index);
TensorSpec take(const at::Tensor& self, const at::Tensor& index);
TensorSpec search(const at::Tensor& positions_of, bool int32);
TensorSpec bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool int32);
TensorSpec bucketize(const at::Scalar& self, const at::Tensor& boundaries, bool int32);
TensorSpec searchsorted(const at::Tensor& sorted_sequence, const at::Tensor& self, bool int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter);
TensorSpec searchsorted(const at::Tensor& sorted_sequence, const at::Scalar& self, bool int32, bool right,
                        std::optional<std::string_view> side, const std::optional<at::Tensor>& sorter);
TensorSpec bins(const at::Tensor& self, int64_t count, const at::Scalar& min, const at::Scalar& max);
TensorSpec bins(const at::Tensor& self, at::IntArrayRef counts);
TensorSpec bins(const at::Tensor& self, at::TensorList edges);
TensorSpecs<2> histogram(const at::Tensor& self, int64_t count);  // counts and edges
TensorSpecs<2> histogram(const at::Tensor& self, const at::Tensor& edges);
TensorSpec segments(const at::Tensor& data, const std::optional<at::Tensor>& lengths,
                    const std::optional<at::Tensor>& offsets, int64_t axis);
TensorSpec repeated(const at::Tensor& repeats, std::optional<int64_t> output_size);  // with an output_size
TensorSpec narrowed(const at::Tensor& self, int64_t dim, int64_t start, int64_t length);
TensorSpec linear_combination(const at::Tensor& input, const at::Tensor& coefficients);

// Factories, shaped from numbers; the dtype is that of `out`.
TensorSpec arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out);
TensorSpec range(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, const at::Tensor& out);
TensorSpec steps(int64_t count, const at::Tensor& out);
TensorSpec matrix(int64_t rows, int64_t columns, const at::Tensor& out);

// Linear algebra.
TensorSpec column_major_like(const at::Tensor& self);
TensorSpec dot(const at::Tensor& self, const at::Tensor& other, bool conjugates_self);
TensorSpec addr(const at::Tensor& self, const at::Tensor& vec1, const at::Tensor& vec2);
TensorSpec addbmm(const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2);
TensorSpec matrix_product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype);
TensorSpec packed_product(const at::Tensor& self, int64_t columns);  // weights in a layout of their own
TensorSpec cdist(const at::Tensor& x1, const at::Tensor& x2);
TensorSpec cdist_backward(const at::Tensor& x1, const at::Tensor& x2);  // of x1
TensorSpec pdist(const at::Tensor& self);
TensorSpec solve_triangular(const at::Tensor& triangle, const at::Tensor& right_side);
TensorSpecs<2> geqrf(const at::Tensor& self);
TensorSpec ormqr(const at::Tensor& self, const at::Tensor& other);
TensorSpec fft_c2c(const at::Tensor& self, at::IntArrayRef dim);
TensorSpec fft_r2c(const at::Tensor& self, at::IntArrayRef dim, bool onesided);
TensorSpec fft_c2r(const at::Tensor& self, at::IntArrayRef dim, int64_t last_dim_size);

// Losses: `reduction` is at::Reduction.
TensorSpec loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction);
TensorSpec huber_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction, double delta);
TensorSpec multi_margin_loss(const at::Tensor& self, const at::Tensor& target, const at::Scalar& p,
                             const std::optional<at::Tensor>& weight, int64_t reduction);
TensorSpecs<2> nll_loss2d(const at::Tensor& self, int64_t reduction);
TensorSpecs<2> ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
                        at::IntArrayRef target_lengths, int64_t blank);
TensorSpecs<2> multilabel_margin_loss(const at::Tensor& self, const at::Tensor& target, int64_t reduction);

// Normalisation and embedding.
TensorSpecs<3> batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                          const std::optional<at::Tensor>& running_mean, bool training);
TensorSpecs<4> batch_norm_with_reserve(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                       const std::optional<at::Tensor>& running_mean);
TensorSpecs<3> batch_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                   std::array<bool, 3> output_mask);
TensorSpecs<2> batch_norm_statistics(const at::Tensor& input);
TensorSpecs<3> layer_norm(const at::Tensor& input, at::IntArrayRef normalized_shape,
                          const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias);
TensorSpecs<3> layer_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                                   const std::optional<at::Tensor>& bias, std::array<bool, 3> output_mask);
TensorSpecs<3> group_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight, int64_t samples,
                          int64_t groups);
TensorSpecs<3> group_norm_backward(const at::Tensor& input, const std::optional<at::Tensor>& weight, int64_t channels,
                                   std::array<bool, 3> output_mask);
TensorSpec embedding_dense_backward(const at::Tensor& grad_output, int64_t num_weights);
// `for_gradient`: the bag sizes are needed whatever the mode.
TensorSpecs<4> embedding_bag(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
                             int64_t mode, const std::optional<at::Tensor>& per_sample_weights,
                             bool include_last_offset, int64_t padding_idx, bool for_gradient);
TensorSpecs<2> weight_norm(const at::Tensor& v, const at::Tensor& g);

// Convolution, pooling, padding, sampling.
TensorSpec convolution(const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, int64_t groups);
// Of 2D convolutions: gradients are in channels last when one of the forward pass's tensors is.
TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    std::array<bool, 3> output_mask);
TensorSpecs<3> convolution_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight,
                                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                    bool transposed, at::IntArrayRef output_padding, int64_t groups,
                                    std::array<bool, 3> output_mask);
TensorSpec plain_convolution(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                             at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation);
TensorSpec plain_convolution_transpose(const at::Tensor& self, const at::Tensor& weight, at::IntArrayRef kernel_size,
                                       at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef output_padding,
                                       at::IntArrayRef dilation);
TensorSpec adaptive_pool(const at::Tensor& self, at::IntArrayRef output_size);
TensorSpec with_last_sizes(const at::Tensor& self, at::IntArrayRef last);  // contiguous
TensorSpecs<2> max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                          at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode);
TensorSpec max_unpool(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size);
TensorSpec padded(const at::Tensor& self, at::IntArrayRef padding);
TensorSpec pixel_shuffle(const at::Tensor& self, int64_t upscale_factor);
TensorSpec pixel_unshuffle(const at::Tensor& self, int64_t downscale_factor);
TensorSpec im2col(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
                  at::IntArrayRef padding, at::IntArrayRef stride);
TensorSpec col2im(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size);
TensorSpec grid_sample(const at::Tensor& input, const at::Tensor& grid);
TensorSpecs<2> grid_sample_backward(const at::Tensor& input, const at::Tensor& grid, std::array<bool, 2> output_mask);

// Recurrent cells and attention.
TensorSpecs<3> lstm_cell(const at::Tensor& gates, const at::Tensor& cx);
TensorSpecs<3> lstm_cell_backward(const at::Tensor& cx, const at::Tensor& workspace, bool has_bias);
TensorSpecs<2> gru_cell(const at::Tensor& hx);
TensorSpecs<5> gru_cell_backward(const at::Tensor& grad_hy, bool has_bias);
TensorSpecs<2> multi_head_attention(const at::Tensor& query, const at::Tensor& key, int64_t heads, bool need_weights,
                                    bool average_weights);
TensorSpecs<2> flash_attention(const at::Tensor& query);
TensorSpecs<3> flash_attention_backward(const at::Tensor& grad_out, const at::Tensor& query, const at::Tensor& key,
                                        const at::Tensor& value);

// The values of jagged tensors of one ragged dimension, and the same parts padded to one length.
TensorSpec jagged_to_padded(const at::Tensor& values, at::TensorList offsets, at::IntArrayRef max_lengths);
TensorSpec padded_to_jagged(const at::Tensor& dense, at::TensorList offsets, std::optional<int64_t> total_length);

// Fake quantization: the result with a mask, the gradients with those of scale and zero point.
TensorSpecs<2> fake_quantize(const at::Tensor& self);
TensorSpecs<3> fake_quantize_backward(const at::Tensor& self, const at::Tensor& scale);

}  // namespace shapes
}  // namespace npu::aten
