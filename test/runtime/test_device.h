// A small simulated device for tests of the runtime, independent of the environment.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/config.h"
#include "runtime/context.h"
#include "runtime/driver/sim/sim_driver.h"
#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/memory/caching_allocator.h"
#include "runtime/stream.h"

namespace npu::testing {

inline SimOptions small_device() {
  SimOptions options;
  options.memory_bytes = size_t{64} << 20;
  options.window_bytes = size_t{256} << 20;
  options.workers = 2;
  return options;
}

// One driver with a context on its first device.
struct TestDevice {
  explicit TestDevice(const SimOptions& options = small_device(), const ContextOptions& context_options = {})
      : driver(options), context(driver, 0, 0, context_options) {}

  Stream& stream() { return context.create_stream(); }

  SimDriver driver;
  Context context;
};

// An int64 in device memory.
class DeviceInt {
 public:
  DeviceInt(Context& context, int64_t value)
      : context_(context), block_(context.allocator().allocate(sizeof(int64_t), context.default_stream())) {
    write(value);
  }
  ~DeviceInt() { context_.allocator().free(block_); }
  DeviceInt(const DeviceInt&) = delete;
  DeviceInt& operator=(const DeviceInt&) = delete;

  int64_t* address() const { return static_cast<int64_t*>(block_->address); }
  int64_t read() const { return *engine(); }
  void write(int64_t value) { *engine() = value; }

 private:
  int64_t* engine() const { return static_cast<int64_t*>(context_.driver().translate(block_->address)); }

  Context& context_;
  Block* block_;
};

struct StoreArguments {
  int64_t* address;
  int64_t value;
};
inline const TaskInfo kStore{
    .name = "test::store",
    .run =
        [](const TaskContext& context, const void* arguments) {
          const auto& store = *static_cast<const StoreArguments*>(arguments);
          *context.translate(store.address) = store.value;
        },
    .visit =
        [](void* arguments, OperandVisitor& visitor) {
          static constexpr int64_t kSize = 1;
          auto& store = *static_cast<StoreArguments*>(arguments);
          visitor.visit({"address", Operand::Access::kWrite, reinterpret_cast<void**>(&store.address), "int64", 1,
                         &kSize, nullptr, sizeof(int64_t)});
        },
};

struct CopyArguments {
  int64_t* to;
  const int64_t* from;
};
inline const TaskInfo kCopyInt{
    .name = "test::copy_int",
    .run =
        [](const TaskContext& context, const void* arguments) {
          const auto& copy = *static_cast<const CopyArguments*>(arguments);
          *context.translate(copy.to) = *context.translate(copy.from);
        },
};

// Appends a digit: shows in which order tasks ran.
inline const TaskInfo kAppend{
    .name = "test::append",
    .run =
        [](const TaskContext& context, const void* arguments) {
          const auto& store = *static_cast<const StoreArguments*>(arguments);
          int64_t& value = *context.translate(store.address);
          value = value * 10 + store.value;
        },
};

inline const TaskInfo kFail{
    .name = "test::fail",
    .run = [](const TaskContext&, const void*) { throw std::out_of_range("index 7 is out of range"); },
};

}  // namespace npu::testing
