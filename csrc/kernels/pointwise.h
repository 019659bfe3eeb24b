// Element-wise kernels over contiguous memory: one shape, one dtype, no broadcasting but for numbers.
//
// Results are bit-equal to PyTorch's CPU kernels: integers wrap, 16-bit floats are computed in float and rounded once,
// `self + alpha * other` is rounded once. `out` may equal an input and overlaps none otherwise.
// Each TaskInfo takes the argument block named beside it. `shape` serves reports only.
#pragma once

#include "kernels/dtype.h"
#include "kernels/pointwise_loops.h"
#include "kernels/shape.h"
#include "runtime/export.h"
#include "runtime/task.h"

namespace npu::kernels {

struct PointwiseArguments {
  void* out;
  const void* self;
  const void* other;  // null for one-operand and number forms
  int64_t count;      // elements
  Number number;      // alpha of kAddScaled, the number of the number forms
  PointwiseOp op;
  DType dtype;
  Shape shape;
};
NPU_API bool supports(PointwiseOp op, DType dtype);
NPU_API extern const TaskInfo kAdd, kSub, kMul, kDiv, kRelu, kNeg;  // PointwiseArguments; they differ by name alone

// out = self in another dtype. Not supported: floats to integers of less than 32 bits, whose result PyTorch leaves open.
struct CastArguments {
  void* out;
  const void* self;
  int64_t count;
  DType out_dtype, self_dtype;
  Shape shape;
};
NPU_API bool supports_cast(DType from, DType to);
NPU_API extern const TaskInfo kCast;

struct FillArguments {
  void* out;
  int64_t count;
  alignas(8) unsigned char pattern[16];  // one element, repeated up to 16 bytes
  DType dtype;
  Shape shape;
};
NPU_API void set_pattern(FillArguments& arguments, DType dtype, Number value);  // bool and real dtypes
NPU_API extern const TaskInfo kFill;

// exp comes from a library, so that it equals PyTorch's: csrc/aten sets what libtorch_cpu exports. Width 1 each.
struct VectorMath {
  void (*exp_float)(const float* self, float* out, int64_t count) = nullptr;
  void (*exp_double)(const double* self, double* out, int64_t count) = nullptr;
};
NPU_API void set_vector_math(const VectorMath& math);  // before the first launch that uses it

struct ExpArguments {
  void* out;
  const void* self;
  int64_t count;
  DType dtype;
  Shape shape;
};
NPU_API bool supports_exp(DType dtype);
NPU_API extern const TaskInfo kExp;

// Rough run time on one core of a kernel that moves `bytes` (Submission::cost_ns).
constexpr uint32_t estimate_ns(int64_t bytes) {
  const int64_t ns = 50 + bytes / 16;
  return ns < UINT32_MAX ? static_cast<uint32_t>(ns) : UINT32_MAX;
}

}  // namespace npu::kernels
