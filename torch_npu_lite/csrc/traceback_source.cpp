#include <torch/csrc/utils/python_compat.h>

#include "bindings.h"
#include "runtime/traceback.h"

namespace npu::python {
namespace {

// The innermost Python frame of the calling thread and its callers, as "file:line in function", one a line. Empty in
// threads without Python frames, such as autograd's. Takes the GIL, which PyTorch releases around operators.
std::string python_stack() {
  if (!Py_IsInitialized()) return {};
  namespace py = pybind11;
  const py::gil_scoped_acquire gil;
  constexpr int kMaxFrames = 16;
  std::string text;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  for (int depth = 0; frame != nullptr && depth < kMaxFrames; ++depth) {
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    text += "  " + py::cast<std::string>(code.attr("co_filename")) + ":" +
            std::to_string(PyFrame_GetLineNumber(frame)) + " in " + py::cast<std::string>(code.attr("co_name")) + "\n";
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  Py_XDECREF(frame);
  return text;
}

}  // namespace

void install_traceback_source() { set_traceback_source(python_stack); }

}  // namespace npu::python
