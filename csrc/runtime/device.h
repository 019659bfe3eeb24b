// The devices of this process and the calling thread's choices: which device, which stream of it.
//
// device_count() and is_available() never initialise anything. The first call that needs a device initialises it; in a
// child of a process that had initialised, that call throws kInvalidState (the workers did not survive the fork).
#pragma once

#include "runtime/context.h"
#include "runtime/driver/driver.h"
#include "runtime/export.h"

namespace npu {

NPU_API int device_count();                     // visible devices; throws on a bad configuration
NPU_API DeviceIndex current_device() noexcept;  // of this thread; 0 at first
NPU_API void set_device(DeviceIndex device);    // throws kInvalidDevice; does not initialise
NPU_API void check_device(DeviceIndex device);  // throws kInvalidDevice with the range that would be right

NPU_API Driver& driver();                              // initialises the runtime
NPU_API Context& primary_context(DeviceIndex device);  // initialises the device
NPU_API bool has_primary_context(DeviceIndex device) noexcept;
NPU_API bool is_initialized() noexcept;  // the runtime, in this process
NPU_API bool in_bad_fork() noexcept;     // the parent had initialised

NPU_API Stream& current_stream(DeviceIndex device);  // of this thread
NPU_API Stream& exchange_stream(Stream& stream);     // makes it current on its device; returns the one before

// Waits for all devices until NPU_EXIT_TIMEOUT_S, then reports what is abandoned and prints unreported errors. Idempotent;
// nothing launches afterwards. Does nothing in a forked child.
NPU_API void shutdown() noexcept;

class NPU_API DeviceGuard {
 public:
  explicit DeviceGuard(DeviceIndex device) : previous_(current_device()) { set_device(device); }
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  DeviceIndex previous_;
};

}  // namespace npu
