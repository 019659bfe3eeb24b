// Runs any operator on the host: waits for the device, calls PyTorch's CPU kernel on aliases of device memory, and hands
// back npu tensors. The fallback and the synchronous route are made of it.
//
// Arguments are not copied. New results are; results that alias an argument become views of it. A mutated argument is
// changed in place, also when the kernel resizes it. Tensors of every layout may come and go (members.h).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include <optional>

#include "aten/ops/op_stats.h"

namespace npu::aten {

// The npu device that the arguments on `stack` name first, tensors and devices alike; the current one where they give no
// index. None when there is no npu among them.
std::optional<c10::Device> npu_device_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Pops the operator's arguments off `stack` and pushes its results. Blocks, for the `cause` named in reports. Errors: those
// of the CPU kernel, pending errors of the device, TORCH_CHECK when npu tensors meet CPU tensors with dimensions or tensors
// of another device.
void call_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack, const char* cause);

// Boxed kernel of an operator whose result depends on data: call_on_host, counted as synchronous, with the table's reason.
template <OpCounters& op>
void run_synchronous(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
  const OpScope scope(op, Route::kSynchronous);
  call_on_host(handle, stack, op.wait_cause);
}

// The same for a kernel that is not boxed: one that finds it cannot do without the data. Of one result.
template <OpCounters& op>
at::Tensor call_synchronous(const char* name, const char* overload, torch::jit::Stack stack) {
  run_synchronous<op>(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload), &stack);
  return stack[0].toTensor();
}

}  // namespace npu::aten
