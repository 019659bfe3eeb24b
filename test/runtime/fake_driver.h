// A driver whose queues run nothing: tests say when tasks are submitted and when they complete.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "runtime/driver/driver.h"
#include "runtime/driver/sim/device_memory.h"

namespace npu {

class FakeQueue final : public Queue {
 public:
  void submit(uint64_t tasks = 1) { submitted_.fetch_add(tasks, std::memory_order_release); }
  // Only ever forward, by any thread.
  void complete_until(uint64_t number) {
    uint64_t completed = completed_.load(std::memory_order_relaxed);
    while (completed < number &&
           !completed_.compare_exchange_weak(completed, number, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  void complete_all() { complete_until(submitted()); }
};

class FakeDriver final : public Driver {
 public:
  explicit FakeDriver(size_t memory_bytes)
      : memory_(0, {.capacity_bytes = memory_bytes, .window_bytes = 0, .unified = false}) {}

  std::function<void(Queue&, uint64_t)> on_wait;  // completes the queue when not set

  char* engine_pointer(void* address) const { return static_cast<char*>(address) + memory_.window().engine_delta(); }

  const char* name() const override { return "fake"; }
  int device_count() const override { return 1; }
  DeviceProperties properties(DeviceIndex) const override { return {}; }
  EngineUsage engine_usage(DeviceIndex, Engine) const override { return {}; }
  MemoryInfo memory_info(DeviceIndex) const override { return memory_.info(); }
  void* allocate(DeviceIndex, size_t bytes) override { return memory_.allocate(bytes); }
  void free(DeviceIndex, void* address) override { memory_.free(address); }
  void* translate(const void* address) const override { return engine_pointer(const_cast<void*>(address)); }
  MemoryLocation locate(const void* address) const override { return memory_.locate(address); }
  bool wait(Queue& queue, uint64_t number, int64_t) override {
    if (on_wait)
      on_wait(queue, number);
    else
      static_cast<FakeQueue&>(queue).complete_until(number);
    return true;
  }

  void* allocate_host(size_t) override { unused(); }
  void free_host(void*) override { unused(); }
  Queue& create_queue(const QueueOptions&) override { unused(); }
  void destroy_queue(Queue&) override { unused(); }
  uint64_t submit(Queue&, const Submission&) override { unused(); }
  void submit_wait(Queue&, Queue&, uint64_t) override { unused(); }
  void submit_wait(Queue&, Signal&, uint64_t) override { unused(); }
  void notify(Queue&, uint64_t, Completion&) override { unused(); }
  bool cancel(Queue&, Completion&) override { unused(); }
  Signal& create_signal() override { unused(); }
  void destroy_signal(Signal&) override { unused(); }
  void write(Signal&, uint64_t) override { unused(); }
  std::string describe_waits() const override { return ""; }
  bool shutdown(int64_t) override { return true; }

 private:
  [[noreturn]] static void unused() { throw std::logic_error("a test called what the fake driver does not have"); }

  DeviceMemory memory_;
};

}  // namespace npu
