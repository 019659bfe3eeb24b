// Random kernels whose result depends on an input: dropout, samplers with a parameter per element, permutations.
#include <algorithm>
#include <limits>

#include "kernels/random.h"
#include "kernels/random_types.h"
#include "kernels/tile.h"
#include "runtime/status.h"

namespace npu::kernels {
namespace {

constexpr size_t kDropoutBytes = 8;  // of an element; set the tiles by the work that an element is
constexpr size_t kSampleBytes = 128;
constexpr int64_t kPerBlock = 4;  // elements of a dropout that share a block of random numbers

void run_dropout(const TaskContext& context, const void* arguments) {
  const auto& dropout = *static_cast<const DropoutArguments*>(arguments);
  bool* mask = context.translate(dropout.mask);
  // The words below the threshold are kept; 2^32 of them keep everything.
  const auto threshold = static_cast<uint64_t>((1 - dropout.p) * 0x1p32);
  with_floating(dropout.dtype, [&](auto type) {
    using T = decltype(type);
    T* out = static_cast<T*>(context.translate(dropout.out));
    const T* in = static_cast<const T*>(context.translate(dropout.in));
    const auto scale = static_cast<ComputeType<T>>(dropout.p < 1 ? 1 / (1 - dropout.p) : 0);
    const auto drop_tile = [&](int64_t begin, int64_t count) {
      const int64_t end = begin + count;
      for (int64_t i = begin; i < end; i += kPerBlock) {
        const PhiloxBlock block = philox(dropout.state, static_cast<uint64_t>(i / kPerBlock));
        for (int64_t k = i; k < std::min(i + kPerBlock, end); ++k) {
          mask[k] = block[static_cast<size_t>(k - i)] < threshold;
          out[k] = convert<T>(mask[k] ? load(in[k]) * scale : ComputeType<T>{0});
        }
      }
    };
    for_each_tile(context, dropout.numel, kDropoutBytes, drop_tile, kPerBlock);
  });
}

void visit_dropout(void* arguments, OperandVisitor& visitor) {
  auto& dropout = *static_cast<DropoutArguments*>(arguments);
  visit_operand(visitor, "input", Operand::Access::kRead, dropout.in, dropout.dtype, dropout.shape, dropout.numel);
  visit_operand(visitor, "output", Operand::Access::kWrite, dropout.out, dropout.dtype, dropout.shape, dropout.numel);
  visit_operand(visitor, "mask", Operand::Access::kWrite, dropout.mask, DType::kBool, dropout.shape, dropout.numel);
}

double log_factorial(double k) { return std::lgamma(k + 1); }

// Hoermann, "The transformed rejection method for generating Poisson random variables" (1993): PTRS.
double poisson_large(double rate, Draws& draws) {
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = draws.uniform() - 0.5;
    const double v = draws.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= k * std::log(rate) - rate - log_factorial(k)) return k;
  }
}

double sample_poisson(double rate, Draws& draws) {
  NPU_CHECK(rate >= 0, kInvalidArgument, "invalid Poisson rate, expected rate to be non-negative");
  if (rate == 0) return 0;
  if (rate >= 10) return poisson_large(rate, draws);
  const double limit = std::exp(-rate);  // Knuth: how many uniform numbers until their product falls below
  double product = draws.uniform();
  double k = 0;
  while (product > limit) {
    product *= draws.uniform();
    ++k;
  }
  return k;
}

// Hoermann, "The generation of binomial random variates" (1993): BTRS, for p <= 1/2 and n p >= 10.
double binomial_large(double n, double p, Draws& draws) {
  const double spread = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread;
  const double m = std::floor((n + 1) * p);
  const double log_odds = std::log(p / (1 - p));
  while (true) {
    const double u = draws.uniform() - 0.5;
    double v = draws.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > n) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    if (v <= (k - m) * log_odds + log_factorial(m) + log_factorial(n - m) - log_factorial(k) - log_factorial(n - k))
      return k;
  }
}

