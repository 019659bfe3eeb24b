#include <torch/csrc/Exceptions.h>

#include <thread>

#include "bindings.h"
#include "runtime/blocking.h"

namespace npu::python {
namespace {

// Signals are handled by the thread that imported us first, Python's main thread as a rule; others need not look.
const std::thread::id g_main_thread = std::this_thread::get_id();

bool interpreter_runs() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsInitialized() && !Py_IsFinalizing();
#else
  return Py_IsInitialized() && !_Py_IsFinalizing();
#endif
}

// The state is the thread's Python state, null when the thread did not hold the GIL.
void* release_gil() { return interpreter_runs() && PyGILState_Check() ? PyEval_SaveThread() : nullptr; }

void retake_gil(void* state) {
  if (state != nullptr) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
}

void check_signals() {
  if (std::this_thread::get_id() != g_main_thread || !interpreter_runs()) return;
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return;
  python_error interrupt;
  interrupt.persist();
  throw interrupt;
}

}  // namespace

void install_blocking_hooks() { set_blocking_hooks({release_gil, retake_gil, check_signals}); }

}  // namespace npu::python
