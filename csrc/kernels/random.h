// Random numbers into device memory.
//
// Every result is a function of (state, element index) alone, so it depends neither on timing nor on how many threads
// compute it. Elements are numbered in memory order. Each TaskInfo takes the argument block named beside it.
#pragma once

#include "kernels/dtype.h"
#include "kernels/philox.h"
#include "kernels/shape.h"
#include "runtime/export.h"
#include "runtime/task.h"

namespace npu::kernels {

enum class Distribution : uint8_t {
  kUniform,      // a <= x < b
  kNormal,       // mean a, standard deviation b
  kLogNormal,    // exp of the above
  kExponential,  // rate a; never 0
  kCauchy,       // median a, scale b
  kGeometric,    // number of trials until the first success of probability a
  kBernoulli,    // 1 with probability a
  kInteger,      // base <= x < base + range; range 0 stands for 2^64
};

struct RandomFillArguments {
  void* out;
  int64_t numel;
  DType dtype;  // integers and bool for kGeometric, kBernoulli and kInteger only; no complex
  Distribution distribution;
  RandomState state;
  double a;
  double b;
  int64_t base;
  uint64_t range;
  Shape shape;  // for reports
};
NPU_API extern const TaskInfo kRandomFill[8];  // by Distribution; they differ by name alone

// out = in / (1 - p) where mask, else 0; mask is true with probability 1 - p. Floating types.
struct DropoutArguments {
  void* out;
  bool* mask;
  const void* in;
  int64_t numel;
  DType dtype;
  double p;
  RandomState state;
  Shape shape;
};
NPU_API extern const TaskInfo kDropout;

enum class Sampler : uint8_t {
  kPoisson,        // rate a >= 0
  kBinomial,       // a trials of probability b
  kStandardGamma,  // shape a
  kBernoulli,      // 1 with probability a, 0 <= a <= 1
};

// out[i] = sample(a[i], b[i]). Floating types; `b` is null where the sampler has one parameter. A parameter out of the range
// named above is an error, in the words of PyTorch's CPU kernels.
struct RandomSampleArguments {
  void* out;
  const void* a;
  const void* b;
  int64_t numel;
  DType dtype;
  Sampler sampler;
  RandomState state;
  Shape shape;
};
NPU_API extern const TaskInfo kRandomSample[4];  // by Sampler

// out = a random order of 0 ... numel - 1. Any type that holds numel - 1 exactly, complex excluded.
struct PermutationArguments {
  void* out;
  int64_t numel;
  DType dtype;
  RandomState state;
};
NPU_API extern const TaskInfo kPermutation;

// Rough run time on one core (Submission::cost_ns) of `numel` numbers.
constexpr uint32_t estimate_random_ns(int64_t numel) {
  return numel < (int64_t{1} << 28) ? static_cast<uint32_t>(50 + numel * 8) : UINT32_MAX;
}

}  // namespace npu::kernels
