#include "runtime/traceback.h"

#include <atomic>

namespace npu {
namespace {
std::atomic<TracebackSource> g_source{nullptr};
std::atomic<TracebackSource> g_started{nullptr};
}  // namespace

void set_traceback_source(TracebackSource source) { g_source.store(source, std::memory_order_relaxed); }

void start_tracebacks() { g_started.store(g_source.load(std::memory_order_relaxed), std::memory_order_relaxed); }

TracebackSource traceback_source() noexcept { return g_started.load(std::memory_order_relaxed); }

}  // namespace npu
