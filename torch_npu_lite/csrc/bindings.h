// The parts of torch_npu_lite._C. Functions convert, call and return; errors become Python's in module.cpp.
#pragma once

#include <pybind11/pybind11.h>

namespace npu::python {

void bind_device(pybind11::module_& m);
void bind_exit(pybind11::module_& m);
void bind_memory(pybind11::module_& m);
void bind_random(pybind11::module_& m);
void bind_stream(pybind11::module_& m);
void bind_timeline(pybind11::module_& m);

// Lets host waits release the GIL and end on Ctrl-C.
void install_blocking_hooks();
// Lets error reports name the Python lines that launched a task (NPU_TRACEBACK=1).
void install_traceback_source();

}  // namespace npu::python
