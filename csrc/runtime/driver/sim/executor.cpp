#include "runtime/driver/sim/executor.h"

#include <algorithm>
#include <chrono>
#include <semaphore>
#include <system_error>
#include <utility>

#include "runtime/blocking.h"
#include "runtime/driver/sim/engines.h"
#include "runtime/driver/sim/spin.h"
#include "runtime/fault_report.h"
#include "runtime/log.h"
#include "runtime/status.h"

namespace npu {
namespace {

constexpr int64_t kLingerNs = 50'000;    // how long a worker without work stays awake
constexpr int64_t kHostSpinNs = 20'000;  // how long a waiting host polls before it sleeps
constexpr int64_t kPollNs = 50'000'000;  // how often a sleeping host looks for signals
constexpr int kPausesBetweenLooks = 8;
constexpr std::chrono::seconds kLateThread{5};  // how long a thread that launches after close() stands still

// The task that this thread executes; tells a wait that would deadlock from one that may block.
thread_local const TaskInfo* t_task = nullptr;

// While it lives, this thread executes `task`.
class ExecutingScope {
 public:
  ExecutingScope(const TaskInfo& task, const TaskContext& context)
      : current_{context.device, context.stream, context.number, task.name},
        outer_task_(std::exchange(t_task, &task)),
        outer_current_(current_task()),
        environment_((task.flags & kUsesEnvironment) != 0) {
    set_current_task(&current_);
  }
  ~ExecutingScope() {
    set_current_task(outer_current_);
    t_task = outer_task_;
  }
  ExecutingScope(const ExecutingScope&) = delete;
  ExecutingScope& operator=(const ExecutingScope&) = delete;

 private:
  const CurrentTask current_;
  const TaskInfo* const outer_task_;
  const CurrentTask* const outer_current_;
  TaskEnvironmentScope environment_;
};

void pause_a_little() {
  for (int i = 0; i < kPausesBetweenLooks; ++i) cpu_pause();
}

template <class Main>
std::thread start_thread(Main main) {
  try {
    return std::thread(main);
  } catch (const std::system_error& error) {
    NPU_THROW(kLimit, "the machine gives this process no further thread (", error.what(),
              "); see ulimit -u and the container's limit of processes");
  }
}

bool is_host_function(const TaskInfo& info) { return (info.engines & kCpuEngine) != 0; }

class HostCompletion final : public Completion {
 public:
  void on_complete(int64_t) noexcept override { done_.release(); }
  bool wait_for(int64_t ns) { return done_.try_acquire_for(std::chrono::nanoseconds(ns)); }

 private:
  std::binary_semaphore done_{0};
};

}  // namespace

Executor::Executor(const ExecutorOptions& options, Scheduler& scheduler, const Clock& clock, const Driver& driver)
    : scheduler_(scheduler), clock_(clock), driver_(driver), options_(options) {
  try {
    MutexLock lock(mutex_);
    for (int i = 0; i < options.workers; ++i) workers_.push_back(start_thread([this] { worker_main(); }));
  } catch (...) {
    stop();
    throw;
  }
}

Executor::~Executor() { stop(); }

void Executor::close() {
  closed_by_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  closed_.store(true, std::memory_order_release);
}

void Executor::check_may_go_on(const std::string& what) const {
  if (closed_by_.load(std::memory_order_relaxed) != std::this_thread::get_id()) {
    // At exit only daemon threads are left. An interpreter that finalises ends the threads that come back to it, and the
    // whole process with them if they have C++ frames; those that stand still it leaves alone.
    const HostWait host_wait;
    std::this_thread::sleep_for(kLateThread);
  } else if (!stopping_.load(std::memory_order_relaxed)) {
    return;
  }
  NPU_THROW(kInvalidState, what, ": the runtime has shut down (the process is exiting)");
}

void Executor::stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    closed_.store(true, std::memory_order_release);
    stopping_.store(true, std::memory_order_seq_cst);
    threads.swap(workers_);
    for (std::thread& thread : host_function_threads_)
      if (thread.joinable()) threads.push_back(std::move(thread));
  }
  work_.notify_all();
  host_function_work_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

