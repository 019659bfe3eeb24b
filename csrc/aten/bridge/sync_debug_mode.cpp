#include "aten/bridge/sync_debug_mode.h"

#include <c10/util/Exception.h>

#include <string>

namespace npu::aten::detail {

std::atomic<SyncDebugMode> sync_debug_mode{SyncDebugMode::kDefault};

void report_synchronizing_call(SyncDebugMode mode, const char* cause) {
  const std::string message =
      c10::str("called a synchronizing NPU operation: the host waits for the device, cause: ", cause,
               " (torch.npu.set_sync_debug_mode)");
  TORCH_CHECK(mode != SyncDebugMode::kError, message);
  TORCH_WARN(message);
}

}  // namespace npu::aten::detail
