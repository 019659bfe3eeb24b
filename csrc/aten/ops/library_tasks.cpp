#include "aten/ops/library_tasks.h"

#include <ATen/native/cpu/MaxUnpoolKernel.h>
#include <ATen/native/IndexKernel.h>
#include <ATen/ops/_grid_sampler_2d_cpu_fallback.h>
#include <ATen/ops/_grid_sampler_2d_cpu_fallback_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorOperators.h>

namespace npu::aten {

void give(const at::Tensor& result, const at::Tensor& out) {
  if (!out.defined() || !result.defined()) return;
  TORCH_INTERNAL_ASSERT(out.sizes() == result.sizes(), "the shape rule says ", out.sizes(), ", the kernel ",
                        result.sizes());
  out.copy_(result);
}

namespace tasks {
namespace {

// Derivatives by the output: s * (1 - s) and 1 - t * t.
at::Tensor sigmoid_slope(const at::Tensor& s) { return s * (1 - s); }
at::Tensor tanh_slope(const at::Tensor& t) { return 1 - t * t; }

bool given(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

at::Tensor with_bias(const at::Tensor& gates, const OptionalTensor& bias) {
  return given(bias) ? gates + *bias : gates;
}

}  // namespace

void conj_physical_(at::Tensor& self) { self.conj_physical_(); }

void grid_sampler_2d_cpu_fallback(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode,
                                  int64_t padding_mode, bool align_corners, const at::Tensor& out) {
  give(at::_grid_sampler_2d_cpu_fallback(input, grid, interpolation_mode, padding_mode, align_corners), out);
}

void grid_sampler_2d_cpu_fallback_backward(const at::Tensor& grad_output, const at::Tensor& input,
                                           const at::Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                                           bool align_corners, const at::Tensor& grad_input,
                                           const at::Tensor& grad_grid) {
  const auto [of_input, of_grid] = at::_grid_sampler_2d_cpu_fallback_backward(
      grad_output, input, grid, interpolation_mode, padding_mode, align_corners);
  give(of_input, grad_input);
  give(of_grid, grad_grid);
}

void histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max, const at::Tensor& out) {
  if (!at::isIntegralType(self.scalar_type(), /*includeBool=*/false)) return give(at::histc(self, bins, min, max), out);
  const at::Tensor all = self.to(at::kLong).flatten();
  int64_t low = min.toLong(), high = max.toLong();
  if (low == high && all.numel() != 0) {
    low = all.min().item<int64_t>();
    high = all.max().item<int64_t>();
  }
  if (low == high) {
    --low;
    ++high;
  }
  const at::Tensor values = all.masked_select((all >= low) & (all <= high));
  const at::Tensor bin = ((values - low) * bins).floor_divide(high - low).clamp_max(bins - 1);
  give(at::bincount(bin, {}, bins), out);
}

void put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  if (index.numel() == 0) return;
  at::TensorIterator iterator = at::TensorIteratorConfig()
                                    .set_check_mem_overlap(false)
                                    .check_all_same_dtype(false)
                                    .add_const_input(source)
                                    .add_owned_const_input(index.reshape(source.sizes()))
                                    .build();
  at::native::put_stub(at::kCPU, iterator, self, accumulate);
}

void max_unpool2d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef, at::Tensor& out) {
  const at::MemoryFormat format = self.suggest_memory_format();
  out.zero_();
  if (out.numel() != 0)
    at::native::max_unpool2d_kernel(at::kCPU, out, self.contiguous(format), indices.contiguous(format));
}

void max_unpool3d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                  at::Tensor& out) {
  out.zero_();
  if (out.numel() != 0) at::native::max_unpool3d_kernel(at::kCPU, out, self.contiguous(), indices.contiguous());
}

void lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
               const OptionalTensor& input_bias, const OptionalTensor& hidden_bias, const at::Tensor& hy,
               const at::Tensor& cy, const at::Tensor& workspace) {
  at::Tensor gates = workspace, new_cell = cy, new_hidden = hy;
  at::add_out(gates, with_bias(input_gates, input_bias), with_bias(hidden_gates, hidden_bias));
  std::vector<at::Tensor> gate = gates.chunk(4, 1);
  gate[0].sigmoid_();
  gate[1].sigmoid_();
  gate[2].tanh_();
  gate[3].sigmoid_();
  at::mul_out(new_cell, gate[1], cx);
  new_cell.add_(gate[0] * gate[2]);
  at::mul_out(new_hidden, gate[3], new_cell.tanh());
}

void lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy, const at::Tensor& cx,
                        const at::Tensor& cy, const at::Tensor& workspace, bool, const at::Tensor& grad_gates,
                        const at::Tensor& grad_cx, const at::Tensor& grad_bias) {
  const std::vector<at::Tensor> gate = workspace.chunk(4, 1);
  const std::vector<at::Tensor> grad = grad_gates.chunk(4, 1);
  const at::Tensor hidden = given(grad_hy) ? *grad_hy : at::zeros_like(cx);
  const at::Tensor cell_activation = cy.tanh();
  at::Tensor grad_cell = hidden * gate[3] * tanh_slope(cell_activation);
  if (given(grad_cy)) grad_cell.add_(*grad_cy);
  give(grad_cell * gate[2] * sigmoid_slope(gate[0]), grad[0]);
  give(grad_cell * cx * sigmoid_slope(gate[1]), grad[1]);
  give(grad_cell * gate[0] * tanh_slope(gate[2]), grad[2]);
  give(hidden * cell_activation * sigmoid_slope(gate[3]), grad[3]);
  give(grad_cell * gate[1], grad_cx);
  if (grad_bias.defined()) give(grad_gates.sum(0), grad_bias);
}

void gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
              const OptionalTensor& input_bias, const OptionalTensor& hidden_bias, const at::Tensor& hy,
              const at::Tensor& workspace) {
  const std::vector<at::Tensor> input = with_bias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const std::vector<at::Tensor> kept = workspace.chunk(5, 1);
  give((input[0] + hidden[0]).sigmoid_(), kept[0]);
  give((input[1] + hidden[1]).sigmoid_(), kept[1]);
  give((input[2] + kept[0] * hidden[2]).tanh_(), kept[2]);
  give(hx, kept[3]);
  give(hidden[2], kept[4]);
  give((hx - kept[2]) * kept[1] + kept[2], hy);
}

void gru_cell_backward(const at::Tensor& grad_hy, const at::Tensor& workspace, bool, const at::Tensor& grad_input_gates,
                       const at::Tensor& grad_hidden_gates, const at::Tensor& grad_hx,
                       const at::Tensor& grad_input_bias, const at::Tensor& grad_hidden_bias) {
  const std::vector<at::Tensor> kept = workspace.chunk(5, 1);
  const at::Tensor &reset = kept[0], &update = kept[1], &fresh = kept[2], &hx = kept[3], &hidden_fresh = kept[4];
  const at::Tensor grad_fresh = grad_hy * (1 - update) * tanh_slope(fresh);
  const at::Tensor grad_update = grad_hy * (hx - fresh) * sigmoid_slope(update);
  const at::Tensor grad_reset = grad_fresh * hidden_fresh * sigmoid_slope(reset);
  const std::vector<at::Tensor> input = grad_input_gates.chunk(3, 1);
  const std::vector<at::Tensor> hidden = grad_hidden_gates.chunk(3, 1);
  give(grad_reset, input[0]);
  give(grad_update, input[1]);
  give(grad_fresh, input[2]);
  give(grad_reset, hidden[0]);
  give(grad_update, hidden[1]);
  give(grad_fresh * reset, hidden[2]);
  give(grad_hy * update, grad_hx);
  if (grad_input_bias.defined()) give(grad_input_gates.sum(0), grad_input_bias);
  if (grad_hidden_bias.defined()) give(grad_hidden_gates.sum(0), grad_hidden_bias);
}

}  // namespace tasks
}  // namespace npu::aten
