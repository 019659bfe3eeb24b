// A point in a stream: "all tasks queued so far". Recording never needs a slot in the queue and never blocks.
//
// Threads: any method from any thread; record overwrites the earlier record for later calls only.
// A never recorded event counts as complete.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/driver/driver.h"
#include "runtime/stream.h"
#include "runtime/thread_annotations.h"

namespace npu {

class NPU_API Event {
 public:
  explicit Event(bool timing = true);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(Stream& stream);
  bool query() const;  // true when the recorded work is done
  void synchronize();  // blocks; throws the device's first pending error
  // Milliseconds from the completion of `start` to that of this event; kInvalidArgument unless both have timing on, were
  // recorded on the same device and are complete.
  double elapsed_ms(const Event& start) const;

  bool timing() const noexcept { return timing_; }
  uint64_t id() const noexcept { return id_; }
  Context* context() const;  // of the latest record; null before

  // What a wait has to wait for. Queue is null when there is nothing to wait for.
  struct Point {
    Queue* queue = nullptr;
    uint64_t number = 0;
    StreamId stream = 0;
    Context* context = nullptr;
  };
  Point point() const;

 private:
  struct Timestamp;
  int64_t completion_ns() const;  // throws kInvalidArgument unless timed, recorded and complete

  const bool timing_;
  const uint64_t id_;
  mutable Mutex mutex_;
  Point point_ GUARDED_BY(mutex_);
  std::shared_ptr<Timestamp> timestamp_ GUARDED_BY(mutex_);
};

}  // namespace npu
