#include "runtime/stream.h"

#include <memory>
#include <string>

#include "runtime/blocking.h"
#include "runtime/clock.h"
#include "runtime/context.h"
#include "runtime/event.h"
#include "runtime/traceback.h"

namespace npu {
namespace {

struct HostFunction {
  void (*function)(void* data);
  void* data;
};

void run_host_function(const TaskContext&, const void* arguments) {
  const auto& call = *static_cast<const HostFunction*>(arguments);
  call.function(call.data);
}

constexpr TaskInfo kHostFunction{.name = "host_function", .run = run_host_function, .engines = kCpuEngine, .flags = 0};

struct ValueWrite {
  Driver* driver;
  Signal* signal;
  uint64_t value;
};

void run_value_write(const TaskContext&, const void* arguments) {
  const auto& write = *static_cast<const ValueWrite*>(arguments);
  write.driver->write(*write.signal, write.value);
}

constexpr TaskInfo kValueWrite{.name = "write_value", .run = run_value_write, .engines = kNoEngine};
constexpr uint32_t kValueWriteNs = 100;

Queue* make_queue(Context& context, StreamId id, int priority) {
  return &context.driver().create_queue({context.ordinal(), context.device(), id, priority, &context.error_sink()});
}

}  // namespace

Stream::Stream(Context& context, StreamId id, int priority)
    : context_(context), id_(id), priority_(priority), queue_(make_queue(context, id, priority)) {}

void Stream::destroy() { context_.driver().destroy_queue(*queue_.exchange(nullptr, std::memory_order_relaxed)); }

void Stream::throw_destroyed() const {
  NPU_THROW(kInvalidArgument, "stream ", id_, " of npu:", device(), " was destroyed; use another stream");
}

DeviceIndex Stream::device() const noexcept { return context_.device(); }

uint64_t Stream::launch_bytes(const Submission& submission) {
  context_.check_usable();
  Queue& queue = this->queue();
  uint64_t number;
  if (const TracebackSource source = traceback_source()) [[unlikely]] {
    Submission traced = submission;
    auto text = std::make_unique<std::string>(source());
    traced.traceback = text.get();
    number = context_.driver().submit(queue, traced);
    [[maybe_unused]] const std::string* const task_owned = text.release();
  } else {
    number = context_.driver().submit(queue, submission);
  }
  if (context_.launch_blocking()) [[unlikely]] {
    const WaitCause cause("launch blocking");
    context_.driver().wait(queue, number, Driver::kForever);
    context_.rethrow_error_of(*this, number);
  }
  return number;
}

void Stream::launch_host_function(void (*function)(void* data), void* data) {
  launch(kHostFunction, HostFunction{function, data});
}

void Stream::wait(const Event& event) {
  const Event::Point point = event.point();
  if (point.queue == nullptr) return;
  observe([&](Observer& observer) { observer.on_wait(device(), id_, point.stream, point.number); });
  if (point.queue != &queue()) context_.driver().submit_wait(queue(), *point.queue, point.number);
}

void Stream::wait_value(Signal& signal, uint64_t value) { context_.driver().submit_wait(queue(), signal, value); }

void Stream::write_value(Signal& signal, uint64_t value) {
  launch(kValueWrite, ValueWrite{&context_.driver(), &signal, value}, kValueWriteNs);
}

void Stream::synchronize() {
  context_.driver().wait(queue(), submitted(), Driver::kForever);
  context_.throw_pending_error();
}

bool Stream::synchronize_for(int64_t timeout_ns) {
  const int64_t deadline_ns = Clock::host().now_ns() + timeout_ns;
  if (!context_.driver().wait(queue(), submitted(), deadline_ns)) return false;
  context_.throw_pending_error();
  return true;
}

}  // namespace npu
