#include "runtime/driver/sim/sim_driver.h"

#include <algorithm>
#include <thread>

#include "runtime/machine_memory.h"
#include "runtime/status.h"

namespace npu {
namespace {

// Nominal: what a program that prints properties sees. The simulation is as fast as the host.
constexpr int kClockMhz = 1000;

int worker_count(const SimOptions& options) {
  return options.workers > 0 ? options.workers : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::array<int, kEngineCount> engine_capacities(const SimOptions& options) {
  std::array<int, kEngineCount> capacities{};
  capacities[static_cast<int>(Engine::kCube)] = options.cube_cores;
  capacities[static_cast<int>(Engine::kVector)] = options.vector_cores;
  capacities[static_cast<int>(Engine::kDmaIn)] = options.dma_in_engines;
  capacities[static_cast<int>(Engine::kDmaOut)] = options.dma_out_engines;
  capacities[static_cast<int>(Engine::kCpu)] = 1;
  capacities[static_cast<int>(Engine::kRng)] = options.vector_cores;
  return capacities;
}

SimQueue& sim(Queue& queue) { return static_cast<SimQueue&>(queue); }
SimSignal& sim(Signal& signal) { return static_cast<SimSignal&>(signal); }

}  // namespace

SimDriver::Device::Device(const SimOptions& options) : engines(engine_capacities(options)) {}

SimDriver::SimDriver(const SimOptions& options, double hang_report_s, const Clock& clock)
    : options_(options),
      memory_bytes_(options.memory_bytes != 0 ? options.memory_bytes : default_device_memory()),
      clock_(clock),
      scheduler_(make_priority_scheduler(clock, options.inline_tasks)),
      executor_({worker_count(options), hang_report_s}, *scheduler_, clock, *this) {
  for (int i = 0; i < options.devices; ++i) devices_.push_back(std::make_unique<Device>(options));
}

SimDriver::~SimDriver() { shutdown(kForever); }

SimDriver::Device& SimDriver::device(DeviceIndex index) const {
  NPU_CHECK(index >= 0 && index < options_.devices, kInvalidDevice, "there is no device ", index, "; this machine has ",
            options_.devices);
  return *devices_[static_cast<size_t>(index)];
}

DeviceMemory& SimDriver::memory(DeviceIndex index) const {
  Device& owner = device(index);
  if (DeviceMemory* memory = owner.memory.load(std::memory_order_acquire)) return *memory;
  MutexLock lock(owner.memory_mutex);
  if (owner.memory.load(std::memory_order_relaxed) == nullptr)
    owner.memory.store(new DeviceMemory(index, {memory_bytes_, options_.window_bytes, options_.unified_memory}),
                       std::memory_order_release);
  return *owner.memory.load(std::memory_order_relaxed);
}

DeviceProperties SimDriver::properties(DeviceIndex index) const {
  device(index);
  DeviceProperties properties;
  properties.name = "Simulated NPU";
  properties.memory_bytes = memory_bytes_;
  properties.cube_cores = options_.cube_cores;
  properties.vector_cores = options_.vector_cores;
  properties.dma_in_engines = options_.dma_in_engines;
  properties.dma_out_engines = options_.dma_out_engines;
  properties.clock_mhz = kClockMhz;
  return properties;
}

EngineUsage SimDriver::engine_usage(DeviceIndex index, Engine engine) const {
  return device(index).engines.usage(engine);
}

MemoryInfo SimDriver::memory_info(DeviceIndex index) const { return memory(index).info(); }
void* SimDriver::allocate(DeviceIndex index, size_t bytes) { return memory(index).allocate(bytes); }
void SimDriver::free(DeviceIndex index, void* address) { memory(index).free(address); }
void* SimDriver::allocate_host(size_t bytes) { return pinned_.allocate(bytes); }
void SimDriver::free_host(void* address) { pinned_.free(address); }

MemoryLocation SimDriver::locate(const void* address) const {
  for (const std::unique_ptr<Device>& owner : devices_) {
    const DeviceMemory* memory = owner->memory.load(std::memory_order_acquire);
    if (memory != nullptr && memory->window().contains(address)) return memory->locate(address);
  }
  return pinned_.locate(address);
}

void* SimDriver::translate(const void* address) const {
  for (const std::unique_ptr<Device>& owner : devices_) {
    const DeviceMemory* memory = owner->memory.load(std::memory_order_acquire);
    if (memory != nullptr && memory->window().contains(address))
      return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) + memory->window().engine_delta());
  }
  NPU_CHECK(pinned_.locate(address).kind == MemoryLocation::Kind::kPinned, kInvalidAddress,
            "a task was given the address ", address,
            ", which is neither device memory nor pinned host memory; copy the data to the device or pin it first");
  return const_cast<void*>(address);
}

