// Element types of the random kernels: in what precision to compute, how to store, how to choose a type at run time.
#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "kernels/dtype.h"

namespace npu::kernels {

inline float to_float(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
inline float to_float(Float16 value) { return static_cast<float>(std::bit_cast<_Float16>(value.bits)); }

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
    return {std::bit_cast<uint16_t>(static_cast<_Float16>(value))};
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
