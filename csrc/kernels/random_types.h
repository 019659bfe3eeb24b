// Element types of the random kernels: in what precision to compute, how to store, how to choose a type at run time.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/dtype.h"

namespace npu::kernels {

inline float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// 16-bit floats by their bits: a C++ type for them is missing from some of the compilers that build this.
inline float to_float(Float16 value) {
  const uint32_t sign = (value.bits & 0x8000u) << 16, exponent = value.bits & 0x7c00u, digits = value.bits & 0x3ffu;
  if (exponent == 0) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(digits) * 0x1p-24f));
  const uint32_t bias = exponent == 0x7c00 ? 0x70000000 : 0x38000000;  // infinity and NaN stay what they are
  return std::bit_cast<float>(sign | (((exponent | digits) << 13) + bias));
}

// To nearest, ties to even.
inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  const auto with_sign = [sign](uint32_t rest) { return Float16{static_cast<uint16_t>(sign | rest)}; };
  constexpr uint32_t kInfinity = 0x7f800000, kOverflow = 0x477ff000 /* 65520 */, kSmallestNormal = 0x38800000;
  if (magnitude > kInfinity) return with_sign(0x7e00);
  if (magnitude >= kOverflow) return with_sign(0x7c00);
  if (magnitude < kSmallestNormal) {  // the last digit of a sum with 0.5 is that of the smallest halves
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return with_sign(std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f));
  }
  return with_sign((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;
template <class T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsHalf<T>;

// float for float32 and the 16-bit floats, double for everything that has more digits.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, float> || kIsHalf<T>, float, double>;

template <class T>
ComputeType<T> load(const T& value) {
  if constexpr (kIsHalf<T>)
    return to_float(value);
  else
    return static_cast<ComputeType<T>>(value);
}

template <class T, class Value>
T convert(Value value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const auto number = static_cast<float>(value);
    const auto bits = std::bit_cast<uint32_t>(number);
    if (number != number) return {0x7fc0};
    return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};  // to nearest, ties to even
  } else if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Calls function(T{}) with the element type.
template <class Function>
void with_floating(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kFloat64: return function(double{});
    case DType::kBFloat16: return function(BFloat16{});
    case DType::kFloat16: return function(Float16{});
    default: return function(float{});
  }
}

template <class Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kInt64: return function(int64_t{});
    case DType::kInt32: return function(int32_t{});
    case DType::kInt16: return function(int16_t{});
    case DType::kInt8: return function(int8_t{});
    case DType::kUInt8: return function(uint8_t{});
    case DType::kBool: return function(bool{});
    default: return with_floating(dtype, std::forward<Function>(function));
  }
}

}  // namespace npu::kernels
