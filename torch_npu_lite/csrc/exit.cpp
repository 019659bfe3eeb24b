#include <unistd.h>

#include <exception>
#include <thread>

#include "bindings.h"
#include "runtime/device.h"

namespace npu::python {
namespace {

std::terminate_handler g_previous_handler = nullptr;
std::thread::id g_exiting_thread;

// An interpreter that finalises (before Python 3.14) ends the daemon threads that come back to it by unwinding their stack,
// and C++ frames that let nothing through, PyTorch's among them, make that std::terminate. Such a thread stands still
// instead, and the process ends the way the main thread wants.
void stand_still_when_unwound() {
  const bool unwound = std::current_exception() == nullptr && std::this_thread::get_id() != g_exiting_thread;
  while (unwound) pause();
  g_previous_handler();
}

void shut_down() {
  {
    const pybind11::gil_scoped_release other_threads_go_on;  // tasks that still run may need the GIL
    shutdown();
  }
  g_exiting_thread = std::this_thread::get_id();
  if (g_previous_handler == nullptr) g_previous_handler = std::set_terminate(stand_still_when_unwound);
}

}  // namespace

void bind_exit(pybind11::module_& m) { m.def("shutdown", &shut_down); }

}  // namespace npu::python
