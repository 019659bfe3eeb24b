// Numbers as PyTorch passes them to operators (at::Scalar), seen as values of a tensor's dtype.
#pragma once

#include <c10/core/Scalar.h>

#include <cmath>

namespace npu::aten {

// Whether CPU kernels take `number` for a value of `dtype`. They refuse what lies outside its range, and complex numbers
// for real dtypes, with "value cannot be converted to type ... without overflow"; any number has a truth value.
bool fits(const at::Scalar& number, at::ScalarType dtype);

// A real number that fits every dtype. PyTorch lets negative integers wrap in unsigned types, but not negative floats.
inline bool fits_all(const at::Scalar& number) {
  if (number.isIntegral(/*includeBool=*/true)) return number.isBoolean() || std::abs(number.toDouble()) <= 127;
  return number.isFloatingPoint() && number.toDouble() >= 0 && number.toDouble() <= 127;
}

}  // namespace npu::aten
