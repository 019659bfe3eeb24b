#include "runtime/event.h"

#include "runtime/clock.h"
#include "runtime/context.h"
#include "runtime/observer.h"

namespace npu {
namespace {
std::atomic<uint64_t> g_next_event_id{1};
constexpr int64_t kUnused = -2;   // never handed to the driver
constexpr int64_t kPending = -1;  // the driver has not called yet
}  // namespace

// When the recorded work was done. Shared by the event and the driver, which may still have to fill it in after the event
// was recorded again or destroyed.
struct Event::Timestamp final : Completion {
  std::atomic<int64_t> time_ns{kUnused};
  std::shared_ptr<Timestamp> self;  // keeps it alive until the driver has called

  void on_complete(int64_t now_ns) noexcept override {
    const std::shared_ptr<Timestamp> alive =
        std::move(self);  // before the store, after which an event may use it again
    time_ns.store(now_ns, std::memory_order_release);
  }
};

Event::Event(bool timing)
    : timing_(timing),
      id_(g_next_event_id.fetch_add(1, std::memory_order_relaxed)),
      timestamp_(timing ? std::make_shared<Timestamp>() : nullptr) {}

Event::~Event() = default;

void Event::record(Stream& stream) {
  Queue& queue = stream.queue();
  MutexLock lock(mutex_);
  point_ = {&queue, queue.submitted(), stream.id(), &stream.context()};
  const uint64_t number = point_.number;
  observe([&](Observer& observer) { observer.on_record(stream.device(), stream.id(), id_, number); });
  if (!timing_) return;
  // One that the driver still holds is not free for this record.
  if (timestamp_->time_ns.load(std::memory_order_acquire) == kPending) timestamp_ = std::make_shared<Timestamp>();
  timestamp_->time_ns.store(kPending, std::memory_order_relaxed);
  timestamp_->self = timestamp_;
  stream.context().driver().notify(queue, point_.number, *timestamp_);
}

Event::Point Event::point() const {
  MutexLock lock(mutex_);
  return point_;
}

Context* Event::context() const { return point().context; }

bool Event::query() const {
  const Point recorded = point();
  return recorded.queue == nullptr || recorded.queue->completed() >= recorded.number;
}

void Event::synchronize() {
  const Point recorded = point();
  if (recorded.queue == nullptr) return;
  recorded.context->driver().wait(*recorded.queue, recorded.number, Driver::kForever);
  recorded.context->throw_pending_error();
}

int64_t Event::completion_ns() const {
  MutexLock lock(mutex_);
  NPU_CHECK(timing_, kInvalidArgument, "elapsed time needs events with timing: create both with enable_timing=True");
  NPU_CHECK(point_.queue != nullptr, kInvalidArgument, "elapsed time needs recorded events: call record() on both");
  NPU_CHECK(point_.queue->completed() >= point_.number, kInvalidArgument,
            "elapsed time needs completed events: synchronize the later one first");
  // The counter moves just before the driver calls on_complete. Whoever gets there first sets the time.
  Driver& driver = point_.context->driver();
  if (timestamp_->time_ns.load(std::memory_order_acquire) == kPending && driver.cancel(*point_.queue, *timestamp_))
    timestamp_->on_complete(Clock::host().now_ns());
  return timestamp_->time_ns.load(std::memory_order_acquire);
}

double Event::elapsed_ms(const Event& start) const {
  const int64_t begin = start.completion_ns();
  const int64_t end = completion_ns();
  const Context* first = start.context();
  const Context* last = context();
  NPU_CHECK(first == last, kInvalidArgument,
            "elapsed time needs two events of one device, not of npu:", first->device(), " and npu:", last->device());
  return static_cast<double>(end - begin) * 1e-6;
}

}  // namespace npu
