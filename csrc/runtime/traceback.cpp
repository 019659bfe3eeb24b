#include "runtime/traceback.h"

#include <atomic>

namespace npu {
namespace {
std::atomic<TracebackSource> g_source{nullptr};
}

void set_traceback_source(TracebackSource source) { g_source.store(source, std::memory_order_relaxed); }

TracebackSource traceback_source() noexcept { return g_source.load(std::memory_order_relaxed); }

}  // namespace npu
