// Random numbers into device memory.
//
// Every result is a function of (state, element index) alone, so it depends neither on timing nor on how many threads
// compute it. Elements are numbered in memory order. All functions queue one task on `stream` and return.
#pragma once

#include "kernels/dtype.h"
#include "kernels/philox.h"
#include "kernels/shape.h"
#include "runtime/export.h"
#include "runtime/stream.h"

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

struct RandomFill {
  void* out;
  int64_t numel;
  DType dtype;   // integers and bool for kGeometric, kBernoulli and kInteger only; no complex
  Distribution distribution;
  RandomState state;
  double a;
  double b;
  int64_t base;
  uint64_t range;
  Shape shape;   // for reports
};
NPU_API void fill_random(Stream& stream, const RandomFill& fill);

// out = in / (1 - p) where mask, else 0; mask is true with probability 1 - p. Floating types.
struct Dropout {
  void* out;
  bool* mask;
  const void* in;
  int64_t numel;
  DType dtype;
  double p;
  RandomState state;
  Shape shape;
};
NPU_API void dropout(Stream& stream, const Dropout& arguments);

enum class Sampler : uint8_t {
  kPoisson,        // rate a
  kBinomial,       // a trials of probability b
  kStandardGamma,  // shape a
};

// out[i] = sample(a[i], b[i]). Floating types; `b` is null where the sampler has one parameter.
struct RandomSample {
  void* out;
  const void* a;
  const void* b;
  int64_t numel;
  DType dtype;
  Sampler sampler;
  RandomState state;
  Shape shape;
};
NPU_API void sample_random(Stream& stream, const RandomSample& arguments);

// out = a random order of 0 ... numel - 1. Any type that holds numel - 1 exactly, complex excluded.
struct Permutation {
  void* out;
  int64_t numel;
  DType dtype;
  RandomState state;
};
NPU_API void permute_random(Stream& stream, const Permutation& arguments);

}  // namespace npu::kernels
