// The device guard: how PyTorch's core switches devices and streams, and how torch.Stream and torch.Event work.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "aten/bridge/allocator.h"
#include "aten/bridge/errors.h"
#include "aten/bridge/stream.h"
#include "aten/bridge/sync_debug_mode.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/event.h"

namespace npu::aten {
namespace {

Event& event_of(void* event) { return *static_cast<Event*>(event); }

struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }

  // Devices.
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device previous = getDevice();
    if (device.index() != previous.index()) setDevice(device);
    return previous;
  }
  c10::Device getDevice() const override { return device_of(npu::current_device()); }
  void setDevice(c10::Device device) const override {
    translate_errors([&] { npu::set_device(device.index()); });
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    try {
      npu::set_device(device.index());
    } catch (const Error&) {  // a destructor restores a device; there is no one to tell
    }
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    try {
      return static_cast<c10::DeviceIndex>(npu::device_count());
    } catch (const Error&) {
      return 0;
    }
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }  // every dtype
  void synchronizeDevice(c10::DeviceIndex device) const override {
    translate_errors([&] { primary_context(resolve(device)).synchronize(); });
  }

  // Streams.
  // Asked about fake tensors too, which do not initialise: until something does, no thread has chosen a stream.
  c10::Stream getStream(c10::Device device) const override {
    if (!npu::is_initialized()) return getDefaultStream(device);
    return translate_errors([&] { return wrap(current_stream(resolve(device.index()))); });
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device_of(resolve(device.index())));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
    return getNewStream(device, high_priority ? kGreatestPriority : kLeastPriority);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return translate_errors([&] { return wrap(primary_context(resolve(device.index())).pool_stream(priority)); });
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    // Autograd over fake tensors goes back to the streams of the forward: by getStream, the default ones.
    if (!npu::is_initialized() && stream == getDefaultStream(stream.device())) return stream;
    return translate_errors([&] { return wrap(npu::exchange_stream(unwrap(stream))); });
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return translate_errors([&] { return &unwrap(stream); });
  }
  bool queryStream(const c10::Stream& stream) const override {
    return translate_errors([&] { return unwrap(stream).query(); });
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    const SynchronizingCall call("stream synchronize");
    translate_errors([&] { unwrap(stream).synchronize(); });
  }
  bool isStreamCapturing(const c10::Stream&) const override { return false; }

  // Events: made by the first record.
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag flag) const override {
    translate_errors([&] {
      if (*event == nullptr) *event = new Event(flag == c10::EventFlag::BACKEND_DEFAULT);
      event_of(*event).record(unwrap(stream));
    });
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) translate_errors([&] { unwrap(stream).wait(event_of(event)); });
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || translate_errors([&] { return event_of(event).query(); });
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) translate_errors([&] { event_of(event).synchronize(); });
  }
  double elapsedTime(void* start, void* end, c10::DeviceIndex) const override {
    return translate_errors([&] {
      NPU_CHECK(start != nullptr && end != nullptr, kInvalidArgument,
                "both events must be recorded before elapsed_time");
      return event_of(end).elapsed_ms(event_of(start));
    });
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    if (!npu::in_bad_fork()) delete static_cast<Event*>(event);
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    device_allocator().recordStream(data, stream);
  }

 private:
  // PyTorch writes "the current device" as -1.
  static c10::DeviceIndex resolve(c10::DeviceIndex device) {
    return device != -1 ? device : static_cast<c10::DeviceIndex>(npu::current_device());
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace
}  // namespace npu::aten
