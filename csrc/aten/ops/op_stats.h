// Counts what reaches the device's kernels: operator by operator, by route, and how often the host waited.
//
// One count for each entry from PyTorch's dispatcher; entries nested in another one (an operator composed of others) are
// part of the outer one. Threads: any; counters are relaxed, so a report taken while operators run is approximate.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "op_ids.h"  // generated: enum class OpId, kOperatorCount, operator_name(OpId)
#include "runtime/blocking.h"
#include "runtime/export.h"

namespace npu::aten {

enum class Route : uint8_t { kView, kKernel, kIterator, kLibrary, kSynchronous, kFallback };
inline constexpr int kRouteCount = 6;

struct OpCounts {
  uint64_t routes[kRouteCount] = {};
  uint64_t host_waits = 0;
};

// Operators by full name ("aten::add.Tensor") that were entered since the start or the last reset.
NPU_API std::map<std::string, OpCounts> op_stats(bool reset = false);
NPU_API const char* to_string(Route route);

namespace detail {
extern thread_local int op_depth __attribute__((tls_model("initial-exec")));
void count_op(OpId op, Route route, uint64_t host_waits) noexcept;
void count_op(const std::string& name, Route route, uint64_t host_waits);
}  // namespace detail

// Scope of one entry: the first thing in every registered kernel. The route may be set while the kernel decides.
class OpScope {
 public:
  OpScope(OpId op, Route route) noexcept : op_(op), route_(route) {
    if (detail::op_depth++ == 0) waits_before_ = host_waits_of_this_thread();
  }
  ~OpScope() {
    if (--detail::op_depth == 0) detail::count_op(op_, route_, host_waits_of_this_thread() - waits_before_);
  }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  void set_route(Route route) noexcept { route_ = route; }

 private:
  const OpId op_;
  Route route_;
  uint64_t waits_before_ = 0;
};

// The same for kernels that serve many operators; `name` is the full operator name.
class NamedOpScope {
 public:
  NamedOpScope(std::string name, Route route) : name_(std::move(name)), route_(route) {
    if (detail::op_depth++ == 0) waits_before_ = host_waits_of_this_thread();
  }
  ~NamedOpScope() {
    if (--detail::op_depth == 0) detail::count_op(name_, route_, host_waits_of_this_thread() - waits_before_);
  }
  NamedOpScope(const NamedOpScope&) = delete;
  NamedOpScope& operator=(const NamedOpScope&) = delete;

 private:
  const std::string name_;
  const Route route_;
  uint64_t waits_before_ = 0;
};

}  // namespace npu::aten
