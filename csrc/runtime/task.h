// What a stream executes: static TaskInfo plus trivially copyable arguments.
//
// A launch copies the arguments into a slot of the stream's queue. There is no heap allocation, no std::function, no
// tensor and no Python object in a task, so tasks can be queued from any thread, recorded, edited and replayed.
// Addresses in arguments are device addresses; the executing side turns them into engine addresses with
// TaskContext::translate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/export.h"

namespace npu {

using DeviceIndex = int16_t;
using StreamId = int64_t;

// Engines of a device. Each has a capacity (properties); a task holds one unit of every engine in its mask while it runs.
enum class Engine : uint8_t { kCube, kVector, kDmaIn, kDmaOut, kCpu, kRng };
inline constexpr int kEngineCount = 6;

using EngineMask = uint8_t;
constexpr EngineMask engine_mask(Engine engine) { return static_cast<EngineMask>(1u << static_cast<unsigned>(engine)); }
inline constexpr EngineMask kNoEngine = 0;  // control tasks: waits, value writes
inline constexpr EngineMask kCubeEngine = engine_mask(Engine::kCube);
inline constexpr EngineMask kVectorEngine = engine_mask(Engine::kVector);
inline constexpr EngineMask kMixedEngine = kCubeEngine | kVectorEngine;
inline constexpr EngineMask kDmaInEngine = engine_mask(Engine::kDmaIn);
inline constexpr EngineMask kDmaOutEngine = engine_mask(Engine::kDmaOut);
inline constexpr EngineMask kCpuEngine = engine_mask(Engine::kCpu);
inline constexpr EngineMask kRngEngine = engine_mask(Engine::kRng);
NPU_API const char* to_string(Engine engine);

// One operand of a task, as tools see it: error reports, dumps, race checks, graph edits.
struct Operand {
  enum class Access : uint8_t { kRead, kWrite, kReadWrite };

  const char* name = "";
  Access access = Access::kRead;
  void** address = nullptr;  // where the arguments hold the device address; a visitor may change it
  const char* dtype = "";    // PyTorch's short name, e.g. "float32"
  int rank = 0;
  const int64_t* sizes = nullptr;    // elements
  const int64_t* strides = nullptr;  // elements; null = contiguous
  size_t bytes = 0;                  // extent in bytes from *address; 0 = unknown
};

class OperandVisitor {
 public:
  virtual void visit(const Operand& operand) = 0;

 protected:
  ~OperandVisitor() = default;
};

// Work that a running task cuts into independent pieces; see TaskContext::parallel_for.
using TileFunction = void (*)(void* closure, int64_t tile);

class TaskContext;

// Serves the running task; the driver implements it.
class TaskExecutor {
 public:
  virtual const void* translate(const TaskContext& context, const void* address) const = 0;
  virtual void run_tiles(const TaskContext& context, int64_t tiles, TileFunction function, void* closure) = 0;

 protected:
  ~TaskExecutor() = default;
};

// A device's two address spaces: engine address = device address + engine_delta inside the window.
struct AddressMap {
  uintptr_t begin = 0;  // device addresses
  uintptr_t bytes = 0;
  uintptr_t engine_delta = 0;
};

// What a task may know and do while it runs. Valid only inside TaskInfo::run.
// A default context (tests of kernels) has no device: addresses are host addresses and tiles run one after the other.
class NPU_API TaskContext {
 public:
  TaskContext() = default;
  TaskContext(DeviceIndex device_index, StreamId stream_id, const AddressMap& map, TaskExecutor& executor)
      : device(device_index), stream(stream_id), map_(map), executor_(&executor) {}

  DeviceIndex device = 0;
  StreamId stream = 0;
  uint64_t number = 0;  // 1 for the first task of a stream, then counting up

  // Engine address of a device or pinned address; throws kInvalidAddress with the allocation's story otherwise.
  // A null pointer stays null.
  template <class T>
  T* translate(T* address) const {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - map_.begin;
    if (offset < map_.bytes) [[likely]]
      return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) + map_.engine_delta);
    return static_cast<T*>(const_cast<void*>(translate_other(address)));
  }

  // The same task seen through another executor, which must outlive the result.
  TaskContext through(TaskExecutor& executor) const {
    TaskContext context = *this;
    context.executor_ = &executor;
    return context;
  }

  // Runs body(0) ... body(tiles - 1), each exactly once, possibly on several threads at once; returns when all are done.
  // The pieces must not depend on who runs them: cut by shape alone. An exception of a piece is rethrown here.
  template <class Body>
  void parallel_for(int64_t tiles, Body&& body) const {
    using Plain = std::remove_reference_t<Body>;
    run_tiles(
        tiles, [](void* closure, int64_t tile) { (*static_cast<Plain*>(closure))(tile); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  const void* translate_other(const void* address) const;
  void run_tiles(int64_t tiles, TileFunction function, void* closure) const;

  AddressMap map_;
  TaskExecutor* executor_ = nullptr;
};

enum TaskFlags : uint8_t {
  kInlineable = 1,       // may run on the submitting thread or on a host thread that waits for it
  kUsesEnvironment = 2,  // runs inside the registered TaskEnvironment (clean PyTorch thread state)
  kLaunchersOwn = 16,    // this bit and those above it mean what the launching layer says
};

// Static description of one kind of task. Must outlive every launch that names it; usually a constant.
struct TaskInfo {
  const char* name;  // full operator name: "aten::add.Tensor"
  void (*run)(const TaskContext& context, const void* arguments);
  EngineMask engines = kVectorEngine;
  uint8_t flags = kInlineable;
  void (*visit)(void* arguments, OperandVisitor& visitor) = nullptr;  // lists the operands; null = none declared
};

// Bytes of arguments that fit a queue slot; larger blocks go to the stream's argument arena.
inline constexpr size_t kInlineArgumentBytes = 216;

// Thread state that tasks flagged kUsesEnvironment need, supplied once by the layer that knows it.
struct TaskEnvironment {
  static constexpr size_t kStateBytes = 128;
  void (*enter)(void* state);           // saves what it changes into kStateBytes at `state`
  void (*leave)(void* state) noexcept;  // restores it
};
NPU_API void set_task_environment(const TaskEnvironment& environment);

// Scope of the registered environment on this thread; does nothing when none is registered.
class NPU_API TaskEnvironmentScope {
 public:
  explicit TaskEnvironmentScope(bool needed);
  ~TaskEnvironmentScope();
  TaskEnvironmentScope(const TaskEnvironmentScope&) = delete;
  TaskEnvironmentScope& operator=(const TaskEnvironmentScope&) = delete;

 private:
  bool entered_ = false;
  alignas(16) unsigned char state_[TaskEnvironment::kStateBytes];
};

}  // namespace npu
