// Random operators. Arguments are checked by PyTorch's own native functions; they end in the stubs registered here, which
// reserve a place in the generator's sequence and queue a kernel.
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/bernoulli_native.h>
#include <ATen/ops/cauchy_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exponential_native.h>
#include <ATen/ops/geometric_native.h>
#include <ATen/ops/log_normal_native.h>
#include <ATen/ops/normal_native.h>
#include <ATen/ops/random_native.h>
#include <ATen/ops/uniform_native.h>
#include <ATen/TensorIterator.h>
#include <torch/library.h>

#include "aten/ops/counted.h"
#include "aten/ops/library.h"
#include "aten/ops/random.h"

namespace npu::aten {
namespace {

using kernels::Distribution;
using kernels::Sampler;
using OptionalGenerator = std::optional<at::Generator>;

struct Parameters {
  double a = 0;
  double b = 0;
  int64_t base = 0;
  uint64_t range = 0;
};

// PyTorch's CPU kernel of a distribution, as its errors name it, and the dtypes it has.
struct CpuKernel {
  const char* name;
  Kinds kinds;
};
constexpr CpuKernel kCpuKernels[] = {{"uniform_cpu_", Kinds::kFloating},      {"normal_kernel_cpu", Kinds::kFloating},
                                     {"log_normal_cpu", Kinds::kFloating},    {"exponential_cpu", Kinds::kFloating},
                                     {"cauchy_cpu", Kinds::kFloating},        {"geometric_cpu", Kinds::kNumber},
                                     {"bernoulli_scalar_cpu_", Kinds::kReal}, {"random_kernel_cpu", Kinds::kReal}};

void fill(const at::TensorBase& base, Distribution distribution, const OptionalGenerator& generator,
          const Parameters& p) {
  const at::Tensor self(base);
  const CpuKernel& cpu = kCpuKernels[static_cast<size_t>(distribution)];
  const kernels::DType dtype = kernel_dtype(self, cpu.name, cpu.kinds);
  if (self.numel() == 0) return;
  const at::Tensor dense =
      self.is_non_overlapping_and_dense() ? self : at::empty_like(self, at::MemoryFormat::Contiguous);
  const kernels::RandomFillArguments task{
      dense.mutable_data_ptr(), dense.numel(), dtype, distribution, reserve(generator, self), p.a, p.b, p.base, p.range,
      kernel_shape(dense)};
  launch_random(kernels::kRandomFill[static_cast<size_t>(distribution)], dense, task);
  if (!dense.is_same(self)) self.copy_(dense);
}

const at::TensorBase& output(at::TensorIteratorBase& iterator) { return iterator.tensor_base(0); }

void uniform(at::TensorIteratorBase& iterator, double from, double to, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kUniform, generator, {from, to});
}
void normal(const at::TensorBase& self, double mean, double std, OptionalGenerator generator) {
  fill(self, Distribution::kNormal, generator, {mean, std});
}
void log_normal(at::TensorIteratorBase& iterator, double mean, double std, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kLogNormal, generator, {mean, std});
}
void exponential(at::TensorIteratorBase& iterator, double rate, OptionalGenerator generator) {
  const at::ScalarType dtype = output(iterator).scalar_type();
  TORCH_CHECK(
      at::isFloatingType(dtype),
      "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you ",
      "specified ", dtype);
  fill(output(iterator), Distribution::kExponential, generator, {rate});
}
void cauchy(at::TensorIteratorBase& iterator, double median, double sigma, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kCauchy, generator, {median, sigma});
}
void geometric(at::TensorIteratorBase& iterator, double p, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kGeometric, generator, {p});
}
void bernoulli_scalar(const at::TensorBase& self, double p, OptionalGenerator generator) {
  fill(self, Distribution::kBernoulli, generator, {p});
}
void bernoulli_tensor(const at::TensorBase& self, const at::TensorBase& p, OptionalGenerator generator) {
  const at::Tensor result(self);
  kernel_dtype(result, "bernoulli_tensor_cpu_self_");
  result.copy_(sample(Sampler::kBernoulli, at::Tensor(p).to(self.device()).expand(self.sizes()), {}, generator));
}

