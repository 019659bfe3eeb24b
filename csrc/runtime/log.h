// Messages for people on standard error, one line each.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/export.h"

namespace npu {

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

// config() sets it from NPU_LOG_LEVEL when it reads the environment; kWarning until then.
NPU_API void set_log_level(LogLevel level) noexcept;

NPU_API bool log_enabled(LogLevel level) noexcept;
NPU_API void log(LogLevel level, const std::string& message) noexcept;

}  // namespace npu
