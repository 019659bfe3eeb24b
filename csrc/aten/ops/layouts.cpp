#include "aten/ops/layouts.h"

#include <c10/core/DeviceGuard.h>

#include <memory>

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

class Native final : public CountedKernel {
 public:
  Native(const char* name, Route route, c10::DispatchKey key) : CountedKernel(name, route), key_(key) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) const {
    const OpScope counted = scope();
    const c10::OptionalDeviceGuard guard(npu_device_of(op, *stack));
    op.callBoxedForDispatchKey(key_, *stack);
  }

 private:
  const c10::DispatchKey key_;
};

class OnMembers final : public CountedKernel {
 public:
  explicit OnMembers(const char* name) : CountedKernel(name, Route::kSynchronous) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) const {
    const OpScope counted = scope();
    call_on_host(op, stack, "PyTorch has a kernel for CPU tensors alone");
  }
};

}  // namespace

torch::CppFunction native(const char* name, Route route, c10::DispatchKey key) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Native>(name, route, key));
}

torch::CppFunction synchronous(const char* name) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OnMembers>(name));
}

}  // namespace npu::aten
