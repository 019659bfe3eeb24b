// A queue of the simulated device: a ring of tasks of which one thread at a time, the owner of the state kRunning,
// executes some.
//
//   kIdle       nothing published; nobody looks. A producer moves it to kReady (or runs the task itself).
//   kLingering  nothing published; an awake worker polls it.
//   kReady      among the scheduler's ready strands.
//   kRunning    owned by the thread that executes its tasks.
//   kParked     waits for another queue, a signal, an engine or the CPU engine's thread, which makes it ready again.
//
// A producer publishes a slot, then reads the state; an owner that finds no slot gives the state up, then looks for a slot
// once more. All four accesses are sequentially consistent, so one of the two sees the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/driver/driver.h"
#include "runtime/driver/sim/completion_list.h"
#include "runtime/driver/sim/ring.h"
#include "runtime/scheduler.h"

namespace npu {

class Engines;
class Executor;

enum class StrandState : uint8_t { kIdle, kLingering, kReady, kRunning, kParked };

class SimSignal final : public Signal {
 public:
  void write(uint64_t value, const Clock& clock) {
    value_.store(value, std::memory_order_seq_cst);
    waiters.advanced(value, clock);
  }
  CompletionList waiters{value_};
  std::atomic<uint64_t> pending_waits{0};  // queued and not passed yet; keeps a destroyed signal from being reused
};

class SimQueue final : public Queue, public Strand {
 public:
  SimQueue(Executor& executor, Engines& engines, const AddressMap& map, size_t slots);

  // A drained queue may serve another stream; its counters go on.
  void assign(const QueueOptions& options);

  Ring& ring() noexcept { return ring_; }
  Engines& engines() const noexcept { return engines_; }
  TaskErrorSink* errors() const noexcept { return errors_; }
  CompletionList& completions() noexcept { return completions_; }
  bool has_front() const noexcept { return ring_.has_front(completed()); }
  bool at_rest() const noexcept {
    return idle() && (state() == StrandState::kIdle || state() == StrandState::kLingering);
  }

  // The state.
  StrandState state() const noexcept { return state_.load(std::memory_order_seq_cst); }
  void set_state(StrandState state) noexcept { state_.store(state, std::memory_order_seq_cst); }
  bool change_state(StrandState from, StrandState to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_seq_cst, std::memory_order_relaxed);
  }
  void resume();  // kParked -> kReady; from whoever the queue waited for

  // The owner's. complete() gives the front slot back and counts its task.
  void complete(Slot& slot, const Clock& clock);
  // Parks until the wait at the front can go on; false = it can already and the state is still kRunning.
  bool park_on(SimQueue& producer, uint64_t number);
  bool park_on(SimSignal& signal, uint64_t value);

  // What it is doing, for reports. Any thread; empty when idle.
  std::string describe() const;
  void set_current(const TaskInfo* info) noexcept { current_.store(info, std::memory_order_relaxed); }
  void set_waiting_for(Engine engine) noexcept;
  void set_waiting_for_host_function() noexcept;

  TaskContext context;                  // number is set before each task
  EngineMask held_engines = kNoEngine;  // the owner's; see Engines
  EngineMask granted_engines = kNoEngine;

 private:
  class Resume final : public Completion {
   public:
    explicit Resume(SimQueue& queue) : queue_(queue) {}
    void on_complete(int64_t) noexcept override { queue_.resume(); }

   private:
    SimQueue& queue_;
  };
  enum class WaitKind : uint8_t { kNone, kQueue, kSignal, kEngine, kHostFunction };

  bool park(CompletionList& list, uint64_t number);

  Executor& executor_;
  Engines& engines_;
  const AddressMap map_;
  TaskErrorSink* errors_ = nullptr;
  std::atomic<StrandState> state_{StrandState::kIdle};
  Ring ring_;
  CompletionList completions_{completed_};
  Resume resume_{*this};
  std::atomic<const TaskInfo*> current_{nullptr};
  std::atomic<WaitKind> wait_kind_{WaitKind::kNone};
  std::atomic<const void*> wait_target_{nullptr};
  std::atomic<uint64_t> wait_number_{0};
};

// Tasks that the executor handles itself: their TaskInfo has no run function.
struct QueueWait {
  SimQueue* producer;
  uint64_t number;
};
struct SignalWait {
  SimSignal* signal;
  uint64_t value;
};
extern const TaskInfo kQueueWait;
extern const TaskInfo kSignalWait;

}  // namespace npu
