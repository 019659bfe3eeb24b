// Pinned host memory: pre-faulted pages of the process that engines may read and write, known by address.
//
// One for the whole process, since any device may copy from it. Forked children inherit the pages.
// Threads: any method from any thread; looking an address up takes a shared lock and never waits for the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <shared_mutex>

#include "runtime/driver/driver.h"
#include "runtime/export.h"

namespace npu {

class NPU_API PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();  // gives back what is still allocated
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* allocate(size_t bytes);  // page aligned, zero-filled; null when the machine refuses
  void free(void* address);      // throws kInvalidAddress unless allocate() returned it and it is still live

  // kPinned with base and requested size when `address` lies in a live block; kUnknown otherwise.
  MemoryLocation locate(const void* address) const;

 private:
  struct Block {
    size_t bytes;         // as requested; at least 1
    size_t mapped_bytes;  // whole pages
  };

  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Block> blocks_;  // by base address
};

}  // namespace npu
