// The one place where a host thread blocks on the device.
//
// A layer above (Python) registers hooks that release and retake its global lock around a wait, and that look for
// signals while it lasts. Waits are counted per thread so that an operator can be charged with the waits it caused.
#pragma once

#include <cstdint>

#include "runtime/export.h"

namespace npu {

struct BlockingHooks {
  void* (*enter)() = nullptr;            // before blocking; the result is handed to leave
  void (*leave)(void* state) = nullptr;  // after blocking, also when poll threw
  void (*poll)() = nullptr;              // every 50 ms while blocked; may throw to end the wait
};
// For waits that begin later; a wait keeps the hooks it began with.
NPU_API void set_blocking_hooks(const BlockingHooks& hooks);

// Scope of one host wait that could not be answered at once.
class NPU_API HostWait {
 public:
  HostWait();
  ~HostWait();
  HostWait(const HostWait&) = delete;
  HostWait& operator=(const HostWait&) = delete;
  void poll() const;  // throws what the hook throws

 private:
  const BlockingHooks* const hooks_;
  void* state_ = nullptr;
};

NPU_API uint64_t host_waits_of_this_thread() noexcept;

}  // namespace npu
