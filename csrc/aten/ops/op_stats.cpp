#include "aten/ops/op_stats.h"

#include <array>
#include <atomic>
#include <mutex>

namespace npu::aten {
namespace {

struct Counters {
  std::array<std::atomic<uint64_t>, kRouteCount> routes{};
  std::atomic<uint64_t> host_waits{0};
};

// Zero-initialised before any code runs, so kernels may count at any time.
constinit std::array<Counters, kOperatorCount> counters{};

// Operators outside the table, which only the boxed fallback serves: slow anyway, so a lock is fine. Leaked on purpose,
// as autograd threads may still run while the process ends.
struct Others {
  std::mutex mutex;
  std::map<std::string, OpCounts> counts;
};
Others& others() {
  static Others& instance = *new Others;
  return instance;
}

uint64_t read(std::atomic<uint64_t>& counter, bool reset) {
  return reset ? counter.exchange(0, std::memory_order_relaxed) : counter.load(std::memory_order_relaxed);
}

}  // namespace

namespace detail {

thread_local int op_depth = 0;

void count_op(OpId op, Route route, uint64_t host_waits) noexcept {
  Counters& entry = counters[static_cast<size_t>(op)];
  entry.routes[static_cast<size_t>(route)].fetch_add(1, std::memory_order_relaxed);
  if (host_waits != 0) entry.host_waits.fetch_add(host_waits, std::memory_order_relaxed);
}

void count_op(const std::string& name, Route route, uint64_t host_waits) {
  const std::lock_guard lock(others().mutex);
  OpCounts& entry = others().counts[name];
  ++entry.routes[static_cast<size_t>(route)];
  entry.host_waits += host_waits;
}

}  // namespace detail

const char* to_string(Route route) {
  static constexpr const char* names[kRouteCount] = {"view",    "kernel",      "iterator",
                                                     "library", "synchronous", "fallback"};
  return names[static_cast<size_t>(route)];
}

std::map<std::string, OpCounts> op_stats(bool reset) {
  std::map<std::string, OpCounts> result;
  {
    const std::lock_guard lock(others().mutex);
    result = others().counts;
    if (reset) others().counts.clear();
  }
  for (size_t i = 0; i < counters.size(); ++i) {
    OpCounts counts;
    uint64_t calls = 0;
    for (int route = 0; route < kRouteCount; ++route)
      calls += counts.routes[route] = read(counters[i].routes[static_cast<size_t>(route)], reset);
    counts.host_waits = read(counters[i].host_waits, reset);
    if (calls == 0 && counts.host_waits == 0) continue;
    OpCounts& entry = result[operator_name(static_cast<OpId>(i))];
    for (int route = 0; route < kRouteCount; ++route) entry.routes[route] += counts.routes[route];
    entry.host_waits += counts.host_waits;
  }
  return result;
}

}  // namespace npu::aten
