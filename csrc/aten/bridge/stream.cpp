#include "aten/bridge/stream.h"

#include "runtime/context.h"
#include "runtime/status.h"

namespace npu::aten {

c10::Stream wrap(Stream& stream) { return c10::Stream(c10::Stream::UNSAFE, device_of(stream.device()), stream.id()); }

Stream& unwrap(const c10::Stream& stream) {
  NPU_CHECK(stream.device_type() == c10::DeviceType::PrivateUse1, kInvalidArgument,
            "expected a stream of an npu device, got one of ", stream.device().str());
  const DeviceIndex device = stream.device_index();
  Stream& current = npu::current_stream(device);
  if (current.id() == stream.id()) return current;
  Context& context = primary_context(device);
  if (stream.id() == 0) return context.default_stream();
  Stream* found = context.find_stream(stream.id());
  NPU_CHECK(found != nullptr, kInvalidArgument, "npu:", device, " has no stream ", stream.id(),
            "; it was destroyed, or the id was made up");
  return *found;
}

}  // namespace npu::aten
