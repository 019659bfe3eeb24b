#include "aten/ops/numbers.h"

#include <ATen/Dispatch_v2.h>
#include <c10/util/overflows.h>

namespace npu::aten {
namespace {

template <class T>
bool fits(const at::Scalar& number) {
  if (number.isComplex()) return !c10::overflows<T, c10::complex<double>>(number.toComplexDouble());
  if (number.isFloatingPoint()) return !c10::overflows<T, double>(number.toDouble());
  if (number.type() == at::kUInt64) return !c10::overflows<T, uint64_t>(number.toUInt64());
  return number.isBoolean() || !c10::overflows<T, int64_t>(number.toLong());
}

}  // namespace

bool fits(const at::Scalar& number, at::ScalarType dtype) {
  if (dtype == at::kBool) return true;
  return AT_DISPATCH_V2(dtype, "fits", AT_WRAP([&] { return fits<scalar_t>(number); }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBFloat16);
}

}  // namespace npu::aten
