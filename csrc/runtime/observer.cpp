#include "runtime/observer.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace npu {
namespace detail {
std::atomic<bool> g_observed{false};
}

namespace {
struct Registry {
  std::shared_mutex mutex;
  std::vector<Observer*> observers;
};

// Leaked on purpose: tasks may still run while static destructors do.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}
}  // namespace

void attach_observer(Observer& observer) {
  std::unique_lock lock(registry().mutex);
  registry().observers.push_back(&observer);
  detail::g_observed.store(true, std::memory_order_relaxed);
}

void detach_observer(Observer& observer) {
  std::unique_lock lock(registry().mutex);
  auto& list = registry().observers;
  list.erase(std::remove(list.begin(), list.end(), &observer), list.end());
  detail::g_observed.store(!list.empty(), std::memory_order_relaxed);
}

void detail::notify_observers(void (*call)(Observer&, const void*), const void* data) {
  std::shared_lock lock(registry().mutex);
  for (Observer* observer : registry().observers) call(*observer, data);
}

}  // namespace npu
