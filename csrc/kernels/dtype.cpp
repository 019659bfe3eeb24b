#include "kernels/dtype.h"

namespace npu::kernels {
namespace {

struct Entry {
  const char* name;
  size_t bytes;
};
constexpr Entry kTable[kDTypes] = {
    {"float32", 4}, {"float64", 8}, {"bfloat16", 2}, {"float16", 2}, {"int64", 8},     {"int32", 4},
    {"int16", 2},   {"int8", 1},    {"uint8", 1},    {"bool", 1},    {"complex64", 8}, {"complex128", 16},
};

}  // namespace

const char* to_string(DType dtype) { return kTable[static_cast<int>(dtype)].name; }
size_t size_of(DType dtype) { return kTable[static_cast<int>(dtype)].bytes; }

}  // namespace npu::kernels
