#include "aten/ops/layouts.h"

#include <c10/core/DeviceGuard.h>

#include <memory>
#include <optional>
#include <vector>

#include "aten/ops/members.h"

namespace npu::aten {
namespace {

// Finds its counters when it is registered: calls of metadata are many and short.
class CountedKernel : public c10::OperatorKernel {
 protected:
  CountedKernel(const char* name, Route route) : counters_(op_counters(name)), route_(route) {}
  OpScope scope() const { return {counters_, route_}; }

 private:
  OpCounters& counters_;
  const Route route_;
};

// Tensors on the host are PyTorch's function's business.
void check_same_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  std::optional<c10::Device> first;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = torch::jit::peek(stack, i, arguments.size());
    const auto device = value.isTensor() && value.toTensor().defined() ? value.toTensor().device() : at::kCPU;
    if (!device.is_privateuseone()) continue;
    TORCH_CHECK(device == first.value_or(device),
                "Expected all tensors to be on the same device, but found at least two devices, ", *first, " and ",
                device, "! (checking argument ", arguments[i].name(), " of ", op.operator_name(), ")");
    first = device;
  }
}

class Native final : public CountedKernel {
 public:
  Native(const char* name, Route route, c10::DispatchKey key, DeviceCheck check)
      : CountedKernel(name, route), key_(key), check_(check) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) const {
    const OpScope counted = scope();
    if (check_ == DeviceCheck::kSame) check_same_device(op, *stack);
    const c10::OptionalDeviceGuard guard(npu_device_of(op, *stack));
    op.callBoxedForDispatchKey(key_, *stack);
  }

 private:
  const c10::DispatchKey key_;
  const DeviceCheck check_;
};

class OnMembers final : public CountedKernel {
 public:
  explicit OnMembers(const char* name) : CountedKernel(name, Route::kSynchronous) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) const {
    const OpScope counted = scope();
    call_on_host(op, stack, "PyTorch has a kernel for CPU tensors alone");
  }
};

// Every member outlives what the stream has queued.
void record_stream(at::Tensor& self, c10::Stream stream) {
  static OpCounters& counters = op_counters("aten::record_stream");
  const OpScope scope(counters, Route::kView);
  with_members(self, [stream](const at::Tensor& member) {
    member.record_stream(stream);
    return member;
  });
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) { m.impl("record_stream", record_stream); }
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) { m.impl("record_stream", record_stream); }
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) { m.impl("record_stream", record_stream); }
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) { m.impl("record_stream", record_stream); }

}  // namespace

torch::CppFunction native(const char* name, Route route, c10::DispatchKey key, DeviceCheck check) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Native>(name, route, key, check));
}

torch::CppFunction synchronous(const char* name) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OnMembers>(name));
}

}  // namespace npu::aten
