// Finds where a program makes the host wait for the device: torch.npu.set_sync_debug_mode(), torch.npu.op_report().
//
// Threads: any. The mode is the process's.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/blocking.h"
#include "runtime/export.h"

namespace npu::aten {

enum class SyncDebugMode : uint8_t { kDefault, kWarn, kError };

namespace detail {
NPU_API extern std::atomic<SyncDebugMode> sync_debug_mode;
NPU_API void report_synchronizing_call(SyncDebugMode mode, const char* cause);
}  // namespace detail

inline SyncDebugMode sync_debug_mode() noexcept { return detail::sync_debug_mode.load(std::memory_order_relaxed); }
inline void set_sync_debug_mode(SyncDebugMode mode) noexcept {
  detail::sync_debug_mode.store(mode, std::memory_order_relaxed);
}

// Scope of whatever waits for a stream, whether or not there is something to wait for just now: warns, or throws c10::Error
// (RuntimeError), as the mode says, and names the cause of the waits in it. Waiting for an event or for a whole device is a
// program's own decision and is not reported. `cause` is a text that is never freed.
class SynchronizingCall {
 public:
  explicit SynchronizingCall(const char* cause) : cause_(cause) {
    const SyncDebugMode mode = sync_debug_mode();
    if (mode != SyncDebugMode::kDefault) [[unlikely]]
      detail::report_synchronizing_call(mode, cause);
  }

 private:
  const WaitCause cause_;
};

}  // namespace npu::aten
