// Random operators with a parameter per element, dropout, permutations and choices.
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/_standard_gamma.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/TensorOperators.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "aten/bridge/generator.h"
#include "aten/ops/counted.h"
#include "aten/ops/library.h"
#include "aten/ops/random.h"

namespace npu::aten {

kernels::RandomState reserve(const std::optional<at::Generator>& generator, const at::Tensor& tensor) {
  const at::Generator& used =
      generator.has_value() && generator->defined() ? *generator : default_generator(tensor.get_device());
  TORCH_CHECK(used.device() == tensor.device(), "expected a generator of ", tensor.device(), ", got one of ",
              used.device(), "; make it with torch.Generator(device='", tensor.device(), "')");
  auto* state = at::check_generator<GeneratorImpl>(used);
  const std::lock_guard lock(state->mutex_);
  return state->reserve();
}

kernels::DType kernel_dtype(const at::Tensor& tensor, const char* name, Kinds kinds) {
  using kernels::DType;
  const at::ScalarType dtype = tensor.scalar_type();
  const bool lacks =
      kinds == Kinds::kFloating ? !at::isFloatingType(dtype) : kinds == Kinds::kNumber && dtype == at::kBool;
  TORCH_CHECK_NOT_IMPLEMENTED(!lacks, '"', name, "\" not implemented for '", dtype, "'");
  switch (dtype) {
    case at::kFloat: return DType::kFloat32;
    case at::kDouble: return DType::kFloat64;
    case at::kBFloat16: return DType::kBFloat16;
    case at::kHalf: return DType::kFloat16;
    case at::kLong: return DType::kInt64;
    case at::kInt: return DType::kInt32;
    case at::kShort: return DType::kInt16;
    case at::kChar: return DType::kInt8;
    case at::kByte: return DType::kUInt8;
    case at::kBool: return DType::kBool;
    default: TORCH_CHECK_NOT_IMPLEMENTED(false, '"', name, "\" not implemented for '", dtype, "'");
  }
}

namespace {

using at::Tensor;
using OptionalGenerator = std::optional<at::Generator>;

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input, at::empty_like(input, input.options().dtype(at::kBool))};
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", 1 - p);
  TORCH_CHECK(input.is_floating_point(), "result type Float can't be cast to the desired output type ",
              input.scalar_type());
  // The output shares the input's layout, so one pass in memory order serves any dense input.
  const Tensor in = input.is_non_overlapping_and_dense() ? input : input.contiguous();
  Tensor out = at::empty_like(in);
  Tensor mask = at::empty_like(in, in.options().dtype(at::kBool));
  const kernels::DropoutArguments task{out.mutable_data_ptr(),      mask.mutable_data_ptr<bool>(),
                                       in.const_data_ptr(),         in.numel(),
                                       kernel_dtype(in, "dropout"), p,
                                       reserve(std::nullopt, in),   kernel_shape(in)};
  launch_random(kernels::kDropout, in, task);
  return {std::move(out), std::move(mask)};
}

Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) { return grad * mask * scale; }

}  // namespace

Tensor sample(kernels::Sampler sampler, const Tensor& a, const Tensor& b, const OptionalGenerator& generator) {
  constexpr const char* cpu_names[] = {"poisson_cpu", "binomial_cpu", "gamma_cpu", "bernoulli_tensor_cpu_p_"};
  const kernels::DType dtype = kernel_dtype(a, cpu_names[static_cast<size_t>(sampler)], Kinds::kFloating);
  const Tensor first = a.contiguous();
  const Tensor second = b.defined() ? b.contiguous() : b;
  Tensor out = at::empty_like(first);
  const kernels::RandomSampleArguments task{out.mutable_data_ptr(),
                                            first.const_data_ptr(),
                                            b.defined() ? second.const_data_ptr() : nullptr,
                                            first.numel(),
                                            dtype,
                                            sampler,
                                            reserve(generator, first),
                                            kernel_shape(first)};
  if (task.numel > 0) launch_random(kernels::kRandomSample[static_cast<size_t>(sampler)], first, task);
  return out;
}

namespace {

Tensor poisson(const Tensor& self, OptionalGenerator generator) {
  return sample(kernels::Sampler::kPoisson, self, {}, generator);
}

// CPU has no gamma kernel for 16-bit floats, whose range is too narrow for small shapes.
void check_gamma_dtype(const Tensor& tensor, const char* name) {
  const at::ScalarType dtype = tensor.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(dtype == at::kFloat || dtype == at::kDouble, '"', name, "\" not implemented for '", dtype,
                              "'");
}

Tensor standard_gamma(const Tensor& self, OptionalGenerator generator) {
  check_gamma_dtype(self, "gamma_cpu");
  return sample(kernels::Sampler::kStandardGamma, self, {}, generator);
}
Tensor binomial(const Tensor& count, const Tensor& prob, OptionalGenerator generator) {
  check_same_device("binomial", {{"count", count}, {"prob", prob}});
  TORCH_CHECK_VALUE(count.is_floating_point(),
                    "binomial only supports floating-point dtypes for count, got: ", count.scalar_type());
  TORCH_CHECK_VALUE(prob.is_floating_point(),
                    "binomial only supports floating-point dtypes for prob, got: ", prob.scalar_type());
  TORCH_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ", prob.scalar_type(), " but expected ",
              count.scalar_type());
  const std::vector<Tensor> both = at::broadcast_tensors({count, prob});
  return sample(kernels::Sampler::kBinomial, both[0], both[1], generator);
}

