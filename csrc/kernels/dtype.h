// Element types that kernels compute with, named as PyTorch names them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/export.h"

namespace npu::kernels {

enum class DType : uint8_t {
  kFloat32,
  kFloat64,
  kBFloat16,
  kFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex64,
  kComplex128,  // fill and copy only
};
inline constexpr int kArithmeticDTypes = 9;  // kFloat32 ... kUInt8: add, mul, ...
inline constexpr int kCastDTypes = 10;       // and kBool: casts
inline constexpr int kDTypes = 12;

NPU_API const char* to_string(DType dtype);  // "float32"
NPU_API size_t size_of(DType dtype);         // bytes
constexpr bool is_floating(DType dtype) { return dtype <= DType::kFloat16; }
constexpr bool is_half(DType dtype) { return dtype == DType::kBFloat16 || dtype == DType::kFloat16; }

// 16-bit floats as they lie in memory; arithmetic happens in float (simd.h).
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

// A Python number: `real` when the tensor is floating, `integer` otherwise.
union Number {
  double real;
  int64_t integer;
};

}  // namespace npu::kernels