Queue& SimDriver::create_queue(const QueueOptions& options) {
  DeviceMemory& device_memory = memory(options.device);
  device_memory.show_as(options.shown_as);
  const AddressWindow& window = device_memory.window();
  const AddressMap map{window.begin(), window.bytes(), window.engine_delta()};
  Engines& engines = device(options.device).engines;
  MutexLock lock(mutex_);
  auto drained = std::find_if(retired_queues_.begin(), retired_queues_.end(),
                              [&](SimQueue* queue) { return queue->device() == options.device && queue->at_rest(); });
  SimQueue* queue;
  if (drained != retired_queues_.end()) {
    queue = *drained;
    retired_queues_.erase(drained);
  } else {
    const auto slots = static_cast<size_t>(options_.queue_depth);
    queues_.push_back(std::make_unique<SimQueue>(executor_, engines, map, slots));
    queue = queues_.back().get();
  }
  queue->assign(options);
  return *queue;
}

void SimDriver::destroy_queue(Queue& queue) {
  MutexLock lock(mutex_);
  retired_queues_.push_back(&sim(queue));
}

uint64_t SimDriver::submit(Queue& queue, const Submission& submission) {
  return executor_.submit(sim(queue), submission);
}

void SimDriver::submit_wait(Queue& queue, Queue& producer, uint64_t number) {
  if (producer.completed() >= number) return;
  const QueueWait wait{&sim(producer), number};
  executor_.submit(sim(queue), {kQueueWait, &wait, sizeof(wait)});
}

void SimDriver::submit_wait(Queue& queue, Signal& signal, uint64_t value) {
  if (signal.value() >= value) return;
  const SignalWait wait{&sim(signal), value};
  wait.signal->pending_waits.fetch_add(1, std::memory_order_relaxed);
  try {
    executor_.submit(sim(queue), {kSignalWait, &wait, sizeof(wait)});
  } catch (...) {
    wait.signal->pending_waits.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
}

bool SimDriver::wait(Queue& queue, uint64_t number, int64_t deadline_ns) {
  return executor_.wait(sim(queue), number, deadline_ns);
}

void SimDriver::notify(Queue& queue, uint64_t number, Completion& completion) {
  if (!sim(queue).completions().add(completion, number)) completion.on_complete(clock_.now_ns());
}

bool SimDriver::cancel(Queue& queue, Completion& completion) { return sim(queue).completions().remove(completion); }

Signal& SimDriver::create_signal() {
  MutexLock lock(mutex_);
  const auto unused = std::find_if(free_signals_.begin(), free_signals_.end(), [](const SimSignal* signal) {
    return signal->pending_waits.load(std::memory_order_acquire) == 0;
  });
  if (unused == free_signals_.end()) {
    signals_.push_back(std::make_unique<SimSignal>());
    return *signals_.back();
  }
  SimSignal* signal = *unused;
  free_signals_.erase(unused);
  signal->write(0, clock_);
  return *signal;
}

void SimDriver::destroy_signal(Signal& signal) {
  MutexLock lock(mutex_);
  free_signals_.push_back(&sim(signal));
}

void SimDriver::write(Signal& signal, uint64_t value) { sim(signal).write(value, clock_); }

std::vector<SimQueue*> SimDriver::all_queues() const {
  MutexLock lock(mutex_);
  std::vector<SimQueue*> queues;
  queues.reserve(queues_.size());
  for (const std::unique_ptr<SimQueue>& queue : queues_) queues.push_back(queue.get());
  return queues;
}

std::string SimDriver::describe_waits() const {
  std::string text;
  MutexLock lock(mutex_);  // no queue changes hands meanwhile
  for (const std::unique_ptr<SimQueue>& queue : queues_) {
    const std::string line = queue->describe();
    if (!line.empty()) text += (text.empty() ? "  " : "\n  ") + line;
  }
  return text;
}

bool SimDriver::shutdown(int64_t deadline_ns) {
  executor_.close();
  bool drained = true;
  // Work of one queue may make another one ready, so the loop ends only when a whole round found nothing to wait for.
  for (bool waited = true; waited && drained;) {
    waited = false;
    for (SimQueue* queue : all_queues()) {
      if (queue->idle()) continue;
      waited = true;
      drained = executor_.wait(*queue, queue->submitted(), deadline_ns);
      if (!drained) break;
    }
  }
  if (drained) executor_.stop();
  return drained;
}

}  // namespace npu
