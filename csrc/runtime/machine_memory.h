// How much memory this process may use, and how much of it a simulated device gets when nobody says.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/export.h"

namespace npu {

// Bytes of memory of the machine or of the control group (version 1 or 2) that this process is in, whichever is less;
// 4 GiB when neither can be read. `root` is where /proc and /sys are looked for.
NPU_API size_t machine_memory(const std::string& root = "");

// A quarter of it, in whole GiB; below 1 GiB in steps of 256 MiB, and at least that.
NPU_API size_t default_device_memory(size_t machine_bytes = machine_memory());

}  // namespace npu