uint64_t Executor::submit(SimQueue& queue, const Submission& submission) {
  if (closed_.load(std::memory_order_acquire)) [[unlikely]]
    check_may_go_on(detail::concat("cannot launch ", submission.info.name));
  if (is_host_function(submission.info)) [[unlikely]]
    start_host_function_thread(queue.device());
  uint64_t number = 0;
  Slot* slot = queue.ring().begin(submission, number);
  while (slot == nullptr) {
    // Room for more than one task, so that a fast producer does not come back at once.
    const uint64_t submitted = queue.submitted();
    const uint64_t half_free = submitted - std::min<uint64_t>(submitted, queue.ring().capacity() / 2);
    const WaitCause cause("full queue");
    wait(queue, std::min(submitted, std::max(queue.completed() + 1, half_free)), Driver::kForever);
    slot = queue.ring().begin(submission, number);
  }
  observe([&](Observer& observer) {
    observer.on_submit({queue.context.device, queue.stream(), number, &submission.info, slot->arguments(),
                        clock_.now_ns(), slot->traceback});
  });
  queue.ring().publish(*slot, number);
  activate(queue, submission, number);
  return number;
}

// Pairs with retire() and linger(): see sim_queue.h.
void Executor::activate(SimQueue& queue, const Submission& submission, uint64_t number) {
  const StrandState state = queue.state();  // sequentially consistent
  if (state != StrandState::kIdle && state != StrandState::kLingering) return;
  const bool watched = state == StrandState::kLingering;
  if (t_task == nullptr && scheduler_.run_inline(submission.info, submission.cost_ns, watched)) {
    if (queue.change_state(state, StrandState::kRunning)) return run(queue, Role::kHost, number);
  } else if (!watched && queue.change_state(StrandState::kIdle, StrandState::kParked)) {
    make_ready(queue);
  }
}

void Executor::make_ready(SimQueue& queue) {
  {
    MutexLock lock(mutex_);
    queue.set_state(StrandState::kReady);
    scheduler_.push(queue);
    ready_.fetch_add(1, std::memory_order_seq_cst);
  }
  wake_worker();
}

void Executor::wake_worker() {
  if (spinning_.load(std::memory_order_seq_cst) > 0 || sleeping_.load(std::memory_order_seq_cst) == 0) return;
  {
    MutexLock lock(mutex_);
  }  // whoever looked for work before there was any sleeps by now, and hears the call
  work_.notify_one();
}

void Executor::run(SimQueue& queue, Role role, uint64_t until, int64_t until_ns) {
  for (unsigned tasks = 0;; ++tasks) {
    Slot* slot = queue.ring().front();
    if (slot == nullptr) {
      if (retire(queue)) return;
      continue;
    }
    if (queue.ring().next_number() > until || (role == Role::kWorker && scheduler_.should_yield(queue, tasks))) {
      queue.engines().release(queue);
      return make_ready(queue);
    }
    const TaskInfo& info = *slot->info;
    if (info.run == nullptr) {
      if (!pass_wait(queue, *slot)) return;
      continue;
    }
    const bool allowed = role == Role::kHostFunctionThread ? is_host_function(info)
                         : role == Role::kHost             ? (info.flags & kInlineable) != 0 && !is_host_function(info)
                                                           : !is_host_function(info);
    if (!allowed) return hand_over(queue, info);
    if (!queue.engines().acquire(queue, info.engines)) return;
    if (execute(queue, *slot) < until_ns) continue;
    queue.engines().release(queue);
    return make_ready(queue);
  }
}

bool Executor::retire(SimQueue& queue) {
  queue.engines().release(queue);
  queue.set_state(StrandState::kIdle);
  return !(queue.has_front() && queue.change_state(StrandState::kIdle, StrandState::kRunning));
}

