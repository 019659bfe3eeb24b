// The engines of one simulated device: how many units each has, which are held, who waits, how long they were busy.
//
// A queue holds units, not a thread: it acquires them before a task and keeps them over consecutive tasks as long as
// nobody else waits. A freed unit goes straight to the first waiting queue of the highest priority, so a busy stream
// cannot starve others.
#pragma once

#include <array>
#include <atomic>
#include <vector>

#include "runtime/driver/driver.h"
#include "runtime/task.h"
#include "runtime/thread_annotations.h"

namespace npu {

class SimQueue;

class Engines {
 public:
  explicit Engines(const std::array<int, kEngineCount>& capacities);

  // Makes `queue` hold exactly the units of `mask`. False: it holds none, has been set to kParked and will be made ready
  // with resume(queue) when a unit has been granted to it; the caller must not touch it any more.
  bool acquire(SimQueue& queue, EngineMask mask);
  void release(SimQueue& queue);  // all that it holds

  void add_busy(EngineMask mask, int64_t ns) noexcept;
  EngineUsage usage(Engine engine) const noexcept;

 private:
  struct alignas(64) Unit {
    std::atomic<int> available{0};
    std::atomic<bool> waited_for{false};
    std::atomic<int64_t> busy_ns{0};
    std::atomic<uint64_t> tasks{0};
    int capacity = 0;
    mutable Mutex mutex;
    std::vector<SimQueue*> waiters GUARDED_BY(mutex);  // in order of arrival
  };

  static bool try_take(Unit& unit) noexcept;
  bool waited_for(EngineMask mask) const noexcept;
  bool park(SimQueue& queue, int engine);
  void give_back(int engine);
  void grant_waiters(int engine);

  std::array<Unit, kEngineCount> units_;
};

}  // namespace npu
