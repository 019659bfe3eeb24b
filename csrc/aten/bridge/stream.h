// npu::Stream and c10::Stream are two names of one thing: a c10::Stream holds the runtime's stream id.
//
// Threads: any.
#pragma once

#include <c10/core/Stream.h>

#include "runtime/device.h"
#include "runtime/export.h"

namespace npu::aten {

inline c10::Device device_of(DeviceIndex index) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

// The calling thread's current stream of a device; initialises the device.
inline Stream& current_stream(c10::DeviceIndex device) { return npu::current_stream(device); }

NPU_API c10::Stream wrap(Stream& stream);
// A few loads for the current and the default stream, a short lock for others; kInvalidArgument when there is no such
// stream (any more).
NPU_API Stream& unwrap(const c10::Stream& stream);

}  // namespace npu::aten