// The whole numbers that a type holds without gaps, from 0.
uint64_t digits_range(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool: return 2;
    case at::kByte: return 1 << 8;
    case at::kChar: return 1 << 7;
    case at::kShort: return 1 << 15;
    case at::kInt: return uint64_t{1} << 31;
    case at::kLong: return uint64_t{1} << 63;
    case at::kBFloat16: return (1 << 8) + 1;
    case at::kHalf: return (1 << 11) + 1;
    case at::kFloat: return (1 << 24) + 1;
    default: return (uint64_t{1} << 53) + 1;
  }
}
void random(at::TensorIteratorBase& iterator, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kInteger, generator, {.range = digits_range(output(iterator).scalar_type())});
}
void random_from_to(at::TensorIteratorBase& iterator, uint64_t range, int64_t base, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kInteger, generator, {.base = base, .range = range});
}
void random_full_range(at::TensorIteratorBase& iterator, OptionalGenerator generator) {
  fill(output(iterator), Distribution::kInteger, generator, {.base = INT64_MIN});
}

}  // namespace
}  // namespace npu::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(uniform_stub, &npu::aten::uniform)
REGISTER_PRIVATEUSE1_DISPATCH(normal_stub, &npu::aten::normal)
REGISTER_PRIVATEUSE1_DISPATCH(log_normal_stub, &npu::aten::log_normal)
REGISTER_PRIVATEUSE1_DISPATCH(exponential_stub, &npu::aten::exponential)
REGISTER_PRIVATEUSE1_DISPATCH(cauchy_stub, &npu::aten::cauchy)
REGISTER_PRIVATEUSE1_DISPATCH(geometric_stub, &npu::aten::geometric)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_scalar_stub, &npu::aten::bernoulli_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_tensor_stub, &npu::aten::bernoulli_tensor)
REGISTER_PRIVATEUSE1_DISPATCH(random_stub, &npu::aten::random)
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &npu::aten::random_from_to)
REGISTER_PRIVATEUSE1_DISPATCH(random_full_64_bits_range_stub, &npu::aten::random_full_range)
}  // namespace at::native

namespace npu::aten {
namespace {

// One of PyTorch's overloaded native functions, by its signature.
template <class Signature>
constexpr Signature* overload(Signature* function) {
  return function;
}
using at::Tensor;

Tensor& bernoulli_out(const Tensor& self, OptionalGenerator generator, Tensor& out) {
  check_same_device("bernoulli", {{"self", self}, {"out", out}});
  return at::native::bernoulli_out(self, std::move(generator), out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", counted<op::uniform_, Route::kKernel, at::native::uniform_>);
  m.impl("normal_", counted<op::normal_, Route::kKernel, at::native::normal_>);
  m.impl("log_normal_", counted<op::log_normal_, Route::kKernel, at::native::log_normal_>);
  m.impl("exponential_", counted<op::exponential_, Route::kKernel, at::native::exponential_>);
  m.impl("cauchy_", counted<op::cauchy_, Route::kKernel, at::native::cauchy_>);
  m.impl("geometric_", counted<op::geometric_, Route::kKernel, at::native::geometric_>);
  m.impl("bernoulli.out", counted<op::bernoulli_out, Route::kKernel, bernoulli_out>);
  m.impl("bernoulli_.float", counted<op::bernoulli__float, Route::kKernel,
                                     overload<Tensor&(Tensor&, double, OptionalGenerator)>(at::native::bernoulli_)>);
  m.impl("bernoulli_.Tensor",
         counted<op::bernoulli__Tensor, Route::kKernel,
                 overload<Tensor&(Tensor&, const Tensor&, OptionalGenerator)>(at::native::bernoulli_)>);
  m.impl("random_",
         counted<op::random_, Route::kKernel, overload<Tensor&(Tensor&, OptionalGenerator)>(at::native::random_)>);
  m.impl("random_.to", counted<op::random__to, Route::kKernel,
                               overload<Tensor&(Tensor&, int64_t, OptionalGenerator)>(at::native::random_)>);
  m.impl("random_.from",
         counted<op::random__from, Route::kKernel,
                 overload<Tensor&(Tensor&, int64_t, std::optional<int64_t>, OptionalGenerator)>(at::native::random_)>);
}

}  // namespace
}  // namespace npu::aten
