// Stream-ordered caching allocator of one context.
//
// A block belongs to the stream it was allocated on. Freed there, it is reusable there at once, because later tasks of
// that stream run after the ones that used it; another stream may take it only when the owner has completed every task
// that was queued at the time of the free (one comparison of counters). record_stream() adds further streams that a block
// must outlive.
// Threads: any method from any thread. allocate() takes its stream's pool lock for a short time; free() pushes onto that
// stream's lock-free stack, takes no lock, never enqueues and never blocks. No lock is held while waiting.
// Sizes follow PyTorch: rounded to 512 bytes; blocks up to 1 MiB are cut from 2 MiB segments ("small pool"), larger ones
// from 20 MiB segments or segments of their own, rounded to 2 MiB ("large pool"). Addresses are 512-byte aligned.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/export.h"
#include "runtime/memory/stats.h"
#include "runtime/stream.h"

namespace npu {

class Context;

// One allocation. The caller keeps the pointer and hands it back; `address` is the device address.
struct Block {
  void* address = nullptr;
  size_t bytes = 0;            // rounded
  size_t requested_bytes = 0;
  DeviceIndex device = 0;
};

class NPU_API CachingAllocator {
 public:
  // `deterministic` turns reuse across streams off.
  CachingAllocator(Context& context, bool deterministic);
  ~CachingAllocator();

  // Never null. On a full device: releases cached blocks, drains the device's streams (no lock and no GIL held), retries,
  // then throws kOutOfMemory with requested, allocated, reserved, free and capacity; nothing leaks.
  Block* allocate(size_t bytes, Stream& stream);
  void free(Block* block) noexcept;
  void record_stream(Block* block, Stream& stream);
  Block* find(const void* address) const;    // the live block around an address; null = none. For reports, slow

  void release_cached();                     // gives free segments back to the driver; waits for nothing
  void set_memory_fraction(double fraction); // of the device's capacity; kInvalidArgument outside (0, 1]
  double memory_fraction() const;

  AllocatorStats stats() const;
  void reset_peak_stats();
  void reset_accumulated_stats();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npu
