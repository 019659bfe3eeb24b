// Stream-ordered caching allocator of one context.
//
// A block belongs to the stream it was allocated on. Freed there, it is reusable there at once, because later tasks of
// that stream run after the ones that used it; another stream may take its memory, a whole segment at a time, only when the
// owner has completed every task that was queued at the time of the free (one comparison of counters). record_stream() adds
// further streams that a block must outlive.
// Threads: any method from any thread. allocate() takes its stream's pool lock for a short time; free() pushes onto that
// stream's lock-free stack, takes no lock, never enqueues and never blocks. No lock is held while waiting.
// Sizes follow PyTorch: rounded to 512 bytes; blocks up to 1 MiB are cut from 2 MiB segments ("small pool"), larger ones
// from 20 MiB segments or segments of their own, rounded to 2 MiB ("large pool"). Addresses are 512-byte aligned. Options
// change the rounding and what is cut.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/export.h"
#include "runtime/memory/allocator_options.h"
#include "runtime/memory/block.h"
#include "runtime/memory/snapshot.h"
#include "runtime/memory/stats.h"
#include "runtime/stream.h"

namespace npu {

class Context;

class NPU_API CachingAllocator {
 public:
  // `deterministic` turns reuse across streams off. Starts with initial_allocator_options().
  CachingAllocator(Context& context, bool deterministic);
  // The same without a context; drains the queues it knows. For tests.
  CachingAllocator(Driver& driver, DeviceIndex device, DeviceIndex ordinal, bool deterministic,
                   const AllocatorOptions& options = {});
  ~CachingAllocator();  // gives all memory back; nothing may run on it any more

  // Never null, zero bytes included. On a full device: releases cached blocks, drains the device's streams (no lock and no
  // GIL held), retries, then throws kOutOfMemory with requested, allocated, reserved, free and capacity; nothing leaks.
  Block* allocate(size_t bytes, Queue& queue, StreamId stream);
  Block* allocate(size_t bytes, Stream& stream) { return allocate(bytes, stream.queue(), stream.id()); }
  void free(Block* block) noexcept;
  void record_stream(Block* block, Queue& queue);
  void record_stream(Block* block, Stream& stream) { record_stream(block, stream.queue()); }
  Block* find(const void* address) const;  // the live block around an address; null = none. For reports, slow

  // Gives segments back to the driver that are free and whose streams have completed the tasks that used them; waits for
  // nothing, so synchronise first to release all that is free.
  void release_cached();
  void set_options(const AllocatorOptions& options);  // for allocations from now on
  AllocatorOptions options() const;
  void set_memory_fraction(double fraction);  // of the device's capacity; kInvalidArgument outside (0, 1]
  double memory_fraction() const;

  AllocatorStats stats() const;
  std::vector<SegmentSnapshot> snapshot() const;  // by address; each pool as it is when it is looked at
  void reset_peak_stats();
  void reset_accumulated_stats();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npu
