// What the processor that runs the kernels can do, found once.
#pragma once

#include <cstddef>

#include "runtime/export.h"

namespace npu::kernels {

enum class Isa { kGeneric, kAvx2, kAvx512 };
NPU_API Isa isa();

// A working set beyond this many bytes does not stay in cache: results are stored past it.
NPU_API size_t streaming_bytes();

}  // namespace npu::kernels
