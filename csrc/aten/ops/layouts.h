// Kernels of the operators on npu tensors that are not strided; npu_layouts.yaml says which operator has which.
//   m.impl("_indices", native<c10::DispatchKey::SparseCPU>());
#pragma once

#include <torch/library.h>

#include "aten/ops/host_call.h"
#include "aten/ops/op_stats.h"

namespace npu::aten {

// Calls PyTorch's own function for `key`, on npu tensors: it reads metadata, or calls operators of the members. Waits
// where one of those does.
void run_native(c10::DispatchKey key, const c10::OperatorHandle& op, torch::jit::Stack* stack);

template <c10::DispatchKey key>
void run_native(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_native(key, op, stack);
}

template <c10::DispatchKey key>
torch::CppFunction native() {
  return torch::CppFunction::makeFromBoxedFunction<&run_native<key>>();
}

// Waits for the device and runs the CPU's kernel on aliases of the members.
void run_on_members(const c10::OperatorHandle& op, torch::jit::Stack* stack);

template <c10::DispatchKey>
torch::CppFunction synchronous() {
  return torch::CppFunction::makeFromBoxedFunction<&run_on_members>();
}

}  // namespace npu::aten
