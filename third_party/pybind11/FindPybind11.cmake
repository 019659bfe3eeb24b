# Provides Pybind11::headers. The torch wheel ships the pybind11 it was compiled with; using those headers, our binding
# and torch share one registry of types, and there is nothing more to install. Needs FindTorchWheel first.
set(Pybind11_INCLUDE_DIR ${TorchWheel_DIR}/include)
if(NOT EXISTS ${Pybind11_INCLUDE_DIR}/pybind11/pybind11.h)
  message(FATAL_ERROR "${TorchWheel_DIR} ships no pybind11 headers: the torch installation is damaged. Repair it with:\n"
    "  \"${Python3_EXECUTABLE}\" -m pip install --force-reinstall --no-deps \"torch==${NPU_TORCH_VERSION}.*\"")
endif()
add_library(Pybind11::headers INTERFACE IMPORTED)
target_include_directories(Pybind11::headers INTERFACE ${Pybind11_INCLUDE_DIR})
set(Pybind11_FOUND TRUE)
