// The cached memory of one queue.
//
// Threads: any method from any thread. push() takes no lock; the others take the pool's own for a short time. Pools are
// never locked together.
// Lifetime: until the allocator ends. A queue that is destroyed and made again for another stream keeps its pool: the
// numbers of its tasks go on counting, so the new stream may reuse what the old one freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "runtime/fault_report.h"
#include "runtime/memory/allocator_options.h"
#include "runtime/memory/block.h"
#include "runtime/memory/free_list.h"
#include "runtime/memory/pool_counters.h"
#include "runtime/memory/snapshot.h"
#include "runtime/thread_annotations.h"

namespace npu {

// One driver allocation on its way between pools and the driver.
struct Segment {
  void* base = nullptr;
  size_t bytes = 0;
  StatType kind = StatType::kSmallPool;
  bool is_oversize = false;  // too large to be cut when it was made
};

// What the program asks for, with the bytes rounded to whole units.
struct Request {
  size_t bytes = 0;
  size_t requested_bytes = 0;
  StatType kind = StatType::kSmallPool;
  StreamId stream = 0;
  const AllocatorOptions* options = nullptr;
};

class BlockPool {
 public:
  struct Taken {
    CachedBlock* block = nullptr;
    bool is_above_allowance = false;  // the allocator should look for a new peak
  };

  enum class Reuse : uint8_t {
    kInStreamOrder,  // tasks that used the memory may still be queued: the new ones come after them
    kFinished,       // all of them have completed
  };

  BlockPool(Queue& queue, DeviceIndex device) : queue_(queue), device_(device) {}

  Queue& queue() const noexcept { return queue_; }

  // A live block; null when nothing cached fits.
  Taken take(const Request& request, Reuse reuse);
  // The same from a segment that the pool gets. Never null.
  Taken take_from(const Segment& segment, const Request& request);

  // Gives a live block back. Never blocks; tasks queued until now may go on using it.
  void push(CachedBlock& block) noexcept;
  // The block is not reused before `user` has completed what is queued there when it is freed.
  void record_use(CachedBlock& block, Queue& user);

  // Segments without a live block whose last tasks have completed.
  std::vector<Segment> remove_finished_segments();
  // The smallest of them that fits the request; its size is 0 when there is none.
  Segment remove_finished_segment(const Request& request);
  // The one at `base`, if it still is one of them; its size is 0 otherwise.
  Segment remove_finished_segment(const void* base);
  // Which they are, and how many tasks the queue has completed since each became free.
  struct Idle {
    Segment segment;
    uint64_t age = 0;
  };
  std::vector<Idle> finished_segments();

  // Adds this pool's counters to the sums, with all that was pushed counted.
  void count(Amounts& current, Amounts& increases);
  // Allows what count() found last, and `extra` more.
  void allow(const Amounts& extra);

  std::vector<QueuePoint> pending();  // uses that blocks wait for
  size_t largest_free_bytes();
  std::vector<Segment> segments();
  void add_to(std::vector<SegmentSnapshot>& segments);
  CachedBlock* find(const void* address);  // the live block around an address; null = none
  // The block around an address, live or not, for a signal handler: does not wait for the lock, so it finds nothing while
  // a thread, the interrupted one perhaps, is inside. bytes = 0: none.
  BlockHistory history(const void* address) noexcept;

 private:
  using State = CachedBlock::State;

  FreeList& free_list(StatType kind) REQUIRES(mutex_) { return kind == StatType::kSmallPool ? small_ : large_; }
  // Takes in what was pushed. A block of exactly `wanted_bytes` is returned instead of merged and cut anew.
  CachedBlock* drain(size_t wanted_bytes = 0) REQUIRES(mutex_);
  void reclaim_pending() REQUIRES(mutex_);
  void make_inactive(const CachedBlock& block) REQUIRES(mutex_);
  void make_free(CachedBlock& block) REQUIRES(mutex_);
  Taken mark_live(CachedBlock& block, const Request& request) REQUIRES(mutex_);
  Taken hand_out(CachedBlock& block, const Request& request) REQUIRES(mutex_);
  void insert_free(CachedBlock& block) REQUIRES(mutex_);
  void remove_free(CachedBlock& block) REQUIRES(mutex_);
  void merge_into(CachedBlock& left) REQUIRES(mutex_);
  bool is_finished_segment(const CachedBlock& first) const REQUIRES(mutex_);
  Segment remove_segment(CachedBlock& first) REQUIRES(mutex_);
  CachedBlock* block_around(const void* address) const REQUIRES(mutex_);
  CachedBlock& new_block() REQUIRES(mutex_);

  Queue& queue_;
  const DeviceIndex device_;
  alignas(64) std::atomic<CachedBlock*> freed_{nullptr};  // stack, linked by `after`

  alignas(64) Mutex mutex_;
  PoolCounters counters_ GUARDED_BY(mutex_);
  Amounts counted_ GUARDED_BY(mutex_){};  // by the latest count()
  FreeList small_ GUARDED_BY(mutex_);
  FreeList large_ GUARDED_BY(mutex_);
  std::vector<CachedBlock*> pending_ GUARDED_BY(mutex_);
  std::map<const void*, CachedBlock*> segments_ GUARDED_BY(mutex_);  // base -> first block
  CachedBlock* spare_ GUARDED_BY(mutex_) = nullptr;                  // linked by `after`
  std::vector<std::unique_ptr<CachedBlock[]>> slabs_ GUARDED_BY(mutex_);
};

}  // namespace npu
