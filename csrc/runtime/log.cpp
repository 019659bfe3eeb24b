#include "runtime/log.h"

#include <unistd.h>

#include <atomic>

namespace npu {
namespace {

const char* word(LogLevel level) {
  switch (level) {
    case LogLevel::kError: return "error";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kInfo: return "info";
    case LogLevel::kDebug: break;
  }
  return "debug";
}

std::atomic<LogLevel> g_level{LogLevel::kWarning};

}  // namespace

void set_log_level(LogLevel level) noexcept { g_level.store(level, std::memory_order_relaxed); }

bool log_enabled(LogLevel level) noexcept { return level <= g_level.load(std::memory_order_relaxed); }

void log(LogLevel level, const std::string& message) noexcept {
  if (!log_enabled(level)) return;
  try {
    const std::string line = std::string("npu ") + word(level) + ": " + message + "\n";
    // One write: lines of several threads and processes do not mix.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  } catch (...) {  // out of memory: the message is lost, the caller's work is not
  }
}

}  // namespace npu
