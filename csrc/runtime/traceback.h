// Where a task was launched from, for error reports. A layer above (Python) supplies the text; nothing is captured until
// the runtime starts with NPU_TRACEBACK=1.
#pragma once

#include <string>

#include "runtime/export.h"

namespace npu {

using TracebackSource = std::string (*)();
NPU_API void set_traceback_source(TracebackSource source);
NPU_API void start_tracebacks();
NPU_API TracebackSource traceback_source() noexcept;  // null = capture nothing

}  // namespace npu
