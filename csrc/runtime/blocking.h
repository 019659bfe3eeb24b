// The one place where a host thread blocks on the device.
//
// A layer above (Python) registers hooks that release and retake its global lock around a wait, and that look for
// signals while it lasts. Another layer (the operators) is told of each wait and its cause.
#pragma once

#include "runtime/export.h"

namespace npu {

struct BlockingHooks {
  void* (*enter)() = nullptr;            // before blocking; the result is handed to leave
  void (*leave)(void* state) = nullptr;  // after blocking, also when poll threw
  void (*poll)() = nullptr;              // every 50 ms while blocked; may throw to end the wait
};
// For waits that begin later; a wait keeps the hooks it began with.
NPU_API void set_blocking_hooks(const BlockingHooks& hooks);

// Called on the waiting thread when a wait begins, with the innermost WaitCause; also when what is waited for has happened
// already, so that the number of calls depends on the program and not on timing. One listener; null = none. It must not
// wait.
NPU_API void set_host_wait_listener(void (*listener)(const char* cause));
NPU_API void notify_host_wait();

// Scope that says why the calling thread is about to wait: a text that is never freed, such as "scalar to host".
class NPU_API WaitCause {
 public:
  explicit WaitCause(const char* cause) noexcept;
  ~WaitCause();
  WaitCause(const WaitCause&) = delete;
  WaitCause& operator=(const WaitCause&) = delete;

 private:
  const char* const outer_;
};

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

}  // namespace npu
