// Sees everything that happens to tasks and memory, before any elision. With no observer attached a call site costs one
// relaxed load.
//
// Threads: callbacks come from whatever thread does the thing, concurrently. They must not launch, wait, allocate device
// memory or throw. `arguments` may be visited with TaskInfo::visit during the callback only.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/export.h"
#include "runtime/task.h"

namespace npu {

// Names a task for as long as the process lives.
struct TaskId {
  DeviceIndex device;
  StreamId stream;
  uint64_t number;

  bool operator==(const TaskId&) const = default;
  struct Hash {
    size_t operator()(const TaskId& id) const noexcept {
      return static_cast<size_t>(id.number * 0x9E3779B97F4A7C15) ^ static_cast<size_t>(id.stream) << 8 ^
             static_cast<size_t>(id.device);
    }
  };
};

struct TaskEvent {
  TaskId id() const noexcept { return {device, stream, number}; }

  DeviceIndex device;
  StreamId stream;
  uint64_t number;
  const TaskInfo* info;
  const void* arguments;
  int64_t time_ns;
  const std::string* traceback = nullptr;  // of the launch, with NPU_TRACEBACK=1
};

class NPU_API Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_submit(const TaskEvent&) {}
  virtual void on_start(const TaskEvent&) {}
  virtual void on_end(const TaskEvent&, bool /*failed*/) {}
  // Instead of on_start and on_end: an earlier task of the stream failed (failure mode "stop").
  virtual void on_skip(const TaskEvent&) {}
  virtual void on_record(DeviceIndex, StreamId, uint64_t /*event*/, uint64_t /*number*/) {}
  virtual void on_wait(DeviceIndex, StreamId, StreamId /*producer*/, uint64_t /*number*/) {}
  virtual void on_allocate(DeviceIndex, StreamId, const void* /*address*/, size_t /*bytes*/) {}
  virtual void on_free(DeviceIndex, StreamId, const void* /*address*/, size_t /*bytes*/) {}
};

// Attach and detach from any thread; the caller keeps ownership. detach returns once no callback of it is running.
NPU_API void attach_observer(Observer& observer);
NPU_API void detach_observer(Observer& observer);

namespace detail {
NPU_API extern std::atomic<bool> g_observed;
NPU_API void notify_observers(void (*call)(Observer&, const void*), const void* data);
}  // namespace detail

// observe([&](Observer& o) { o.on_start(event); });
template <class Call>
void observe(const Call& call) {
  if (detail::g_observed.load(std::memory_order_relaxed)) [[unlikely]]
    detail::notify_observers([](Observer& o, const void* data) { (*static_cast<const Call*>(data))(o); }, &call);
}

}  // namespace npu
