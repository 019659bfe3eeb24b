// Decides which stream's tasks run next, and which tasks run at once on the thread that launches them.
//
// One implementation now: highest priority first, round robin within a priority. A checker that explores schedules is
// another one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "runtime/clock.h"
#include "runtime/export.h"
#include "runtime/task.h"

namespace npu {

// What a scheduler knows of a queue: an in-order sequence of tasks of which one thread at a time runs some.
class Strand {
 public:
  DeviceIndex device() const noexcept { return device_; }
  StreamId stream() const noexcept { return stream_; }
  int priority() const noexcept { return priority_; }

  Strand* next = nullptr;  // links and membership belong to the scheduler
  Strand* previous = nullptr;
  bool ready = false;

 protected:
  ~Strand() = default;
  DeviceIndex device_ = 0;
  StreamId stream_ = 0;
  int priority_ = 0;
};

class NPU_API Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The ready strands. Called under the executor's lock.
  virtual void push(Strand& strand) = 0;
  virtual Strand* pop() = 0;                // null when there is none
  virtual bool remove(Strand& strand) = 0;  // false when it is not ready (any more)

  // Whether a task that finds its stream idle runs on the launching thread. `watched`: an awake worker polls the stream.
  // Called without a lock, from any thread.
  virtual bool run_inline(const TaskInfo& info, uint32_t cost_ns, bool watched) = 0;
  // Whether a strand should make way for others after `tasks` tasks in a row. Called without a lock.
  virtual bool should_yield(const Strand& strand, unsigned tasks) const = 0;
};

NPU_API std::unique_ptr<Scheduler> make_priority_scheduler(const Clock& clock, bool inline_tasks);

}  // namespace npu
