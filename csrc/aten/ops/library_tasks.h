// What a task of the library route calls when PyTorch has no CPU kernel of the operator's own name. The column `call` of
// npu_functions.yaml names them. Arguments are CPU aliases of device memory in schema order, outputs last; an undefined
// output is not wanted. Those that cut themselves into tiles take the task's context first: `call: name(context)`.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>

#include "runtime/task.h"

namespace npu::aten {

// Hands a kernel's new tensor over to the output the host allocated. Either may be undefined.
void give(const at::Tensor& result, const at::Tensor& out);

namespace tasks {

using OptionalTensor = std::optional<at::Tensor>;

void conj_physical_(at::Tensor& self);

// Integers too, which the CPU lacks and CUDA has: programs for accelerators pass them.
void histc(const at::Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max, const at::Tensor& out);
void put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate);
void max_unpool2d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size, at::Tensor& out);
void max_unpool3d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size,
                  at::IntArrayRef stride, at::IntArrayRef padding, at::Tensor& out);

void grid_sampler_2d_cpu_fallback(const at::Tensor& input, const at::Tensor& grid, int64_t interpolation_mode,
                                  int64_t padding_mode, bool align_corners, const at::Tensor& out);
void grid_sampler_2d_cpu_fallback_backward(const at::Tensor& grad_output, const at::Tensor& input,
                                           const at::Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                                           bool align_corners, const at::Tensor& grad_input,
                                           const at::Tensor& grad_grid);

void convolution(const TaskContext& context, const at::Tensor& input, const at::Tensor& weight,
                 const OptionalTensor& bias, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                 bool transposed, at::IntArrayRef output_padding, int64_t groups, const at::Tensor& out);
void convolution_backward(const TaskContext& context, const at::Tensor& grad_output, const at::Tensor& input,
                          const at::Tensor& weight, at::IntArrayRef stride, at::IntArrayRef padding,
                          at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding, int64_t groups,
                          std::array<bool, 3> output_mask, const at::Tensor& grad_input, const at::Tensor& grad_weight,
                          const at::Tensor& grad_bias);

// `workspace` holds the activated gates: input, forget, cell, output.
void lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
               const OptionalTensor& input_bias, const OptionalTensor& hidden_bias, const at::Tensor& hy,
               const at::Tensor& cy, const at::Tensor& workspace);
void lstm_cell_backward(const OptionalTensor& grad_hy, const OptionalTensor& grad_cy, const at::Tensor& cx,
                        const at::Tensor& cy, const at::Tensor& workspace, bool has_bias, const at::Tensor& grad_gates,
                        const at::Tensor& grad_cx, const at::Tensor& grad_bias);

// `workspace` holds the reset, update and new gates, then hx and the hidden part of the new gate.
void gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& hx,
              const OptionalTensor& input_bias, const OptionalTensor& hidden_bias, const at::Tensor& hy,
              const at::Tensor& workspace);
void gru_cell_backward(const at::Tensor& grad_hy, const at::Tensor& workspace, bool has_bias,
                       const at::Tensor& grad_input_gates, const at::Tensor& grad_hidden_gates,
                       const at::Tensor& grad_hx, const at::Tensor& grad_input_bias,
                       const at::Tensor& grad_hidden_bias);

}  // namespace tasks
}  // namespace npu::aten
