// Messages for people on standard error, one line each, filtered by NPU_LOG_LEVEL.
#pragma once

#include <string>

#include "runtime/config.h"
#include "runtime/export.h"

namespace npu {

NPU_API bool log_enabled(LogLevel level) noexcept;
NPU_API void log(LogLevel level, const std::string& message) noexcept;

}  // namespace npu
