// Owns everything that exists on one device for one user of it: streams, the caching allocator, pending errors.
//
// Today each device has one context, its primary context, made on first use and leaked on purpose: tasks and deleters may
// outlive main(). Explicit contexts are more objects of this class.
// Lock order: Context::mutex_, then allocator pools, then driver. No lock is held while waiting or launching.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/driver/driver.h"
#include "runtime/status.h"
#include "runtime/stream.h"
#include "runtime/thread_annotations.h"

namespace npu {

class CachingAllocator;

struct TaskError {
  DeviceIndex device = 0;
  StreamId stream = 0;
  uint64_t number = 0;
  std::string task;       // operator name
  std::string message;    // of the exception
  std::string operands;   // "self float32[2, 3] at 0x..., ..."
  std::string traceback;  // of the launch, with NPU_TRACEBACK=1
  std::exception_ptr exception;

  std::string describe() const;  // all of it, for people
};

struct ContextOptions {
  bool launch_blocking = false;  // every launch waits for its task and rethrows what it threw
  bool deterministic = false;    // see CachingAllocator
};

class NPU_API Context final : private TaskErrorSink {
 public:
  // `driver` is borrowed. `device` is the index programs use, `ordinal` the driver's.
  Context(Driver& driver, DeviceIndex device, DeviceIndex ordinal, const ContextOptions& options = {});
  ~Context();  // drains

  Driver& driver() const noexcept { return driver_; }
  DeviceIndex device() const noexcept { return device_; }
  DeviceIndex ordinal() const noexcept { return ordinal_; }
  CachingAllocator& allocator() const noexcept { return *allocator_; }
  bool launch_blocking() const noexcept { return options_.launch_blocking; }
  TaskErrorSink& error_sink() noexcept { return *this; }

  // Streams. The default stream has id 0 and is ordered with no other. Pool streams are immortal, made on first use,
  // handed out round robin: kPoolStreams for each priority. Priorities are clamped to the supported range.
  static constexpr int kPoolStreams = 32;
  Stream& default_stream() noexcept { return *default_stream_; }
  Stream& pool_stream(int priority = kLeastPriority);
  Stream& create_stream(int priority = kLeastPriority);
  void destroy_stream(Stream& stream);  // at once; queued work completes
  Stream* find_stream(StreamId id);     // null when it does not exist (any more)
  std::vector<Stream*> streams();
  // Where the work that is queued now ends, one point for each stream. Destroyed streams count until their work is done.
  std::vector<QueuePoint> queued_work();

  void synchronize();  // every stream; throws the first pending error
  bool synchronize_for(int64_t timeout_ns);

  // Errors of tasks, oldest first.
  std::optional<TaskError> take_error();  // removes it
  void throw_pending_error();             // takes and throws kTaskFailed, if there is one
  void rethrow_error_of(const Stream& stream,
                        uint64_t number);  // takes it and throws what the task threw, if it failed
  size_t pending_errors() const noexcept { return pending_errors_.load(std::memory_order_acquire); }

  // A lost device refuses launches and allocations, and every synchronising call throws, until reset.
  void mark_lost(const std::string& reason);
  void reset();
  void check_usable() const {
    if (lost_.load(std::memory_order_relaxed)) [[unlikely]]
      throw_lost();
  }

 private:
  void on_task_error(const TaskEvent& task, std::exception_ptr error) noexcept override;
  void record_error(const TaskEvent& task, std::exception_ptr error);
  [[noreturn]] void throw_lost() const;
  Stream& add_stream(StreamId id, int priority) REQUIRES(mutex_);
  void forget_finished_work() REQUIRES(mutex_);  // of destroyed streams

  Driver& driver_;
  const DeviceIndex device_;
  const DeviceIndex ordinal_;
  const ContextOptions options_;
  mutable Mutex mutex_;
  StreamId next_stream_id_ GUARDED_BY(mutex_) = 1;
  std::unordered_map<StreamId, std::unique_ptr<Stream>> streams_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Stream>> destroyed_streams_ GUARDED_BY(mutex_);  // threads may still hold them
  std::vector<QueuePoint> work_of_destroyed_ GUARDED_BY(mutex_);
  std::array<std::vector<Stream*>, kLeastPriority - kGreatestPriority + 1> pools_ GUARDED_BY(mutex_);
  std::array<unsigned, kLeastPriority - kGreatestPriority + 1> next_in_pool_ GUARDED_BY(mutex_) = {};
  std::deque<TaskError> errors_ GUARDED_BY(mutex_);
  std::string lost_reason_ GUARDED_BY(mutex_);
  std::atomic<size_t> pending_errors_{0};
  std::atomic<bool> lost_{false};
  std::unique_ptr<CachingAllocator> allocator_;
  Stream* default_stream_ = nullptr;
};

}  // namespace npu
