// The hooks through which device-independent parts of PyTorch ask about npu devices.
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "aten/bridge/allocator.h"
#include "aten/bridge/errors.h"
#include "aten/bridge/generator.h"
#include "aten/bridge/host_allocator.h"
#include "aten/bridge/stream.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/log.h"

namespace npu::aten {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex device) const override { return npu::has_primary_context(device); }
  void init() const override {
    translate_errors([] { npu::driver(); });
  }

  c10::DeviceIndex deviceCount() const override {
    try {
      return static_cast<c10::DeviceIndex>(npu::device_count());
    } catch (const Error& error) {  // the first call that needs a device raises it
      static const bool said [[maybe_unused]] = [&] {
        log(LogLevel::kWarning, npu::detail::concat("no npu device is available: ", error.what()));
        return true;
      }();
      return 0;
    }
  }
  c10::DeviceIndex getCurrentDevice() const override { return static_cast<c10::DeviceIndex>(npu::current_device()); }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    translate_errors([&] { npu::set_device(device); });
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex previous = getCurrentDevice();
    setCurrentDevice(device);
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    return device < 0 ? getCurrentDevice() : exchangeDevice(device);
  }

  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  c10::Device getDeviceFromPtr(void* address) const override {
    return translate_errors([&] {
      const MemoryLocation location = npu::driver().locate(address);
      for (DeviceIndex device = 0; device < npu::device_count(); ++device)
        if (location.kind == MemoryLocation::Kind::kDevice && npu::has_primary_context(device) &&
            primary_context(device).ordinal() == location.device)
          return device_of(device);
      NPU_THROW(kInvalidAddress, address, " is not memory of an npu device");
    });
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), bytes);
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    const c10::DeviceIndex index = device < 0 ? getCurrentDevice() : device;
    translate_errors([&] { npu::check_device(index); });
    return at::make_generator<GeneratorImpl>(index);
  }
};

// Leaked, as the interface wants: hooks are asked until the process ends.
const bool g_registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace npu::aten
