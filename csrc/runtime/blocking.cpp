#include "runtime/blocking.h"

#include <atomic>

namespace npu {
namespace {

// Kept forever: a thread may still be inside a wait that uses the hooks that were replaced.
struct Registered {
  BlockingHooks hooks;
  const Registered* replaced;
};
std::atomic<const Registered*> g_registered{nullptr};

const BlockingHooks* latest_hooks() {
  const Registered* const latest = g_registered.load(std::memory_order_acquire);
  return latest == nullptr ? nullptr : &latest->hooks;
}

thread_local uint64_t t_host_waits = 0;

}  // namespace

void set_blocking_hooks(const BlockingHooks& hooks) {
  auto* const latest = new Registered{hooks, g_registered.load(std::memory_order_relaxed)};
  while (!g_registered.compare_exchange_weak(latest->replaced, latest, std::memory_order_acq_rel)) {
  }
}

HostWait::HostWait() : hooks_(latest_hooks()) {
  ++t_host_waits;
  if (hooks_ != nullptr && hooks_->enter != nullptr) state_ = hooks_->enter();
}

HostWait::~HostWait() {
  if (hooks_ != nullptr && hooks_->leave != nullptr) hooks_->leave(state_);
}

void HostWait::poll() const {
  if (hooks_ != nullptr && hooks_->poll != nullptr) hooks_->poll();
}

uint64_t host_waits_of_this_thread() noexcept { return t_host_waits; }

}  // namespace npu
