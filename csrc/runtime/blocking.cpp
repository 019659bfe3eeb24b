#include "runtime/blocking.h"

#include <atomic>
#include <utility>

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

std::atomic<void (*)(const char*)> g_listener{nullptr};

thread_local const char* t_cause = "synchronize";  // what a program asks for outside any WaitCause

}  // namespace

void set_blocking_hooks(const BlockingHooks& hooks) {
  auto* const latest = new Registered{hooks, g_registered.load(std::memory_order_relaxed)};
  while (!g_registered.compare_exchange_weak(latest->replaced, latest, std::memory_order_acq_rel)) {
  }
}

void set_host_wait_listener(void (*listener)(const char* cause)) {
  g_listener.store(listener, std::memory_order_release);
}

void notify_host_wait() {
  if (auto* const listener = g_listener.load(std::memory_order_acquire)) listener(t_cause);
}

WaitCause::WaitCause(const char* cause) noexcept : outer_(std::exchange(t_cause, cause)) {}
WaitCause::~WaitCause() { t_cause = outer_; }

HostWait::HostWait() : hooks_(latest_hooks()) {
  if (hooks_ != nullptr && hooks_->enter != nullptr) state_ = hooks_->enter();
}

HostWait::~HostWait() {
  if (hooks_ != nullptr && hooks_->leave != nullptr) hooks_->leave(state_);
}

void HostWait::poll() const {
  if (hooks_ != nullptr && hooks_->poll != nullptr) hooks_->poll();
}

}  // namespace npu
