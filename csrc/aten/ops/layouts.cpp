#include "aten/ops/layouts.h"

#include <c10/core/DeviceGuard.h>

#include "aten/ops/members.h"

namespace npu::aten {

void run_native(c10::DispatchKey key, const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const OpScope scope(op_counters(c10::toString(op.operator_name())), Route::kLibrary);
  const c10::OptionalDeviceGuard guard(npu_device_of(op, *stack));
  op.callBoxedForDispatchKey(key, *stack);
}

void run_on_members(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const OpScope scope(op_counters(c10::toString(op.operator_name())), Route::kSynchronous);
  call_on_host(op, stack, "PyTorch has a kernel for CPU tensors alone");
}

}  // namespace npu::aten
