// What random operators share: a place in a generator's sequence, and how tensors become kernel arguments.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "kernels/random.h"

namespace npu::aten {

// Reserves the next place of `generator`, or of the default one of the tensor's device. Done on the host at submission, so
// results do not depend on when kernels run. TORCH_CHECK when the generator belongs to another device.
kernels::RandomState reserve(const std::optional<at::Generator>& generator, const at::Tensor& tensor);

// For which random kernels take the place of the CPU kernel `name`. NotImplementedError, in CPU's words, when they lack the
// dtype of `tensor`.
enum class Kinds : uint8_t { kFloating, kNumber, kReal };  // kReal: bool too
kernels::DType kernel_dtype(const at::Tensor& tensor, const char* name, Kinds kinds = Kinds::kReal);

// Draws one number for each element of `a`, of its dtype.
at::Tensor sample(kernels::Sampler sampler, const at::Tensor& a, const at::Tensor& b,
                  const std::optional<at::Generator>& generator);

inline kernels::Shape kernel_shape(const at::Tensor& tensor) {
  kernels::Shape shape;
  shape.set(tensor.sizes().data(), tensor.sizes().size(), tensor.numel());
  return shape;
}

// Queues a task over `numel` elements on the current stream of the tensor's device.
template <class Arguments>
void launch_random(const TaskInfo& info, const at::Tensor& on, const Arguments& arguments) {
  translate_errors(
      [&] { current_stream(on.get_device()).launch(info, arguments, kernels::estimate_random_ns(arguments.numel)); });
}

}  // namespace npu::aten
