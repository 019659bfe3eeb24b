#include "runtime/blocking.h"

#include <atomic>

namespace npu {
namespace {

std::atomic<const BlockingHooks*> g_hooks{nullptr};
thread_local uint64_t t_host_waits = 0;

}  // namespace

void set_blocking_hooks(const BlockingHooks& hooks) {
  // Leaked on purpose: a thread may still be inside a wait that uses the hooks it replaces.
  g_hooks.store(new BlockingHooks(hooks), std::memory_order_release);
}

HostWait::HostWait() : hooks_(g_hooks.load(std::memory_order_acquire)) {
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
