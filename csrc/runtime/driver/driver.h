// The device seam: everything the runtime asks of a device. The simulated NPU implements it; tracing, fault injection
// and statistics may wrap it.
//
// Threads: every method may be called from any thread. Methods throw npu::Error; none of them blocks except wait() and
// submit*() on a full queue, which first help to execute (see HostWait).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "runtime/export.h"
#include "runtime/observer.h"
#include "runtime/task.h"

namespace npu {

struct DeviceProperties {
  std::string name;
  size_t memory_bytes = 0;
  int cube_cores = 0;
  int vector_cores = 0;
  int dma_in_engines = 0;
  int dma_out_engines = 0;
  int clock_mhz = 0;  // nominal; says nothing about the speed of the simulation
  int capability_major = 1;
  int capability_minor = 0;
};

struct MemoryInfo {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
};

struct EngineUsage {
  int capacity = 0;
  int64_t busy_ns = 0;  // summed over the engine's units
  uint64_t tasks = 0;
};

// Where an address lies.
struct MemoryLocation {
  enum class Kind : uint8_t { kUnknown, kDevice, kPinned };
  Kind kind = Kind::kUnknown;
  DeviceIndex device = -1;     // kDevice only
  const void* base = nullptr;  // the driver allocation around the address; null when it belongs to none
  size_t bytes = 0;
};

// Receives what goes wrong in tasks of a queue. Called on the executing thread, under no lock.
class TaskErrorSink {
 public:
  virtual void on_task_error(const TaskEvent& task, std::exception_ptr error) noexcept = 0;

 protected:
  ~TaskErrorSink() = default;
};

// An in-order queue of a device. Numbers count tasks from 1; both counters only grow and survive recycling of the object,
// so (queue, number) names a point in time forever. The driver owns queues and never frees their memory.
class Queue {
 public:
  // Tasks submitted so far. A task counts once its slot is claimed.
  uint64_t submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
  // Whoever sees completed() >= n also sees every write of tasks 1 ... n.
  uint64_t completed() const noexcept { return completed_.load(std::memory_order_acquire); }
  bool idle() const noexcept { return completed() >= submitted(); }
  // While set, tasks complete without being run (failure mode "stop").
  void set_skipping(bool skipping) noexcept { skipping_.store(skipping, std::memory_order_relaxed); }
  bool skipping() const noexcept { return skipping_.load(std::memory_order_relaxed); }
  // Whether a task that fails makes the queue skip.
  void set_stop_on_error(bool stop) noexcept { stop_on_error_.store(stop, std::memory_order_relaxed); }
  bool stops_on_error() const noexcept { return stop_on_error_.load(std::memory_order_relaxed); }

 protected:
  ~Queue() = default;
  alignas(64) std::atomic<uint64_t> submitted_{0};
  alignas(64) std::atomic<uint64_t> completed_{0};
  std::atomic<bool> skipping_{false};
  std::atomic<bool> stop_on_error_{false};
};

// A point in time: `number` tasks of the queue are complete.
struct QueuePoint {
  Queue* queue = nullptr;
  uint64_t number = 0;
};

struct QueueOptions {
  DeviceIndex device = 0;
  DeviceIndex shown_as = 0;  // what programs call the device: in reports, observers and TaskContext
  StreamId stream = 0;       // likewise
  int priority = 0;          // kGreatestPriority ... kLeastPriority; lower = first among waiting tasks
  TaskErrorSink* errors = nullptr;
};
inline constexpr int kGreatestPriority = -3;
inline constexpr int kLeastPriority = 0;

// A 64-bit value that queues wait for and hosts or tasks write: a timeline semaphore.
class Signal {
 public:
  uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }

 protected:
  ~Signal() = default;
  std::atomic<uint64_t> value_{0};
};

// Told once when a queue reaches a number. The object must live until then, or until Driver::cancel returned true.
class Completion {
 public:
  virtual void on_complete(int64_t time_ns) noexcept = 0;  // on the executing thread; must not block

 protected:
  ~Completion() = default;

 private:
  friend class CompletionList;
  Completion* previous_ = nullptr;
  Completion* next_ = nullptr;
  uint64_t number_ = 0;
  bool listed_ = false;
};

// What to launch. `bytes` arguments at `arguments` are copied; they must be trivially copyable.
struct Submission {
  const TaskInfo& info;
  const void* arguments = nullptr;
  size_t bytes = 0;
  uint32_t cost_ns =
      0;  // rough estimate of the run time on one core; decides where tiny tasks run. 0 = unknown, not tiny
  const std::string* traceback = nullptr;  // of the launch; the task owns it from here on
};

class Driver {
 public:
  static constexpr int64_t kForever = INT64_MAX;

  virtual ~Driver() = default;
  virtual const char* name() const = 0;
  virtual int device_count() const = 0;
  virtual DeviceProperties properties(DeviceIndex device) const = 0;
  virtual EngineUsage engine_usage(DeviceIndex device, Engine engine) const = 0;

  // Memory. Addresses are device addresses, aligned to 2 MiB; sizes are rounded up to 2 MiB.
  virtual MemoryInfo memory_info(DeviceIndex device) const = 0;
  virtual void* allocate(DeviceIndex device, size_t bytes) = 0;  // null when the device has not that much left
  virtual void free(DeviceIndex device, void* address) = 0;      // the pages go back to the machine at once
  virtual void* translate(const void* address) const = 0;        // engine address; throws kInvalidAddress
  virtual MemoryLocation locate(const void* address) const = 0;
  virtual void* allocate_host(size_t bytes) = 0;  // pinned, pre-faulted; null when the machine refuses
  virtual void free_host(void* address) = 0;

  // Queues.
  virtual Queue& create_queue(const QueueOptions& options) = 0;
  virtual void destroy_queue(Queue& queue) = 0;                             // at once; queued work completes
  virtual uint64_t submit(Queue& queue, const Submission& submission) = 0;  // the task's number
  // Later tasks of `queue` start after `producer` completed `number`. No task if it already has.
  virtual void submit_wait(Queue& queue, Queue& producer, uint64_t number) = 0;
  virtual void submit_wait(Queue& queue, Signal& signal, uint64_t value) = 0;  // until signal.value() >= value
  // Blocks the host until `queue` completed `number` or the clock reaches `deadline_ns`; false = deadline. Without a
  // deadline (kForever) the host helps to execute meanwhile, and looks for signals between tasks and tiles.
  virtual bool wait(Queue& queue, uint64_t number, int64_t deadline_ns) = 0;
  // Calls completion.on_complete when `queue` completes `number` (at once if it has), without a slot in the queue.
  virtual void notify(Queue& queue, uint64_t number, Completion& completion) = 0;
  virtual bool cancel(Queue& queue, Completion& completion) = 0;  // false: on_complete has been called

  // Signals start at 0. Waits that are queued when a signal is destroyed stay valid; nothing can write it any more.
  virtual Signal& create_signal() = 0;
  virtual void destroy_signal(Signal& signal) = 0;
  virtual void write(Signal& signal, uint64_t value) = 0;  // from a host thread or a running task

  // For people: what every unfinished queue is doing and waiting for, one line each; empty when all is done.
  virtual std::string describe_waits() const = 0;
  // Ends the workers: waits for queued work until `deadline_ns`, then abandons it. False = something was abandoned.
  virtual bool shutdown(int64_t deadline_ns) = 0;
};

}  // namespace npu
