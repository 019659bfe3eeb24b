// Counts what reaches the device's kernels: operator by operator, by route, and how often and why the host waited.
//
// One count for each entry from PyTorch's dispatcher; entries nested in another one (an operator composed of others) are
// part of the outer one, as are the waits and the tasks of both. Threads: any; counters are relaxed, so a report taken
// while operators run is approximate.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "runtime/export.h"

namespace npu::aten {

enum class Route : uint8_t { kView, kKernel, kIterator, kLibrary, kSynchronous, kFallback };
inline constexpr int kRouteCount = 6;
NPU_API const char* to_string(Route route);

// What is known of one operator.
struct OpStats {
  std::array<uint64_t, kRouteCount> calls{};   // by route
  std::map<std::string, uint64_t> host_waits;  // by cause
  // Of the tasks that ended while times were recorded, see op_times.h.
  uint64_t tasks = 0;
  uint64_t queued_ns = 0;  // from submission to start
  uint64_t run_ns = 0;     // from start to end
};

// Operators by full name ("aten::add.Tensor") that were entered since the start or the last reset. Tasks of no operator go
// by the task's name, waits of no operator by kOutside.
NPU_API std::map<std::string, OpStats> op_stats(bool reset = false);
inline constexpr const char* kOutside = "(outside operators)";

// The counters of one operator. They live as long as the process; those of the table are variables in namespace op, which
// the generated op_counters.h declares.
struct OpCounters {
  const char* name = "";        // "aten::add.Tensor"
  const char* wait_cause = "";  // why a synchronous operator has to wait
  std::array<std::atomic<uint64_t>, kRouteCount> calls{};
  std::atomic<uint64_t> tasks{0};
  std::atomic<uint64_t> queued_ns{0};
  std::atomic<uint64_t> run_ns{0};
};

// Of an operator outside the table; takes a lock.
OpCounters& op_counters(const std::string& name);

namespace detail {
extern const std::span<OpCounters* const> table;
// Of the operator that this thread is in, the outermost one; null outside.
extern thread_local OpCounters* current_op __attribute__((tls_model("initial-exec")));
}  // namespace detail

// Scope of one entry: the first thing in every registered kernel. The route may be set while the kernel decides.
class OpScope {
 public:
  OpScope(OpCounters& counters, Route route) noexcept
      : counters_(counters), route_(route), outermost_(detail::current_op == nullptr) {
    if (outermost_) detail::current_op = &counters;
  }
  ~OpScope() {
    if (!outermost_) return;
    detail::current_op = nullptr;
    counters_.calls[static_cast<size_t>(route_)].fetch_add(1, std::memory_order_relaxed);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  void set_route(Route route) noexcept { route_ = route; }

 private:
  OpCounters& counters_;
  Route route_;
  const bool outermost_;
};

}  // namespace npu::aten
