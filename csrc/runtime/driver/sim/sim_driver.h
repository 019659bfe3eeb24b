// The simulated NPU: devices whose memory is host memory and whose engines are host threads.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/config.h"
#include "runtime/driver/driver.h"
#include "runtime/driver/sim/device_memory.h"
#include "runtime/driver/sim/engines.h"
#include "runtime/driver/sim/executor.h"
#include "runtime/driver/sim/pinned_memory.h"
#include "runtime/driver/sim/sim_queue.h"
#include "runtime/scheduler.h"

namespace npu {

class NPU_API SimDriver final : public Driver {
 public:
  // Starts the workers; a device's memory is reserved when it is first used. `hang_report_s`: see Config.
  explicit SimDriver(const SimOptions& options, double hang_report_s = 0, const Clock& clock = Clock::host());
  ~SimDriver() override;  // waits for queued work

  const char* name() const override { return "sim"; }
  int device_count() const override { return options_.devices; }
  DeviceProperties properties(DeviceIndex device) const override;
  EngineUsage engine_usage(DeviceIndex device, Engine engine) const override;

  MemoryInfo memory_info(DeviceIndex device) const override;
  void* allocate(DeviceIndex device, size_t bytes) override;
  void free(DeviceIndex device, void* address) override;
  void* translate(const void* address) const override;
  MemoryLocation locate(const void* address) const override;
  void* allocate_host(size_t bytes) override;
  void free_host(void* address) override;

  Queue& create_queue(const QueueOptions& options) override;
  void destroy_queue(Queue& queue) override;
  uint64_t submit(Queue& queue, const Submission& submission) override;
  void submit_wait(Queue& queue, Queue& producer, uint64_t number) override;
  void submit_wait(Queue& queue, Signal& signal, uint64_t value) override;
  bool wait(Queue& queue, uint64_t number, int64_t deadline_ns) override;
  void notify(Queue& queue, uint64_t number, Completion& completion) override;
  bool cancel(Queue& queue, Completion& completion) override;

  Signal& create_signal() override;
  void destroy_signal(Signal& signal) override;
  void write(Signal& signal, uint64_t value) override;

  std::string describe_waits() const override;
  bool shutdown(int64_t deadline_ns) override;

 private:
  struct Device {
    explicit Device(const SimOptions& options);

    Engines engines;
    std::atomic<DeviceMemory*> memory{nullptr};  // owned; made on first use, after which it never changes
    Mutex memory_mutex;
    ~Device() { delete memory.load(); }
  };

  Device& device(DeviceIndex index) const;
  DeviceMemory& memory(DeviceIndex index) const;
  std::vector<SimQueue*> all_queues() const;

  const SimOptions options_;
  const size_t memory_bytes_;
  const Clock& clock_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Scheduler> scheduler_;
  PinnedMemory pinned_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<SimQueue>> queues_ GUARDED_BY(mutex_);  // never shrinks: see Queue
  std::vector<SimQueue*> retired_queues_ GUARDED_BY(mutex_);          // destroyed, perhaps not drained yet
  std::vector<std::unique_ptr<SimSignal>> signals_ GUARDED_BY(mutex_);
  std::vector<SimSignal*> free_signals_ GUARDED_BY(mutex_);
  Executor executor_;  // last: its threads stop before anything they use goes
};

}  // namespace npu
