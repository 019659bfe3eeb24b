#include "runtime/driver/sim/sim_queue.h"

#include <sstream>

#include "runtime/driver/sim/executor.h"

namespace npu {

const TaskInfo kQueueWait{.name = "wait_event", .run = nullptr, .engines = kNoEngine};
const TaskInfo kSignalWait{.name = "wait_value", .run = nullptr, .engines = kNoEngine};

SimQueue::SimQueue(Executor& executor, Engines& engines, const AddressMap& map, size_t slots)
    : executor_(executor), engines_(engines), map_(map), ring_(submitted_, slots) {}

void SimQueue::assign(const QueueOptions& options) {
  device_ = options.device;
  stream_ = options.stream;
  priority_ = options.priority;
  errors_ = options.errors;
  set_skipping(false);
  set_stop_on_error(false);
  context = TaskContext(options.shown_as, options.stream, map_, executor_);
}

void SimQueue::resume() { executor_.make_ready(*this); }

void SimQueue::complete(Slot& slot, const Clock& clock) {
  const uint64_t number = ring_.next_number();
  ring_.pop(slot);
  completed_.store(number, std::memory_order_seq_cst);
  completions_.advanced(number, clock);
}

bool SimQueue::park(CompletionList& list, uint64_t number) {
  // Once it is in the list another thread may run the queue: nothing of it is touched after that.
  set_state(StrandState::kParked);
  if (list.add(resume_, number)) return true;
  set_state(StrandState::kRunning);
  return false;
}

bool SimQueue::park_on(SimQueue& producer, uint64_t number) {
  wait_target_.store(&producer, std::memory_order_relaxed);
  wait_number_.store(number, std::memory_order_relaxed);
  wait_kind_.store(WaitKind::kQueue, std::memory_order_release);
  return park(producer.completions_, number);
}

bool SimQueue::park_on(SimSignal& signal, uint64_t value) {
  wait_target_.store(&signal, std::memory_order_relaxed);
  wait_number_.store(value, std::memory_order_relaxed);
  wait_kind_.store(WaitKind::kSignal, std::memory_order_release);
  return park(signal.waiters, value);
}

void SimQueue::set_waiting_for(Engine engine) noexcept {
  wait_number_.store(static_cast<uint64_t>(engine), std::memory_order_relaxed);
  wait_kind_.store(WaitKind::kEngine, std::memory_order_release);
}

void SimQueue::set_waiting_for_host_function() noexcept {
  wait_kind_.store(WaitKind::kHostFunction, std::memory_order_release);
}

std::string SimQueue::describe() const {
  const uint64_t done = completed();
  const uint64_t queued = submitted();
  if (done >= queued) return {};
  std::ostringstream out;
  out << "npu:" << context.device << " stream " << stream_ << ": task " << done + 1 << " of " << queued;
  const StrandState state = state_.load(std::memory_order_acquire);
  if (state == StrandState::kReady) out << " is ready and waits for a worker";
  if (const TaskInfo* current = current_.load(std::memory_order_relaxed);
      state == StrandState::kRunning && current != nullptr)
    out << " (" << current->name << ") is running";
  if (state != StrandState::kParked) return out.str();

  const uint64_t number = wait_number_.load(std::memory_order_relaxed);
  switch (wait_kind_.load(std::memory_order_acquire)) {
    case WaitKind::kQueue: {
      const auto* producer = static_cast<const SimQueue*>(wait_target_.load(std::memory_order_relaxed));
      out << " waits for task " << number << " of npu:" << producer->context.device << " stream " << producer->stream()
          << ", which has completed " << producer->completed();
      break;
    }
    case WaitKind::kSignal: {
      const auto* signal = static_cast<const SimSignal*>(wait_target_.load(std::memory_order_relaxed));
      out << " waits for a value >= " << number << ", which is " << signal->value() << " (a closed gate?)";
      break;
    }
    case WaitKind::kEngine: out << " waits for a free " << to_string(static_cast<Engine>(number)) << " engine"; break;
    case WaitKind::kHostFunction: out << " waits for the host function thread"; break;
    case WaitKind::kNone: break;
  }
  return out.str();
}

}  // namespace npu