bool Executor::pass_wait(SimQueue& queue, Slot& slot) {
  queue.engines().release(queue);
  if (slot.info == &kQueueWait) {
    const auto& wait = *static_cast<const QueueWait*>(slot.arguments());
    if (wait.producer->completed() < wait.number && queue.park_on(*wait.producer, wait.number)) return false;
  } else {
    const auto& wait = *static_cast<const SignalWait*>(slot.arguments());
    if (wait.signal->value() < wait.value && queue.park_on(*wait.signal, wait.value)) return false;
    wait.signal->pending_waits.fetch_sub(1, std::memory_order_release);
  }
  queue.complete(slot, clock_);
  return true;
}

void Executor::hand_over(SimQueue& queue, const TaskInfo& info) {
  queue.engines().release(queue);
  if (!is_host_function(info)) return make_ready(queue);
  queue.set_waiting_for_host_function();
  {
    MutexLock lock(mutex_);
    queue.set_state(StrandState::kParked);
    host_functions_[static_cast<size_t>(queue.device())].push_back(&queue);
  }
  host_function_work_.notify_all();
}

int64_t Executor::execute(SimQueue& queue, Slot& slot) {
  const TaskInfo& info = *slot.info;
  const bool is_control = info.engines == kNoEngine;  // others may wait for what it writes
  int64_t end = 0;
  TaskContext& context = queue.context;
  context.number = queue.ring().next_number();
  TaskEvent event{context.device,   context.stream,  context.number, &info,
                  slot.arguments(), clock_.now_ns(), slot.traceback};
  if (queue.skipping() && !is_control) {
    observe([&](Observer& observer) { observer.on_skip(event); });
  } else {
    queue.set_current(&info);
    observe([&](Observer& observer) { observer.on_start(event); });
    std::exception_ptr error;
    try {
      ExecutingScope executing(info, context);
      info.run(context, slot.arguments());
    } catch (...) {  // whatever a task throws belongs to its stream
      error = std::current_exception();
    }
    end = clock_.now_ns();
    queue.engines().add_busy(info.engines, end - std::exchange(event.time_ns, end));
    if (error && queue.stops_on_error()) queue.set_skipping(true);
    if (error && queue.errors() != nullptr) queue.errors()->on_task_error(event, error);
    observe([&](Observer& observer) { observer.on_end(event, error != nullptr); });
  }
  queue.complete(slot, clock_);
  return end;
}

bool Executor::claim(SimQueue& queue) {
  const StrandState state = queue.state();
  if (state == StrandState::kReady) {
    MutexLock lock(mutex_);
    if (!scheduler_.remove(queue)) return false;
    ready_.fetch_sub(1, std::memory_order_seq_cst);
    queue.set_state(StrandState::kRunning);
    return true;
  }
  return (state == StrandState::kIdle || state == StrandState::kLingering) && queue.has_front() &&
         queue.change_state(state, StrandState::kRunning);
}

bool Executor::wait(SimQueue& queue, uint64_t number, int64_t deadline_ns) {
  notify_host_wait();
  if (queue.completed() >= number) return true;
  NPU_CHECK(t_task == nullptr, kInvalidState, "a task (", t_task->name,
            ") must not wait for a stream: it would hold the ", "worker that the stream needs");
  HostWait host_wait;
  const auto hang_report_ns = static_cast<int64_t>(options_.hang_report_s * 1e9);
  bool reported = hang_report_ns == 0;
  uint64_t completed = queue.completed();
  const int64_t start = clock_.now_ns();
  int64_t progress = start;  // when the queue was last seen to complete something
  for (int64_t now = start; now < deadline_ns; now = clock_.now_ns()) {
    const int64_t until_ns = std::min(now + kPollNs, deadline_ns);
    if (deadline_ns == Driver::kForever) help(queue, number, until_ns);
    if (sleep_until_completed(queue, number, until_ns)) return true;
    host_wait.poll();
    if (stopping_.load(std::memory_order_relaxed)) check_may_go_on("cannot wait for a stream");
    const uint64_t before = std::exchange(completed, queue.completed());
    if (completed != before) progress = now;
    if (!reported && now - progress > hang_report_ns) {
      reported = true;
      log(LogLevel::kWarning, detail::concat("a host thread has waited ", static_cast<double>(now - start) / 1e9,
                                             " s for npu:", queue.context.device, " stream ", queue.stream(), " task ",
                                             number, ". What is not finished:\n", driver_.describe_waits()));
    }
  }
  return queue.completed() >= number;
}

