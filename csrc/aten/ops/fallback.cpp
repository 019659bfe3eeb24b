// The fallback: what the operator table does not name runs on the host. Counted, warned once per operator, and an error
// under NPU_FALLBACK=error.
#include <torch/library.h>

#include <mutex>
#include <unordered_set>

#include "aten/bridge/errors.h"
#include "aten/ops/host_call.h"
#include "aten/ops/op_stats.h"
#include "runtime/config.h"

namespace npu::aten {
namespace {

bool first_time(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& seen = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return seen.insert(name).second;
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  // Without a kernel for the CPU either, PyTorch's own refusal says which there are.
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) return call_on_host(op, stack, "no npu kernel");
  const FallbackMode mode = translate_errors([] { return config().fallback; });
  TORCH_CHECK_NOT_IMPLEMENTED(mode != FallbackMode::kError, name,
                              " has no npu kernel, and NPU_FALLBACK=error forbids running it on the host. Set "
                              "NPU_FALLBACK=warn or allow, or ",
                              name.starts_with("aten::") ? "add the operator (docs/adding_an_operator.md)"
                                                         : "register a kernel for npu (docs/custom_operators.md)",
                              ".");
  if (mode == FallbackMode::kWarn && first_time(name))
    TORCH_WARN(name,
               " has no npu kernel: it waits for the device and runs on the host. torch.npu.op_stats() counts such "
               "calls; NPU_FALLBACK=error refuses them, NPU_FALLBACK=allow silences this.");
  const OpScope scope(op_counters(name), Route::kFallback);
  call_on_host(op, stack, "no npu kernel");
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

}  // namespace
}  // namespace npu::aten
