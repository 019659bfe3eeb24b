#include "aten/bridge/sync_debug_mode.h"

#include <c10/util/Exception.h>

namespace npu::aten::detail {

std::atomic<SyncDebugMode> sync_debug_mode{SyncDebugMode::kDefault};

void report_synchronizing_call(SyncDebugMode mode) {
  constexpr const char* kMessage =
      "called a synchronizing NPU operation: the host waits for the device (torch.npu.set_sync_debug_mode)";
  TORCH_CHECK(mode != SyncDebugMode::kError, kMessage);
  TORCH_WARN(kMessage);
}

}  // namespace npu::aten::detail
