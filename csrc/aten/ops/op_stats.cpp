#include "aten/ops/op_stats.h"

#include <mutex>
#include <utility>

#include "runtime/blocking.h"

namespace npu::aten {

thread_local OpCounters* detail::current_op = nullptr;

namespace {

// What is rare or slow anyway, so a lock is fine. Leaked on purpose, as threads may still run while the process ends.
struct Rare {
  std::mutex mutex;
  std::map<std::string, OpCounters> counters;                                // of operators outside the table
  std::map<std::pair<const OpCounters*, const char*>, uint64_t> host_waits;  // by cause, a text that is never freed
};
Rare& rare() {
  static Rare& instance = *new Rare;
  return instance;
}

void count_host_wait(const char* cause) {
  const OpCounters& op = detail::current_op != nullptr ? *detail::current_op : op_counters(kOutside);
  const std::lock_guard lock(rare().mutex);
  ++rare().host_waits[{&op, cause}];
}

[[maybe_unused]] const bool listening = [] {
  set_host_wait_listener(count_host_wait);
  return true;
}();

uint64_t read(std::atomic<uint64_t>& counter, bool reset) {
  return reset ? counter.exchange(0, std::memory_order_relaxed) : counter.load(std::memory_order_relaxed);
}

// Adds what an operator's counters say to `result`, if there is anything. One name may have several: the table's, and
// those of its kernels for other layouts.
void collect(const std::string& name, OpCounters& counters, bool reset, std::map<std::string, OpStats>& result) {
  const uint64_t tasks = read(counters.tasks, reset);
  const uint64_t queued_ns = read(counters.queued_ns, reset);
  const uint64_t run_ns = read(counters.run_ns, reset);
  std::array<uint64_t, kRouteCount> calls;
  bool known = tasks != 0;
  for (size_t route = 0; route < kRouteCount; ++route)
    known |= (calls[route] = read(counters.calls[route], reset)) != 0;
  const auto first = rare().host_waits.lower_bound({&counters, nullptr});
  auto last = first;
  while (last != rare().host_waits.end() && last->first.first == &counters) ++last;
  if (!known && first == last) return;
  OpStats& stats = result[name];
  stats.tasks += tasks;
  stats.queued_ns += queued_ns;
  stats.run_ns += run_ns;
  for (size_t route = 0; route < kRouteCount; ++route) stats.calls[route] += calls[route];
  for (auto wait = first; wait != last; ++wait) stats.host_waits[wait->first.second] += wait->second;
  if (reset) rare().host_waits.erase(first, last);
}

}  // namespace

const char* to_string(Route route) {
  static constexpr const char* names[kRouteCount] = {"view",    "kernel",      "iterator",
                                                     "library", "synchronous", "fallback"};
  return names[static_cast<size_t>(route)];
}

OpCounters& op_counters(const std::string& name) {
  const std::lock_guard lock(rare().mutex);
  return rare().counters[name];
}

std::map<std::string, OpStats> op_stats(bool reset) {
  std::map<std::string, OpStats> result;
  const std::lock_guard lock(rare().mutex);
  for (OpCounters* counters : detail::table) collect(counters->name, *counters, reset, result);
  for (auto& [name, counters] : rare().counters) collect(name, counters, reset, result);
  return result;
}

}  // namespace npu::aten
