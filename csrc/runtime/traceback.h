// Where a task was launched from, for error reports. A layer above (Python) supplies the text; nothing is captured while
// no source is set.
#pragma once

#include <string>

#include "runtime/export.h"

namespace npu {

using TracebackSource = std::string (*)();
NPU_API void set_traceback_source(TracebackSource source);  // null = stop capturing
NPU_API TracebackSource traceback_source() noexcept;

}  // namespace npu
