#include "runtime/task.h"

#include <atomic>

#include "runtime/status.h"

namespace npu {
namespace {
std::atomic<const TaskEnvironment*> g_environment{nullptr};
}

const char* to_string(Engine engine) {
  switch (engine) {
    case Engine::kCube: return "cube";
    case Engine::kVector: return "vector";
    case Engine::kDmaIn: return "dma_in";
    case Engine::kDmaOut: return "dma_out";
    case Engine::kCpu: return "cpu";
    case Engine::kRng: return "rng";
  }
  return "unknown";
}

const void* TaskContext::translate_other(const void* address) const {
  return executor_ != nullptr ? executor_->translate(*this, address) : address;
}

void TaskContext::run_tiles(int64_t tiles, TileFunction function, void* closure) const {
  if (executor_ != nullptr && tiles > 1) return executor_->run_tiles(*this, tiles, function, closure);
  for (int64_t tile = 0; tile < tiles; ++tile) function(closure, tile);
}

void set_task_environment(const TaskEnvironment& environment) {
  // Leaked on purpose: workers may read it until the process ends.
  g_environment.store(new TaskEnvironment(environment), std::memory_order_release);
}

TaskEnvironmentScope::TaskEnvironmentScope(bool needed) {
  if (!needed) return;
  if (const TaskEnvironment* environment = g_environment.load(std::memory_order_acquire)) {
    environment->enter(state_);
    entered_ = true;
  }
}

TaskEnvironmentScope::~TaskEnvironmentScope() {
  if (entered_) g_environment.load(std::memory_order_acquire)->leave(state_);
}

}  // namespace npu
