// Errors at the border to PyTorch: what the runtime throws becomes the exception type that PyTorch's users know.
//
//   kOutOfMemory                                          c10::OutOfMemoryError   torch.OutOfMemoryError
//   kTaskFailed, kDeviceLost, kTimeout,
//   kInvalidDevice, kInvalidAddress                       c10::AcceleratorError   torch.AcceleratorError
//   kInvalidArgument                                      c10::ValueError         ValueError
//   others                                                c10::Error              RuntimeError
// Exceptions of any other type pass through, so a launch that blocks reports the operator's own error.
#pragma once

#include <utility>

#include "runtime/export.h"
#include "runtime/status.h"

namespace npu::aten {

[[noreturn]] NPU_API void throw_translated(const Error& error);

template <class Function>
decltype(auto) translate_errors(Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    throw_translated(error);
  }
}

}  // namespace npu::aten
