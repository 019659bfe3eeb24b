// What operators require of their arguments beyond what shape inference asks, in PyTorch's words, and what they say under
// torch.use_deterministic_algorithms. The column `check` of npu_functions.yaml calls these before anything is queued:
// first of all, or after the meta function of a structured operator, as its CPU kernel would.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/TensorBody.h>

#include <optional>
#include <string_view>

namespace npu::aten::checks {

// In place `other` does not make the result larger than `self`.
void fits_in_place(const at::Tensor& self, const at::Tensor& other);
void gelu(std::string_view approximate);
void addmm(const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2);
// In place (`out` is `self`) the matrix does not broadcast.
void addr(const at::Tensor& self, const at::Tensor& vec1, const at::Tensor& vec2, const at::Tensor& out);
void amp_unscale(at::TensorList self, const at::Tensor& found_inf, const at::Tensor& inv_scale);
void amp_update_scale(const at::Tensor& self, const at::Tensor& growth_tracker, const at::Tensor& found_inf);
void batch_norm(const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var);
void cdist(double p);
void channel_shuffle(const at::Tensor& self, int64_t groups);
// Integers are not divided by a zero that the host knows.
void divisor(const at::Tensor& self, const at::Tensor& other);
void divisor(const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> rounding_mode);
void fake_quantize(int64_t quant_min, int64_t quant_max);
void fake_quantize(int64_t zero_point, int64_t quant_min, int64_t quant_max);
void fill(const at::Tensor& value);
void group_norm(const at::Tensor& X, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                int64_t N, int64_t C, int64_t HxW, int64_t group);
void group_norm_backward(const at::Tensor& dY, const at::Tensor& X, const at::Tensor& mean, const at::Tensor& rstd,
                         const std::optional<at::Tensor>& weight, int64_t N, int64_t C, int64_t HxW, int64_t group);
void index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index);
void index_fill(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value);
// The result of a mask on the device has a size that the host does not know: then `values` is checked by the task alone.
void index_put(const at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices, const at::Tensor& values);
void masked_fill(const at::Tensor& value);
void masked_scatter(const at::Tensor& self, const at::Tensor& mask);
void put(const at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate);
void max_unpool2d(const at::Tensor& indices);
void max_unpool3d(const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
                  at::IntArrayRef padding);
void renorm(const at::Tensor& self, int64_t dim);
void svd(const at::Tensor& A, std::optional<std::string_view> driver);

}  // namespace npu::aten::checks