// Returns at the latest when there has been nothing to do for a while.
void Executor::help(SimQueue& queue, uint64_t number, int64_t until_ns) {
  if (claim(queue)) {
    executing_.fetch_add(1);
    run(queue, Role::kHost, number, until_ns);
    executing_.fetch_sub(1);
  }
  int64_t now = clock_.now_ns();
  for (int64_t spin_until = now + kHostSpinNs; queue.completed() < number; now = clock_.now_ns()) {
    if (now >= std::min(spin_until, until_ns)) break;
    if (help_with_tile(TileJobs::Helper::kHost))
      spin_until = clock_.now_ns() + kHostSpinNs;
    else
      pause_a_little();
  }
  if (tiles_wait(TileJobs::Helper::kWorker)) wake_worker();  // to take this thread's place
}

bool Executor::help_with_tile(TileJobs::Helper helper) {
  if (!tiles_wait(helper)) return false;
  bool worked = false;
  if (executing_.fetch_add(1) < options_.workers) {
    if (tiles_wait(TileJobs::Helper::kWorker)) wake_worker();  // each helper calls the next one
    worked = tile_jobs_.help(helper);
  }
  executing_.fetch_sub(1);
  return worked;
}

bool Executor::sleep_until_completed(SimQueue& queue, uint64_t number, int64_t until_ns) {
  HostCompletion completion;
  if (!queue.completions().add(completion, number)) return true;
  const int64_t now = clock_.now_ns();
  if (now < until_ns) completion.wait_for(until_ns - now);
  queue.completions().remove(completion);
  return queue.completed() >= number;
}

void Executor::worker_main() {
  SimQueue* last = nullptr;
  while (!stopping_.load(std::memory_order_relaxed)) {
    SimQueue* queue = pop_ready();
    if (queue == nullptr && help_with_tile(TileJobs::Helper::kWorker))
      continue;  // one at a time: a stream's own tasks come first
    if (queue == nullptr) queue = linger(last);
    if (queue == nullptr) queue = sleep();
    if (queue == nullptr) continue;
    executing_.fetch_add(1);
    run(*queue, Role::kWorker, UINT64_MAX);
    executing_.fetch_sub(1);
    last = queue;
  }
}

SimQueue* Executor::take_ready() {
  Strand* strand = scheduler_.pop();
  if (strand == nullptr) return nullptr;
  ready_.fetch_sub(1, std::memory_order_seq_cst);
  auto* queue = static_cast<SimQueue*>(strand);
  queue->set_state(StrandState::kRunning);
  return queue;
}

SimQueue* Executor::pop_ready() {
  if (ready_.load(std::memory_order_seq_cst) == 0) return nullptr;
  SimQueue* queue;
  {
    MutexLock lock(mutex_);
    queue = take_ready();
  }
  if (ready_.load(std::memory_order_relaxed) > 0) wake_worker();
  return queue;
}