// In double, since small concentrations give numbers that float cannot tell from 0; as on CPU, strictly between 0 and 1.
Tensor sample_dirichlet(const Tensor& self, OptionalGenerator generator) {
  check_gamma_dtype(self, "dirichlet");
  const bool is_double = self.scalar_type() == at::kDouble;
  const double smallest = is_double ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const double largest = is_double ? std::nextafter(1.0, 0.0) : std::nextafter(1.0F, 0.0F);
  const Tensor gamma = at::_standard_gamma(self.to(at::kDouble), std::move(generator));
  return (gamma / gamma.sum(-1, /*keepdim=*/true)).clamp_(smallest, largest).to(self.scalar_type());
}

void check_deviations(const Tensor& std) {
  TORCH_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  if (std.numel() != 0) at::_assert_async(std.min() >= 0, "normal expects all elements of std >= 0.0");
}
void check_deviation(double std) { TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std); }

// The numbers are drawn in the dtype of `out`.
Tensor& normal_tensors_out(const Tensor& mean, const Tensor& std, OptionalGenerator generator, Tensor& out) {
  check_same_device("normal", {{"mean", mean}, {"std", std}, {"out", out}});
  check_deviations(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), std.sizes()));
  return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}
Tensor& normal_mean_out(const Tensor& mean, double std, OptionalGenerator generator, Tensor& out) {
  check_same_device("normal", {{"mean", mean}, {"out", out}});
  check_deviation(std);
  at::native::resize_output(out, at::infer_size(mean.sizes(), out.sizes()));  // the CPU's rule
  return out.normal_(0, std, std::move(generator)).add_(mean);
}
Tensor& normal_std_out(double mean, const Tensor& std, OptionalGenerator generator, Tensor& out) {
  check_same_device("normal", {{"std", std}, {"out", out}});
  check_deviations(std);
  at::native::resize_output(out, std.sizes());
  return out.normal_(0, 1, std::move(generator)).mul_(std).add_(mean);
}

Tensor normal_tensors(const Tensor& mean, const Tensor& std, OptionalGenerator generator) {
  Tensor out = at::empty(at::infer_size(mean.sizes(), std.sizes()), mean.options());
  return normal_tensors_out(mean, std, std::move(generator), out);
}
Tensor normal_mean(const Tensor& mean, double std, OptionalGenerator generator) {
  Tensor out = at::empty_like(mean, at::MemoryFormat::Contiguous);
  return normal_mean_out(mean, std, std::move(generator), out);
}
Tensor normal_std(double mean, const Tensor& std, OptionalGenerator generator) {
  Tensor out = at::empty_like(std, at::MemoryFormat::Contiguous);
  return normal_std_out(mean, std, std::move(generator), out);
}

Tensor& randperm_out(int64_t n, OptionalGenerator generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
  TORCH_CHECK_NOT_IMPLEMENTED(out.scalar_type() != at::kBool, "\"randperm\" not implemented for 'Bool'");
  const kernels::DType dtype = kernel_dtype(out, "randperm");
  at::native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  if (n == 0) return out;
  const Tensor dense = out.is_contiguous() ? out : at::empty_like(out, at::MemoryFormat::Contiguous);
  const kernels::PermutationArguments task{dense.mutable_data_ptr(), n, dtype, reserve(generator, out)};
  launch_random(kernels::kPermutation, out, task);
  if (!dense.is_same(out)) out.copy_(dense);
  return out;
}

