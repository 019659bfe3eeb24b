#include <torch/csrc/Exceptions.h>

#include "aten/bridge/errors.h"
#include "bindings.h"
#include "runtime/status.h"

namespace npu::python {
namespace {

// Leaves types that pybind11 knows to pybind11.
void translate(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& runtime_error) {
    try {
      aten::throw_translated(runtime_error);
    } catch (...) {
      torch::translate_exception_to_python(std::current_exception());
    }
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(error);
  } catch (const python_error&) {
    torch::translate_exception_to_python(error);
  }
}

}  // namespace

PYBIND11_MODULE(_C, m) {
  pybind11::register_local_exception_translator(translate);
  install_blocking_hooks();
  install_traceback_source();
  bind_device(m);
  bind_exit(m);
  bind_memory(m);
  bind_random(m);
  bind_stream(m);
  bind_timeline(m);
}

}  // namespace npu::python
