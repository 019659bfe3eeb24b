// example::swish: out = x * sigmoid(beta * x), element by element, for the CPU and for npu.
#include <ATen/core/Tensor.h>
#include <ATen/Dispatch.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>

#include <aten/ops/custom_operator.h>

namespace {

// The work. Its tensors are contiguous CPU tensors; on npu they lie in the memory of the device.
void swish(const at::Tensor& x, double beta, at::Tensor& out) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swish", [&] {
    const scalar_t* in = x.const_data_ptr<scalar_t>();
    scalar_t* result = out.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) result[i] = in[i] / (1 + std::exp(-static_cast<scalar_t>(beta) * in[i]));
  });
}
const npu::aten::Kernel<swish> kSwish("example::swish", {"x", "beta", "out"});

// d out / d x = s + beta * x * s * (1 - s) with s = sigmoid(beta * x)
void swish_backward(const at::Tensor& grad, const at::Tensor& x, double beta, at::Tensor& out) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "swish_backward", [&] {
    const scalar_t* in = x.const_data_ptr<scalar_t>();
    const scalar_t* upstream = grad.const_data_ptr<scalar_t>();
    scalar_t* result = out.mutable_data_ptr<scalar_t>();
    const auto b = static_cast<scalar_t>(beta);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const scalar_t s = 1 / (1 + std::exp(-b * in[i]));
      result[i] = upstream[i] * (s + b * in[i] * s * (1 - s));
    }
  });
}
const npu::aten::Kernel<swish_backward> kSwishBackward("example::swish_backward", {"grad", "x", "beta", "out"});

// The operators: what can be wrong is found here, at the call. `run` does the work, or queues it.
template <auto& run>
at::Tensor swish_operator(const at::Tensor& x, double beta) {
  TORCH_CHECK(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
              "swish: expected a tensor of float or double, got ", x.scalar_type());
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  run(in, beta, out);
  return out;
}

template <auto& run>
at::Tensor swish_backward_operator(const at::Tensor& grad, const at::Tensor& x, double beta) {
  TORCH_CHECK(grad.sizes() == x.sizes() && grad.scalar_type() == x.scalar_type(),
              "swish_backward: expected a gradient like x");
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  run(grad.contiguous(), in, beta, out);
  return out;
}

}  // namespace

TORCH_LIBRARY(example, m) {
  m.def("swish(Tensor x, float beta=1.0) -> Tensor");
  m.def("swish_backward(Tensor grad, Tensor x, float beta) -> Tensor");
  m.def("row_norms(Tensor x) -> Tensor");  // in row_norms.cpp
}
TORCH_LIBRARY_IMPL(example, CPU, m) {
  m.impl("swish", swish_operator<swish>);
  m.impl("swish_backward", swish_backward_operator<swish_backward>);
}
TORCH_LIBRARY_IMPL(example, PrivateUse1, m) {  // the dispatch key of npu
  m.impl("swish", swish_operator<kSwish>);
  m.impl("swish_backward", swish_backward_operator<kSwishBackward>);
}