// One error a call, in the CPU's words, which depend on how it chooses.
void check_probabilities(const Tensor& self, bool largest) {
  const Tensor finite = self.max() < INFINITY, positive = self.min() >= 0;
  const Tensor valid = finite & positive;
  if (largest) {
    at::_assert_async(valid, "probability tensor contains either `inf`, `nan` or element < 0");
  } else {
    at::_assert_async(positive, "invalid multinomial distribution (encountering probability entry < 0)");
    at::_assert_async(finite | ~positive,
                      "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  }
  at::_assert_async((self.sum(-1) > 0).all() | ~valid, "invalid multinomial distribution (sum of probabilities <= 0)");
}

// Choices without replacement are the largest of p / Exp(1); with replacement, uniform numbers looked up in the sums of p.
Tensor choose(const Tensor& self, int64_t count, bool replacement, OptionalGenerator generator) {
  TORCH_CHECK(self.is_floating_point(),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(self.size(-1) <= 1 << 24, "number of categories cannot exceed 2^24");
  if (self.numel() == 0) {
    auto sizes = self.sizes().vec();
    sizes.back() = count;
    return at::empty(sizes, self.options().dtype(at::kLong));
  }
  const bool largest = !replacement || count == 1;
  check_probabilities(self, largest);
  if (largest) {
    const Tensor keys = self / at::empty_like(self).exponential_(1, std::move(generator));
    return count == 1 ? keys.argmax(-1, /*keepdim=*/true) : std::get<1>(keys.topk(count));
  }
  const Tensor sums = self.to(at::kDouble).cumsum(-1);
  auto sizes = self.sizes().vec();
  sizes.back() = count;
  const Tensor draws = at::empty(sizes, sums.options()).uniform_(0, 1, std::move(generator)) * sums.narrow(-1, -1, 1);
  return at::searchsorted(sums, draws, /*out_int32=*/false, /*right=*/true).clamp_max(self.size(-1) - 1);
}

Tensor& choose_out(const Tensor& self, int64_t count, bool replacement, OptionalGenerator generator, Tensor& out) {
  check_same_device("multinomial", {{"self", self}, {"out", out}});
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  const Tensor result = choose(self, count, replacement, std::move(generator));
  return out.resize_(result.sizes()).copy_(result), out;
}

Tensor rrelu(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
             OptionalGenerator generator) {
  check_same_device("rrelu_with_noise", {{"self", self}, {"noise", noise}});
  const double low = lower.toDouble();
  const double high = upper.toDouble();
  TORCH_CHECK(std::isfinite(low), "rrelu: lower bound must be finite, got ", low);
  TORCH_CHECK(std::isfinite(high), "rrelu: upper bound must be finite, got ", high);
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  kernel_dtype(self, "rrelu_with_noise_out_cpu", Kinds::kFloating);
  // vmap lets this operator pass but not uniform_, of which it is made here.
  using c10::DispatchKey;
  const c10::impl::ExcludeDispatchKeyGuard past_vmap(
      c10::DispatchKeySet({DispatchKey::VmapMode, DispatchKey::FuncTorchVmapMode}));
  const Tensor input = self.contiguous();
  if (!training) return at::leaky_relu(input, (low + high) / 2);
  const Tensor slopes = at::empty_like(input).uniform_(low, high, std::move(generator));
  const Tensor factors = at::where(input <= 0, slopes, at::ones_like(input));
  noise.resize_(self.sizes()).copy_(factors);
  return input * factors;
}
Tensor& rrelu_(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
               OptionalGenerator generator) {
  return self.copy_(rrelu(self, noise, lower, upper, training, std::move(generator)));
}
Tensor& rrelu_out(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
                  OptionalGenerator generator, Tensor& out) {
  check_same_device("rrelu_with_noise", {{"self", self}, {"out", out}});
  const Tensor result = rrelu(self, noise, lower, upper, training, std::move(generator));
  at::native::resize_output(out, result.sizes());
  return out.copy_(result), out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_dropout", counted<op::native_dropout, Route::kKernel, native_dropout>);
  m.impl("native_dropout_backward", counted<op::native_dropout_backward, Route::kKernel, native_dropout_backward>);
  m.impl("poisson", counted<op::poisson, Route::kKernel, poisson>);
  m.impl("binomial", counted<op::binomial, Route::kKernel, binomial>);
  m.impl("_standard_gamma", counted<op::_standard_gamma, Route::kKernel, standard_gamma>);
  m.impl("_sample_dirichlet", counted<op::_sample_dirichlet, Route::kKernel, sample_dirichlet>);
  m.impl("normal.Tensor_Tensor", counted<op::normal_Tensor_Tensor, Route::kKernel, normal_tensors>);
  m.impl("normal.Tensor_float", counted<op::normal_Tensor_float, Route::kKernel, normal_mean>);
  m.impl("normal.float_Tensor", counted<op::normal_float_Tensor, Route::kKernel, normal_std>);
  m.impl("normal.Tensor_Tensor_out", counted<op::normal_Tensor_Tensor_out, Route::kKernel, normal_tensors_out>);
  m.impl("normal.Tensor_float_out", counted<op::normal_Tensor_float_out, Route::kKernel, normal_mean_out>);
  m.impl("normal.float_Tensor_out", counted<op::normal_float_Tensor_out, Route::kKernel, normal_std_out>);
  m.impl("randperm.generator_out", counted<op::randperm_generator_out, Route::kKernel, randperm_out>);
  m.impl("multinomial", counted<op::multinomial, Route::kKernel, choose>);
  m.impl("multinomial.out", counted<op::multinomial_out, Route::kKernel, choose_out>);
  m.impl("rrelu_with_noise", counted<op::rrelu_with_noise, Route::kKernel, rrelu>);
  m.impl("rrelu_with_noise_", counted<op::rrelu_with_noise_, Route::kKernel, rrelu_>);
  m.impl("rrelu_with_noise.out", counted<op::rrelu_with_noise_out, Route::kKernel, rrelu_out>);
}

}  // namespace
}  // namespace npu::aten
