// In-order work queue on one device, as programs see it: a Queue of the driver plus an identity.
//
// Threads: any method from any thread. One caller's tasks run in call order; between callers use an Event.
// Lifetime: owned by its Context until the context ends. Context::destroy_stream returns at once and queued work completes;
// the object stays, and whatever uses it from then on throws kInvalidArgument. Destroying a stream while another thread
// is launching on it is an error of the program. Ids are never reused.
// Errors: a task error is kept by the context, later tasks go on (FailureMode::kContinue) or are skipped (kStop), and the
// next synchronising call on any stream of the device throws it once. With launch blocking on, launch() waits and rethrows
// the task's own exception.
#pragma once

#include <atomic>
#include <type_traits>

#include "runtime/driver/driver.h"
#include "runtime/task.h"

namespace npu {

class Context;
class Event;

enum class FailureMode : uint8_t { kContinue, kStop };

class NPU_API Stream {
 public:
  Stream(Context& context, StreamId id, int priority);  // use Context::create_stream
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Context& context() const noexcept { return context_; }
  DeviceIndex device() const noexcept;
  StreamId id() const noexcept { return id_; }
  int priority() const noexcept { return priority_; }
  Queue& queue() const {
    if (queue_.load(std::memory_order_relaxed) == nullptr) [[unlikely]]
      throw_destroyed();
    return *queue_.load(std::memory_order_relaxed);
  }
  uint64_t submitted() const { return queue().submitted(); }
  uint64_t completed() const { return queue().completed(); }

  // Queues one task and returns; no heap, no lock, no system call while a worker is awake and the queue has room.
  // `cost_ns` is a rough estimate of the task's run time on one core (see Submission).
  template <class Arguments>
  uint64_t launch(const TaskInfo& info, const Arguments& arguments, uint32_t cost_ns = 0) {
    static_assert(std::is_trivially_copyable_v<Arguments>, "arguments are copied byte by byte into the queue");
    return launch_bytes({info, &arguments, sizeof(Arguments), cost_ns});
  }
  uint64_t launch_bytes(const Submission& submission);

  // Runs function(data) on the device's CPU engine, in stream order. It may take locks that hosts hold.
  void launch_host_function(void (*function)(void* data), void* data);

  // Later tasks start after the latest record of `event` at the time of this call.
  void wait(const Event& event);
  void wait_value(Signal& signal, uint64_t value);   // until signal.value() >= value; parks the stream, not a worker
  void write_value(Signal& signal, uint64_t value);  // in stream order

  bool query() const { return queue().idle(); }
  void synchronize();                        // blocks; throws the device's first pending error
  bool synchronize_for(int64_t timeout_ns);  // false = not done in time

  void set_failure_mode(FailureMode mode) { queue().set_stop_on_error(mode == FailureMode::kStop); }
  FailureMode failure_mode() const { return queue().stops_on_error() ? FailureMode::kStop : FailureMode::kContinue; }
  void resume() { queue().set_skipping(false); }  // after kStop skipped tasks

 private:
  friend class Context;
  void destroy();  // gives the queue back; once
  [[noreturn]] void throw_destroyed() const;

  Context& context_;
  const StreamId id_;
  const int priority_;
  std::atomic<Queue*> queue_;  // null once destroyed
};

}  // namespace npu
