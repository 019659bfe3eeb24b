// Explains fatal signals (SIGSEGV, SIGBUS, SIGFPE, SIGILL) on standard error before the process dies of them: which
// device allocation a bad address belongs to, which block of it, and which task of which stream was running.
//
// The report changes nothing else: the previous handler, or the default action, still gets the signal. When a handler that
// was installed later re-raises the signal without the address (Python's faulthandler does), only the task is named.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/export.h"
#include "runtime/task.h"

namespace npu {

NPU_API void install_fault_report();  // idempotent

// The task that a thread executes. Names must be string constants or outlive the task.
struct CurrentTask {
  DeviceIndex device = 0;
  StreamId stream = 0;
  uint64_t number = 0;
  const char* name = "";
};

namespace detail {
// initial-exec: one instruction to set, and safe to read in a signal handler.
NPU_API extern constinit thread_local const CurrentTask* t_current_task __attribute__((tls_model("initial-exec")));
}  // namespace detail

// Null when the thread executes none. `task` stays the caller's.
inline void set_current_task(const CurrentTask* task) noexcept { detail::t_current_task = task; }
inline const CurrentTask* current_task() noexcept { return detail::t_current_task; }

// The allocation that an address belongs or last belonged to. bytes = 0: it was never allocated.
struct AllocationHistory {
  DeviceIndex device = 0;  // as programs call it
  uintptr_t base = 0;
  size_t bytes = 0;
  bool live = false;
};

// Addresses that can be explained. `history` is called in the signal handler: no locks, no heap.
struct FaultRegion {
  enum class Kind : uint8_t { kDevice, kEngine };  // as tensors see the memory, or as the simulated engines do

  Kind kind = Kind::kDevice;
  uintptr_t begin = 0;
  size_t bytes = 0;
  uintptr_t device_begin = 0;  // device address of `begin`
  AllocationHistory (*history)(const void* owner, uintptr_t device_address) noexcept = nullptr;
  const void* owner = nullptr;
};
NPU_API void add_fault_region(const FaultRegion& region);       // ignored beyond kMaxFaultRegions
NPU_API void remove_fault_regions(const void* owner) noexcept;  // all of `owner`
inline constexpr int kMaxFaultRegions = 256;

// The piece of an allocation that a program got from an allocator. bytes = 0: none is known.
struct BlockHistory {
  uintptr_t base = 0;
  size_t bytes = 0;     // as requested
  StreamId stream = 0;  // it was allocated for
  bool live = false;
};

// Tells pieces of allocations apart. `history` is called in the signal handler: no heap, and no lock that it would wait
// for, because the thread that the signal interrupted may hold it.
struct FaultBlocks {
  BlockHistory (*history)(const void* owner, uintptr_t device_address) noexcept = nullptr;
  const void* owner = nullptr;
};
NPU_API void add_fault_blocks(const FaultBlocks& blocks);  // ignored beyond kMaxFaultBlocks
NPU_API void remove_fault_blocks(const void* owner) noexcept;
inline constexpr int kMaxFaultBlocks = 128;

}  // namespace npu
