#include "runtime/device.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/clock.h"
#include "runtime/config.h"
#include "runtime/driver/registry.h"
#include "runtime/fault_report.h"
#include "runtime/log.h"
#include "runtime/status.h"
#include "runtime/thread_annotations.h"
#include "runtime/traceback.h"

namespace npu {
namespace {

constexpr int kMaxDevices = 64;
constexpr int kErrorsShownAtExit = 10;  // of each device

struct Runtime {
  std::unique_ptr<Driver> driver;
  std::array<std::atomic<Context*>, kMaxDevices> contexts{};  // leaked on purpose: deleters outlive main()
};

Mutex g_mutex;
std::atomic<Runtime*> g_runtime{nullptr};  // leaked on purpose
std::atomic<bool> g_bad_fork{false};
std::atomic<bool> g_shut_down{false};

thread_local DeviceIndex t_device = 0;
thread_local std::array<Stream*, kMaxDevices> t_streams{};

void mark_forked_child() {
  if (g_runtime.load(std::memory_order_relaxed) != nullptr) g_bad_fork.store(true, std::memory_order_relaxed);
}

void check_not_forked() {
  NPU_CHECK(
      !in_bad_fork(), kInvalidState,
      "cannot use npu in a forked child of a process that had already used it: the device's threads did not survive ",
      "the fork. Start the child with the 'spawn' method (multiprocessing.set_start_method('spawn')), or use npu in ",
      "the parent only after forking");
}

DeviceIndex ordinal_of(DeviceIndex device) {
  const auto& visible = config().visible_devices;
  return visible ? static_cast<DeviceIndex>((*visible)[static_cast<size_t>(device)]) : device;
}

Runtime& runtime() {
  check_not_forked();
  if (Runtime* runtime = g_runtime.load(std::memory_order_acquire)) return *runtime;
  MutexLock lock(g_mutex);
  if (g_runtime.load(std::memory_order_relaxed) == nullptr) {
    static const int at_fork = pthread_atfork(nullptr, nullptr, mark_forked_child);
    NPU_CHECK(at_fork == 0, kLimit, "pthread_atfork failed with error ", at_fork, ": out of memory?");
    if (config().fault_report) install_fault_report();
    if (config().traceback) start_tracebacks();
    auto runtime = std::make_unique<Runtime>();
    runtime->driver = make_driver(config());
    g_runtime.store(runtime.release(), std::memory_order_release);
  }
  return *g_runtime.load(std::memory_order_relaxed);
}

Context& make_primary_context(Runtime& runtime, DeviceIndex device) {
  MutexLock lock(g_mutex);
  std::atomic<Context*>& place = runtime.contexts[static_cast<size_t>(device)];
  if (place.load(std::memory_order_relaxed) == nullptr) {
    const Config& settings = config();
    place.store(new Context(*runtime.driver, device, ordinal_of(device),
                            {settings.launch_blocking, settings.sim.deterministic}),
                std::memory_order_release);
  }
  return *place.load(std::memory_order_relaxed);
}

}  // namespace

int device_count() {
  const Config& settings = config();
  if (!settings.visible_devices) return settings.sim.devices;
  for (const int ordinal : *settings.visible_devices)
    NPU_CHECK(ordinal < settings.sim.devices, kInvalidArgument, "NPU_VISIBLE_DEVICES names device ", ordinal,
              ", but there are only ", settings.sim.devices, " (NPU_SIM_DEVICES); devices count from 0");
  return static_cast<int>(settings.visible_devices->size());
}

void check_device(DeviceIndex device) {
  const int count = device_count();
  NPU_CHECK(count > 0, kInvalidDevice, "no npu device is visible (NPU_VISIBLE_DEVICES is empty)");
  NPU_CHECK(device >= 0 && device < count, kInvalidDevice, "invalid device index ", device, ": this process sees ",
            count, " npu device", count == 1 ? "" : "s", ", npu:0",
            count == 1 ? "" : detail::concat(" to npu:", count - 1));
}

DeviceIndex current_device() noexcept { return t_device; }

void set_device(DeviceIndex device) {
  if (device == t_device) return;
  check_device(device);
  t_device = device;
}

DeviceGuard::~DeviceGuard() { t_device = previous_; }

Driver& driver() { return *runtime().driver; }

Context& primary_context(DeviceIndex device) {
  Runtime& state = runtime();
  if (static_cast<size_t>(device) < kMaxDevices) [[likely]]
    if (Context* context = state.contexts[static_cast<size_t>(device)].load(std::memory_order_acquire)) return *context;
  check_device(device);
  return make_primary_context(state, device);
}

bool has_primary_context(DeviceIndex device) noexcept {
  const Runtime* state = is_initialized() ? g_runtime.load(std::memory_order_acquire) : nullptr;
  return state != nullptr && static_cast<size_t>(device) < kMaxDevices &&
         state->contexts[static_cast<size_t>(device)].load(std::memory_order_acquire) != nullptr;
}

bool is_initialized() noexcept { return g_runtime.load(std::memory_order_acquire) != nullptr && !in_bad_fork(); }

bool in_bad_fork() noexcept { return g_bad_fork.load(std::memory_order_relaxed); }

Stream& current_stream(DeviceIndex device) {
  if (static_cast<size_t>(device) < kMaxDevices) [[likely]]
    if (Stream* stream = t_streams[static_cast<size_t>(device)]; stream != nullptr && !in_bad_fork()) return *stream;
  Stream& stream = primary_context(device).default_stream();
  t_streams[static_cast<size_t>(device)] = &stream;
  return stream;
}

Stream& exchange_stream(Stream& stream) {
  const DeviceIndex device = stream.device();
  Stream& previous = current_stream(device);
  t_streams[static_cast<size_t>(device)] = &stream;
  return previous;
}

void shutdown() noexcept {
  if (!is_initialized() || g_shut_down.exchange(true)) return;
  try {
    Runtime& state = runtime();
    const auto timeout_ns = static_cast<int64_t>(config().exit_timeout_s * 1e9);
    if (!state.driver->shutdown(Clock::host().now_ns() + timeout_ns))
      log(LogLevel::kWarning,
          detail::concat("the process exits with unfinished work after waiting ", config().exit_timeout_s,
                         " s (NPU_EXIT_TIMEOUT_S); abandoned:\n", state.driver->describe_waits()));
    for (const std::atomic<Context*>& place : state.contexts) {
      Context* context = place.load(std::memory_order_acquire);
      if (context == nullptr) continue;
      int shown = 0;
      while (const std::optional<TaskError> error = context->take_error()) {
        if (++shown > kErrorsShownAtExit) {
          log(LogLevel::kError, detail::concat("and ", context->pending_errors() + 1, " more"));
          break;
        }
        log(LogLevel::kError, "never reported before exit: " + error->describe());
      }
    }
  } catch (const std::exception& error) {  // nobody is left to catch it
    log(LogLevel::kError, detail::concat("shutdown failed: ", error.what()));
  }
}

}  // namespace npu
