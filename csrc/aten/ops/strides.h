// Where a tensor is contiguous whatever the strides of its dimensions of one element, PyTorch still tells them apart.
#pragma once

#include <c10/core/TensorImpl.h>

#include <algorithm>

namespace npu::aten {

// Whether the strides follow from the sizes, those of dimensions of one element included.
inline bool has_default_strides(const c10::TensorImpl& tensor) {
  const c10::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0; expected *= std::max<int64_t>(sizes[i], 1))
    if (strides[i] != expected) return false;
  return true;
}

}  // namespace npu::aten
