// Copies bytes within one device.
#pragma once

#include <cstddef>

#include "runtime/stream.h"

namespace npu::aten {

// Queues the copy on `stream`; both ranges are memory of its device.
void copy_bytes(Stream& stream, void* destination, const void* source, size_t bytes);

}  // namespace npu::aten
