// The inner loops of the element-wise kernels, one table for each instruction set (see simd.h).
#pragma once

#include <cstdint>

#include "kernels/dtype.h"
#include "runtime/export.h"

namespace npu::kernels {

enum class PointwiseOp : uint8_t {
  kAdd,
  kSub,
  kAddScaled,  // self + number * other
  kMul,
  kDiv,        // floating only
  kAddNumber,  // self + number
  kMulNumber,
  kDivNumber,  // floating only
  kRelu,
  kNeg,
};
inline constexpr int kPointwiseOps = 10;

// A stretch of elements at engine addresses. `out` may equal an input; it overlaps none otherwise.
struct Span {
  void* out;
  const void* self;
  const void* other;  // null when the operation takes none
  int64_t count;
  Number number;
  bool streaming;  // store past the cache
};
using Loop = void (*)(const Span& span);
using CastLoop = void (*)(void* out, const void* self, int64_t count);

struct PointwiseLoops {
  Loop pointwise[kPointwiseOps][kArithmeticDTypes];  // null = not computed here
  CastLoop cast[kCastDTypes][kCastDTypes];           // [from][to]; null = PyTorch's result is not defined
  void (*fill)(void* out, const void* pattern16, int64_t bytes, bool streaming);  // out is aligned to its elements
  void (*copy_streaming)(void* out, const void* from, int64_t bytes);
};
NPU_API extern const PointwiseLoops kGenericLoops;
#if defined(__x86_64__)
NPU_API extern const PointwiseLoops kAvx2Loops;
NPU_API extern const PointwiseLoops kAvx512Loops;
#endif
NPU_API const PointwiseLoops& loops();  // the best that this processor runs

}  // namespace npu::kernels
