// Kernels of the operators on npu tensors that are not strided; npu_layouts.yaml says which operator has which.
//   m.impl("_indices", native("aten::_indices", Route::kView, c10::DispatchKey::SparseCPU));
// `name`, the operator's full name, is what op_stats() counts them by.
#pragma once

#include <torch/library.h>

#include "aten/ops/host_call.h"
#include "aten/ops/op_stats.h"

namespace npu::aten {

// Whether npu tensors on different devices are refused before PyTorch's function sees them, as they are on CUDA.
enum class DeviceCheck : uint8_t { kNone, kSame };

// Calls PyTorch's own function for `key`, on npu tensors: it reads metadata (kView), or calls operators of the members
// (kLibrary). Waits where one of those does.
torch::CppFunction native(const char* name, Route route, c10::DispatchKey key, DeviceCheck check = DeviceCheck::kNone);

// Waits for the device and runs the CPU's kernel on aliases of the members.
torch::CppFunction synchronous(const char* name);

}  // namespace npu::aten
