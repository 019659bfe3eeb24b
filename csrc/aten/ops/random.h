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

kernels::DType kernel_dtype(const at::Tensor& tensor);  // TORCH_CHECK naming the dtype when random kernels lack it

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
