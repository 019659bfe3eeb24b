#include "aten/ops/op_times.h"

#include <unordered_map>
#include <utility>

#include "aten/ops/op_stats.h"
#include "runtime/observer.h"
#include "runtime/thread_annotations.h"

namespace npu::aten {
namespace {

class OpTimes final : public Observer {
 public:
  bool enable(bool enabled) {
    const MutexLock lock(switch_mutex_);
    if (enabled == enabled_) return enabled_;
    enabled ? attach_observer(*this) : detach_observer(*this);
    const MutexLock tasks_lock(mutex_);
    tasks_.clear();
    return std::exchange(enabled_, enabled);
  }

  // On the submitting thread, inside the operator.
  void on_submit(const TaskEvent& event) override {
    if (event.info->engines == kNoEngine) return;  // control tasks are no work
    OpCounters& op = detail::current_op != nullptr ? *detail::current_op : op_counters(event.info->name);
    const MutexLock lock(mutex_);
    tasks_[event.id()] = {&op, event.time_ns};
  }
  void on_start(const TaskEvent& event) override {
    const MutexLock lock(mutex_);
    const auto found = tasks_.find(event.id());
    if (found == tasks_.end()) return;
    Task& task = found->second;
    task.op->queued_ns.fetch_add(static_cast<uint64_t>(event.time_ns - std::exchange(task.since_ns, event.time_ns)),
                                 std::memory_order_relaxed);
  }
  void on_end(const TaskEvent& event, bool /*failed*/) override {
    const MutexLock lock(mutex_);
    const auto found = tasks_.find(event.id());
    if (found == tasks_.end()) return;
    const Task& task = found->second;
    task.op->run_ns.fetch_add(static_cast<uint64_t>(event.time_ns - task.since_ns), std::memory_order_relaxed);
    task.op->tasks.fetch_add(1, std::memory_order_relaxed);
    tasks_.erase(found);
  }
  void on_skip(const TaskEvent& event) override {
    const MutexLock lock(mutex_);
    tasks_.erase(event.id());
  }

 private:
  struct Task {
    OpCounters* op;
    int64_t since_ns;  // its submission, then its start
  };

  Mutex switch_mutex_;  // before the observers' registry; mutex_ comes after it
  bool enabled_ GUARDED_BY(switch_mutex_) = false;
  Mutex mutex_;
  std::unordered_map<TaskId, Task, TaskId::Hash> tasks_ GUARDED_BY(mutex_);
};

}  // namespace

bool record_op_times(bool enabled) {
  static OpTimes& times = *new OpTimes;  // leaked on purpose: tasks may still run while the process ends
  return times.enable(enabled);
}

}  // namespace npu::aten
