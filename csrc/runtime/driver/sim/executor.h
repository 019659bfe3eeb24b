// Executes the tasks of all simulated devices: worker threads, host threads that launch or wait, and one thread for each
// device's CPU engine.
//
// Lock order: a CompletionList's or an engine unit's mutex, then Executor::mutex_. No lock is held while a task runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/clock.h"
#include "runtime/driver/driver.h"
#include "runtime/driver/sim/sim_queue.h"
#include "runtime/driver/sim/tile_jobs.h"
#include "runtime/scheduler.h"
#include "runtime/thread_annotations.h"

namespace npu {

struct ExecutorOptions {
  int workers = 1;           // also how many threads may share the tiles of tasks
  double hang_report_s = 0;  // 0 = never
};

class Executor final : public TaskExecutor {
 public:
  Executor(const ExecutorOptions& options, Scheduler& scheduler, const Clock& clock, const Driver& driver);
  ~Executor();  // stops the threads; queued work must have completed or is abandoned

  // Queues a task. On a full queue it first helps to execute (HostWait).
  uint64_t submit(SimQueue& queue, const Submission& submission);
  // Blocks until `queue` completed `number` or the deadline. Helps meanwhile unless there is a deadline: a task cannot be
  // left half-way. Looks for signals between tasks and tiles, every 50 ms.
  bool wait(SimQueue& queue, uint64_t number, int64_t deadline_ns);
  void make_ready(SimQueue& queue);  // not idle, not running -> kReady, and wakes a worker if none is awake
  // Keeps other threads from launching: they stand still, as their stack may not survive the end of the process, for a
  // few seconds at most, then they get an error.
  void close();
  void stop();  // no task starts after this

  const void* translate(const TaskContext& context, const void* address) const override;
  void run_tiles(const TaskContext& context, int64_t tiles, TileFunction function, void* closure) override;

 private:
  enum class Role : uint8_t { kWorker, kHost, kHostFunctionThread };

  // Executes tasks of a queue whose state this thread has set to kRunning, until the queue is not this thread's any more:
  // it is empty, parked, handed over, has completed `until`, or the clock has reached `until_ns`.
  void run(SimQueue& queue, Role role, uint64_t until, int64_t until_ns = INT64_MAX);
  bool retire(SimQueue& queue);                  // false: a task came meanwhile, and the queue is still ours
  bool pass_wait(SimQueue& queue, Slot& slot);   // false: parked
  int64_t execute(SimQueue& queue, Slot& slot);  // when it ended; 0 = it was skipped
  void hand_over(SimQueue& queue, const TaskInfo& info);
  void activate(SimQueue& queue, const Submission& submission, uint64_t number);
  bool claim(SimQueue& queue);                          // makes an idle or ready queue with tasks this thread's
  void check_may_go_on(const std::string& what) const;  // after close()
  void help(SimQueue& queue, uint64_t number, int64_t until_ns);
  // Tiles go to as many threads as there are workers, hosts included: more would only take turns on the same cores.
  bool tiles_wait(TileJobs::Helper helper) const noexcept {
    return tile_jobs_.any(helper) && executing_.load() < options_.workers;
  }
  bool help_with_tile(TileJobs::Helper helper);
  bool sleep_until_completed(SimQueue& queue, uint64_t number, int64_t until_ns);

  void worker_main();
  SimQueue* pop_ready();
  SimQueue* linger(SimQueue* last);
  SimQueue* sleep();
  SimQueue* take_ready() REQUIRES(mutex_);
  void wake_worker();
  void start_host_function_thread(DeviceIndex device);
  void host_function_main(DeviceIndex device);

  Scheduler& scheduler_;
  const Clock& clock_;
  const Driver& driver_;
  const ExecutorOptions options_;
  TileJobs tile_jobs_;

  alignas(64) std::atomic<int> ready_{0};  // strands in the scheduler
  std::atomic<int> spinning_{0};           // workers that poll
  std::atomic<int> sleeping_{0};
  std::atomic<int> executing_{0};  // workers and waiting hosts with a strand or tiles in hand
  std::atomic<std::thread::id> closed_by_{};
  std::atomic<bool> closed_{false};  // implied by stopping_
  std::atomic<bool> stopping_{false};
  alignas(64) Mutex mutex_;  // the scheduler's ready strands, host_functions_
  ConditionVariable work_;
  ConditionVariable host_function_work_;
  std::array<std::deque<SimQueue*>, 64> host_functions_ GUARDED_BY(mutex_);
  std::array<std::thread, 64> host_function_threads_ GUARDED_BY(mutex_);
  std::vector<std::thread> workers_ GUARDED_BY(mutex_);
};

}  // namespace npu
