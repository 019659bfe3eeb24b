#include <torch/csrc/Generator.h>

#include "aten/bridge/generator.h"
#include "bindings.h"

namespace npu::python {

void bind_random(pybind11::module_& m) {
  m.def("default_generator", [](c10::DeviceIndex device) {
    return pybind11::reinterpret_steal<pybind11::object>(
        THPGenerator_initDefaultGenerator(aten::default_generator(device)));
  });
}

}  // namespace npu::python
