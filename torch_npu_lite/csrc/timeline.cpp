#include <pybind11/stl.h>

#include <unordered_map>

#include "bindings.h"
#include "runtime/observer.h"
#include "runtime/thread_annotations.h"

namespace npu::python {
namespace py = pybind11;
namespace {

struct RecordedTask {
  std::string name;
  DeviceIndex device;
  StreamId stream;
  uint64_t number;
  std::string engine;  // "cube", "cube+vector"; empty for control tasks
  int64_t submit_ns = 0;
  int64_t start_ns = 0;  // 0 = has not started
  int64_t end_ns = 0;    // 0 = has not ended
  bool failed = false;
};

std::string engine_names(EngineMask engines) {
  std::string names;
  for (int i = 0; i < kEngineCount; ++i) {
    const auto engine = static_cast<Engine>(i);
    if ((engines & engine_mask(engine)) != 0) names += (names.empty() ? "" : "+") + std::string(to_string(engine));
  }
  return names;
}

// Keeps when each task was submitted, started and ended, from construction to stop().
class Recorder final : public Observer {
 public:
  Recorder() { attach_observer(*this); }
  ~Recorder() override { stop(); }

  void stop() {
    if (!std::exchange(attached_, false)) return;
    detach_observer(*this);
  }

  std::vector<RecordedTask> tasks() const {
    const MutexLock lock(mutex_);
    return tasks_;
  }

  void on_submit(const TaskEvent& event) override {
    const MutexLock lock(mutex_);
    entry(event).submit_ns = event.time_ns;
  }
  void on_start(const TaskEvent& event) override {
    const MutexLock lock(mutex_);
    entry(event).start_ns = event.time_ns;
  }
  void on_end(const TaskEvent& event, bool failed) override {
    const MutexLock lock(mutex_);
    RecordedTask& task = entry(event);
    task.end_ns = event.time_ns;
    task.failed = failed;
  }

 private:
  RecordedTask& entry(const TaskEvent& event) REQUIRES(mutex_) {
    const auto [found, is_new] = index_.try_emplace(event.id(), tasks_.size());
    if (is_new)
      tasks_.push_back({event.info->name, event.device, event.stream, event.number, engine_names(event.info->engines)});
    return tasks_[found->second];
  }

  mutable Mutex mutex_;
  std::vector<RecordedTask> tasks_ GUARDED_BY(mutex_);
  std::unordered_map<TaskId, size_t, TaskId::Hash> index_ GUARDED_BY(mutex_);
  bool attached_ = true;
};

}  // namespace

void bind_timeline(py::module_& m) {
  py::class_<RecordedTask>(m, "RecordedTask")
      .def_readonly("name", &RecordedTask::name)
      .def_readonly("device", &RecordedTask::device)
      .def_readonly("stream", &RecordedTask::stream)
      .def_readonly("number", &RecordedTask::number)
      .def_readonly("engine", &RecordedTask::engine)
      .def_readonly("submit_ns", &RecordedTask::submit_ns)
      .def_readonly("start_ns", &RecordedTask::start_ns)
      .def_readonly("end_ns", &RecordedTask::end_ns)
      .def_readonly("failed", &RecordedTask::failed);

  // Detaching waits for callbacks that are running; those never need the GIL.
  py::class_<Recorder>(m, "Recorder").def(py::init<>()).def("stop", &Recorder::stop).def("tasks", &Recorder::tasks);
}

}  // namespace npu::python
