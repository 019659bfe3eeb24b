// What torch.autograd.profiler asks of a device it has no tracer for: torch.autograd.profiler.profile(use_device="npu") puts
// an event before and one after each operator on the current stream, and reads the time between them.
#include <c10/core/DeviceGuard.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/event.h"

namespace npu::aten {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct ProfilerMarks final : torch::profiler::impl::ProfilerStubs {
  bool enabled() const override { return true; }

  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    translate_errors([&] {
      const auto mark = std::make_shared<Event>(/*timed=*/true);
      const int current = npu::current_device();
      mark->record(npu::current_stream(current));
      *event = mark;
      if (device != nullptr) *device = static_cast<c10::DeviceIndex>(current);
    });
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
  }

  // Microseconds. Blocks until both events are complete.
  float elapsed(const ProfilerVoidEventStub* start, const ProfilerVoidEventStub* end) const override {
    return translate_errors([&] {
      auto& first = *static_cast<Event*>(start->get());
      auto& last = *static_cast<Event*>(end->get());
      first.synchronize();
      last.synchronize();
      return static_cast<float>(last.elapsed_ms(first) * 1000);
    });
  }

  void onEachDevice(std::function<void(int)> call) const override {
    const int count = translate_errors([] { return npu::device_count(); });
    c10::OptionalDeviceGuard guard;
    for (int device = 0; device < count; ++device) {
      guard.reset_device(device_of(device));
      call(device);
    }
  }
  void synchronize() const override {
    translate_errors([] { primary_context(npu::current_device()).synchronize(); });
  }

  // Ranges are those of NVTX, for which torch.autograd.profiler.emit_nvtx asks CUDA's.
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
};

[[maybe_unused]] const bool registered = [] {
  static ProfilerMarks marks;
  torch::profiler::impl::registerPrivateUse1Methods(&marks);
  return true;
}();

}  // namespace
}  // namespace npu::aten