double sample_binomial(double n, double p, Draws& draws) {
  if (std::isnan(n) || std::isnan(p)) return std::numeric_limits<double>::quiet_NaN();
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - sample_binomial(n, 1 - p, draws);
  if (n * p >= 10) return binomial_large(n, p, draws);
  const double scale = 1 / std::log1p(-p);  // sums of geometric gaps between successes
  double successes = 0;
  double trials = 0;
  while (true) {
    trials += std::ceil(std::log(draws.uniform()) * scale);
    if (trials > n) return successes;
    ++successes;
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
double sample_gamma(double shape, Draws& draws) {
  double boost = 1;
  if (shape < 1) {
    if (!(shape > 0)) return shape == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
    boost = std::pow(draws.uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draws.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(draws.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost * d * v;
  }
}

double sample_bernoulli(double p, Draws& draws) {
  NPU_CHECK(p >= 0 && p <= 1, kInvalidArgument, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  return draws.uniform() < p ? 1 : 0;
}

double sample(Sampler sampler, double a, double b, Draws& draws) {
  switch (sampler) {
    case Sampler::kPoisson: return sample_poisson(a, draws);
    case Sampler::kBinomial: return sample_binomial(a, b, draws);
    case Sampler::kBernoulli: return sample_bernoulli(a, draws);
    default: return sample_gamma(a, draws);
  }
}

void run_sample(const TaskContext& context, const void* arguments) {
  const auto& task = *static_cast<const RandomSampleArguments*>(arguments);
  with_floating(task.dtype, [&](auto type) {
    using T = decltype(type);
    T* out = static_cast<T*>(context.translate(task.out));
    const T* a = static_cast<const T*>(context.translate(task.a));
    const T* b = static_cast<const T*>(context.translate(task.b));
    for_each_tile(context, task.numel, kSampleBytes, [&](int64_t begin, int64_t count) {
      for (int64_t i = begin; i < begin + count; ++i) {
        Draws draws(task.state, static_cast<uint64_t>(i));
        const double x = sample(task.sampler, load(a[i]), b != nullptr ? load(b[i]) : 0, draws);
        // A gamma sample may be too small for the type; zero has no logarithm.
        const bool too_small =
            task.sampler == Sampler::kStandardGamma && x < std::numeric_limits<ComputeType<T>>::min();
        out[i] = convert<T>(too_small ? std::numeric_limits<ComputeType<T>>::min() : x);
      }
    });
  });
}

void visit_sample(void* arguments, OperandVisitor& visitor) {
  auto& task = *static_cast<RandomSampleArguments*>(arguments);
  visit_operand(visitor, "self", Operand::Access::kRead, task.a, task.dtype, task.shape, task.numel);
  if (task.b != nullptr)
    visit_operand(visitor, "prob", Operand::Access::kRead, task.b, task.dtype, task.shape, task.numel);
  visit_operand(visitor, "out", Operand::Access::kWrite, task.out, task.dtype, task.shape, task.numel);
}

constexpr TaskInfo sample_info(const char* name) {
  return {.name = name,
          .run = run_sample,
          .engines = kVectorEngine | kRngEngine,
          .flags = kInlineable,
          .visit = visit_sample};
}
// Fisher and Yates; 16-bit floats count no further than their digits, so the order is shuffled as integers would be.
void run_permutation(const TaskContext& context, const void* arguments) {
  const auto& task = *static_cast<const PermutationArguments*>(arguments);
  with_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    T* out = static_cast<T*>(context.translate(task.out));
    for (int64_t i = 0; i < task.numel; ++i) out[i] = convert<T>(i);
    for (int64_t i = task.numel - 1; i > 0; --i) {
      const uint64_t bits = word64(philox(task.state, static_cast<uint64_t>(i)), 0);
      const auto other =
          static_cast<int64_t>((static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(i + 1)) >> 64);
      std::swap(out[i], out[other]);
    }
  });
}

void visit_permutation(void* arguments, OperandVisitor& visitor) {
  auto& task = *static_cast<PermutationArguments*>(arguments);
  Shape shape;
  shape.set(&task.numel, 1, task.numel);
  visit_operand(visitor, "out", Operand::Access::kWrite, task.out, task.dtype, shape, task.numel);
}

}  // namespace

constexpr TaskInfo kDropout{.name = "aten::native_dropout",
                            .run = run_dropout,
                            .engines = kVectorEngine | kRngEngine,
                            .flags = kInlineable,
                            .visit = visit_dropout};
constexpr TaskInfo kRandomSample[] = {sample_info("aten::poisson"), sample_info("aten::binomial"),
                                      sample_info("aten::_standard_gamma"), sample_info("aten::bernoulli")};
constexpr TaskInfo kPermutation{.name = "aten::randperm.generator_out",
                                .run = run_permutation,
                                .engines = kVectorEngine | kRngEngine,
                                .flags = kInlineable,
                                .visit = visit_permutation};

}  // namespace npu::kernels
