#include "runtime/context.h"

#include <algorithm>
#include <sstream>

#include "runtime/clock.h"
#include "runtime/error_text.h"
#include "runtime/log.h"
#include "runtime/memory/caching_allocator.h"

namespace npu {
namespace {

class OperandText final : public OperandVisitor {
 public:
  void visit(const Operand& operand) override {
    out_ << (count_++ != 0 ? ", " : "") << operand.name;
    if (operand.dtype[0] != '\0') {
      out_ << ' ' << operand.dtype << '[';
      for (int i = 0; i < operand.rank; ++i) out_ << (i != 0 ? ", " : "") << operand.sizes[i];
      out_ << ']';
    } else if (operand.bytes != 0) {
      out_ << ' ' << operand.bytes << " bytes";
    }
    if (operand.address != nullptr) out_ << " at " << *operand.address;
    if (operand.access != Operand::Access::kRead) out_ << " (written)";
  }
  std::string text() const { return out_.str(); }

 private:
  std::ostringstream out_;
  int count_ = 0;
};

}  // namespace

std::string TaskError::describe() const {
  std::ostringstream out;
  out << task << " failed on npu:" << device << " (stream " << stream << ", task " << number << "): " << message;
  if (!operands.empty()) out << "\n  operands: " << operands;
  if (!traceback.empty())
    out << "\n  launched from:\n" << traceback;
  else
    out << "\n  Tasks run asynchronously, so the call that reports this is not the one that failed. NPU_TRACEBACK=1 "
           "shows "
           "where the task was launched; NPU_LAUNCH_BLOCKING=1 raises the error there.";
  return out.str();
}

Context::Context(Driver& driver, DeviceIndex device, DeviceIndex ordinal, const ContextOptions& options)
    : driver_(driver), device_(device), ordinal_(ordinal), options_(options) {
  allocator_ = std::make_unique<CachingAllocator>(*this, options.deterministic);
  MutexLock lock(mutex_);
  default_stream_ = &add_stream(0, kLeastPriority);
}

Context::~Context() {
  for (const QueuePoint& point : queued_work()) driver_.wait(*point.queue, point.number, Driver::kForever);
  for (Stream* stream : streams()) stream->destroy();
}

Stream& Context::add_stream(StreamId id, int priority) {
  return *streams_.emplace(id, std::make_unique<Stream>(*this, id, priority)).first->second;
}

Stream& Context::pool_stream(int priority) {
  const int level = std::clamp(priority, kGreatestPriority, kLeastPriority);
  const auto index = static_cast<size_t>(level - kGreatestPriority);
  MutexLock lock(mutex_);
  std::vector<Stream*>& pool = pools_[index];
  const unsigned place = next_in_pool_[index]++ % kPoolStreams;
  if (place == pool.size()) pool.push_back(&add_stream(next_stream_id_++, level));
  return *pool[place];
}

Stream& Context::create_stream(int priority) {
  MutexLock lock(mutex_);
  return add_stream(next_stream_id_++, std::clamp(priority, kGreatestPriority, kLeastPriority));
}

void Context::destroy_stream(Stream& stream) {
  MutexLock lock(mutex_);
  const auto found = streams_.find(stream.id());
  NPU_CHECK(found != streams_.end() && found->second.get() == &stream, kInvalidArgument, "stream ", stream.id(),
            " does not belong to npu:", device_);
  const bool pooled = std::any_of(pools_.begin(), pools_.end(), [&](const std::vector<Stream*>& pool) {
    return std::find(pool.begin(), pool.end(), &stream) != pool.end();
  });
  NPU_CHECK(&stream != default_stream_ && !pooled, kInvalidArgument, "stream ", stream.id(), " of npu:", device_,
            " is the default stream or a pool stream, which live as long as the device");
  forget_finished_work();
  work_of_destroyed_.push_back({&stream.queue(), stream.submitted()});
  stream.destroy();
  destroyed_streams_.push_back(std::move(found->second));
  streams_.erase(found);
}

Stream* Context::find_stream(StreamId id) {
  if (id == 0) return default_stream_;
  MutexLock lock(mutex_);
  const auto found = streams_.find(id);
  return found != streams_.end() ? found->second.get() : nullptr;
}

std::vector<Stream*> Context::streams() {
  MutexLock lock(mutex_);
  std::vector<Stream*> all;
  all.reserve(streams_.size());
  for (const auto& [id, stream] : streams_) all.push_back(stream.get());
  return all;
}

void Context::forget_finished_work() {
  std::erase_if(work_of_destroyed_, [](const QueuePoint& point) { return point.queue->completed() >= point.number; });
}

std::vector<QueuePoint> Context::queued_work() {
  MutexLock lock(mutex_);
  forget_finished_work();
  std::vector<QueuePoint> points = work_of_destroyed_;
  points.reserve(points.size() + streams_.size());
  for (const auto& [id, stream] : streams_) points.push_back({&stream->queue(), stream->submitted()});
  return points;
}

void Context::synchronize() {
  for (const QueuePoint& point : queued_work()) driver_.wait(*point.queue, point.number, Driver::kForever);
  throw_pending_error();
}

bool Context::synchronize_for(int64_t timeout_ns) {
  const int64_t deadline_ns = Clock::host().now_ns() + timeout_ns;
  for (const QueuePoint& point : queued_work())
    if (!driver_.wait(*point.queue, point.number, deadline_ns)) return false;
  throw_pending_error();
  return true;
}

void Context::on_task_error(const TaskEvent& task, std::exception_ptr error) noexcept {
  try {
    record_error(task, std::move(error));
  } catch (const std::exception& failure) {
    log(LogLevel::kError,
        detail::concat(task.info->name, " failed on npu:", device_, " and the error is lost: ", failure.what()));
  }
}

void Context::record_error(const TaskEvent& task, std::exception_ptr error) {
  OperandText operands;
  if (task.info->visit != nullptr) task.info->visit(const_cast<void*>(task.arguments), operands);
  TaskError record{device_,
                   task.stream,
                   task.number,
                   task.info->name,
                   error_text(error),
                   operands.text(),
                   task.traceback != nullptr ? *task.traceback : std::string(),
                   std::move(error)};
  MutexLock lock(mutex_);
  errors_.push_back(std::move(record));
  pending_errors_.store(errors_.size(), std::memory_order_release);
}

std::optional<TaskError> Context::take_error() {
  if (pending_errors() == 0) return std::nullopt;
  MutexLock lock(mutex_);
  if (errors_.empty()) return std::nullopt;
  TaskError error = std::move(errors_.front());
  errors_.pop_front();
  pending_errors_.store(errors_.size(), std::memory_order_release);
  return error;
}

void Context::throw_pending_error() {
  check_usable();
  if (const std::optional<TaskError> error = take_error()) NPU_THROW(kTaskFailed, error->describe());
}

void Context::rethrow_error_of(const Stream& stream, uint64_t number) {
  std::exception_ptr exception;
  {
    MutexLock lock(mutex_);
    const auto found = std::find_if(errors_.begin(), errors_.end(), [&](const TaskError& error) {
      return error.stream == stream.id() && error.number == number;
    });
    if (found == errors_.end()) return;
    exception = found->exception;
    errors_.erase(found);
    pending_errors_.store(errors_.size(), std::memory_order_release);
  }
  std::rethrow_exception(exception);
}

void Context::mark_lost(const std::string& reason) {
  MutexLock lock(mutex_);
  lost_reason_ = reason;
  lost_.store(true, std::memory_order_release);
}

void Context::reset() {
  MutexLock lock(mutex_);
  errors_.clear();
  pending_errors_.store(0, std::memory_order_release);
  lost_.store(false, std::memory_order_release);
  for (auto& [id, stream] : streams_) stream->resume();
}

void Context::throw_lost() const {
  MutexLock lock(mutex_);
  NPU_THROW(kDeviceLost, "npu:", device_, " is lost (", lost_reason_, "); reset the device before using it again");
}

}  // namespace npu