// Polls the stream it served last, the ready strands and the tile jobs. One worker at a time: on a small machine a second
// one would take the cycles of the thread that launches.
SimQueue* Executor::linger(SimQueue* last) {
  if (spinning_.fetch_add(1, std::memory_order_seq_cst) > 0) {
    spinning_.fetch_sub(1, std::memory_order_seq_cst);
    return nullptr;
  }
  SimQueue* found = nullptr;
  Spin spin;
  for (const int64_t until = clock_.now_ns() + kLingerNs; found == nullptr;) {
    if (last != nullptr) {
      const StrandState state = last->state();
      const bool free = state == StrandState::kIdle || state == StrandState::kLingering;
      if (free && last->has_front() && last->change_state(state, StrandState::kRunning)) {
        found = last;
        break;
      }
      if (state == StrandState::kIdle) last->change_state(StrandState::kIdle, StrandState::kLingering);
    }
    found = pop_ready();
    if (found != nullptr || stopping_.load(std::memory_order_relaxed)) break;
    // Tiles may take long: worker_main takes them when nobody relies on this thread to look any more.
    if (tiles_wait(TileJobs::Helper::kWorker) || clock_.now_ns() >= until) break;
    spin.pause_or_yield();
  }
  spinning_.fetch_sub(1, std::memory_order_seq_cst);
  if (ready_.load(std::memory_order_seq_cst) > 0 || tiles_wait(TileJobs::Helper::kWorker))
    wake_worker();  // who has work for others relied on us
  if (last == nullptr || found == last) return found;

  // Nobody polls `last` from here on; a task published meanwhile must not be left behind (see sim_queue.h).
  if (last->change_state(StrandState::kLingering, StrandState::kIdle)) {
    if (last->has_front() && last->change_state(StrandState::kIdle, StrandState::kRunning)) {
      if (found == nullptr) return last;
      make_ready(*last);
    }
  }
  return found;
}

SimQueue* Executor::sleep() {
  MutexLock lock(mutex_);
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  while (ready_.load(std::memory_order_seq_cst) == 0 && !tiles_wait(TileJobs::Helper::kWorker) &&
         !stopping_.load(std::memory_order_seq_cst))
    work_.wait(mutex_);
  sleeping_.fetch_sub(1, std::memory_order_seq_cst);
  return stopping_.load(std::memory_order_relaxed) ? nullptr : take_ready();
}

// At submission, where a machine that refuses another thread is the caller's error.
void Executor::start_host_function_thread(DeviceIndex device) {
  MutexLock lock(mutex_);
  std::thread& thread = host_function_threads_[static_cast<size_t>(device)];
  if (!thread.joinable() && !stopping_.load(std::memory_order_relaxed))
    thread = start_thread([this, device] { host_function_main(device); });
}

void Executor::host_function_main(DeviceIndex device) {
  for (;;) {
    SimQueue* queue;
    {
      MutexLock lock(mutex_);
      std::deque<SimQueue*>& waiting = host_functions_[static_cast<size_t>(device)];
      while (waiting.empty() && !stopping_.load(std::memory_order_seq_cst)) host_function_work_.wait(mutex_);
      if (stopping_.load(std::memory_order_relaxed)) return;
      queue = waiting.front();
      waiting.pop_front();
      queue->set_state(StrandState::kRunning);
    }
    run(*queue, Role::kHostFunctionThread, UINT64_MAX);
  }
}

const void* Executor::translate(const TaskContext&, const void* address) const {
  return address == nullptr ? nullptr : driver_.translate(address);
}

void Executor::run_tiles(const TaskContext& context, int64_t tiles, TileFunction function, void* closure) {
  struct Tile {
    TileFunction function;
    void* closure;
    const TaskInfo* task;
    const TaskContext* context;
  } tile{function, closure, t_task, &context};
  const TileFunction run_one = [](void* data, int64_t index) {
    const Tile& t = *static_cast<const Tile*>(data);
    if (t.task == t_task) return t.function(t.closure, index);
    ExecutingScope executing(*t.task, *t.context);  // a helper becomes part of the task
    t.function(t.closure, index);
  };
  const bool hosts_may_help = (t_task->flags & kInlineable) != 0;
  tile_jobs_.run(tiles, run_one, &tile, hosts_may_help, [this] {
    if (tiles_wait(TileJobs::Helper::kWorker)) wake_worker();
  });
}

}  // namespace npu
