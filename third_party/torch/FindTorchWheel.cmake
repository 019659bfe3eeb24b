# Provides TorchWheel::cpu (libc10, libtorch_cpu) and TorchWheel::python (libtorch_python too) from the torch that the
# chosen Python has installed. PyTorch's own package configuration is not used: in wheels built for CUDA it asks for a
# CUDA toolkit, while we need nothing of it. torch is located, not imported.
set(NPU_TORCH_VERSION 2.13)

if(NOT Python3_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python3 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

set(_install "\"${Python3_EXECUTABLE}\" -m pip install \"torch==${NPU_TORCH_VERSION}.*\"")
execute_process(
  COMMAND ${Python3_EXECUTABLE} -c "from importlib import metadata, util
print(metadata.version('torch'), util.find_spec('torch').submodule_search_locations[0], sep=';')"
  OUTPUT_VARIABLE _found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _status)
if(NOT _status EQUAL 0)
  message(FATAL_ERROR "PyTorch ${NPU_TORCH_VERSION} is missing in ${Python3_EXECUTABLE}. Install it with:\n"
    "  ${_install}\nor build the runtime alone: cmake -DNPU_BUILD_TORCH=OFF")
endif()
list(GET _found 0 TorchWheel_VERSION)
list(GET _found 1 TorchWheel_DIR)
if(NOT TorchWheel_VERSION MATCHES "^2\\.13\\.")
  message(FATAL_ERROR "torch_npu_lite needs PyTorch ${NPU_TORCH_VERSION}, but ${Python3_EXECUTABLE} has "
    "${TorchWheel_VERSION}. Replace it with:\n  ${_install}")
endif()
message(STATUS "PyTorch ${TorchWheel_VERSION}: ${TorchWheel_DIR}")

function(_torch_library name)
  add_library(TorchWheel::${name} SHARED IMPORTED)
  set_target_properties(TorchWheel::${name} PROPERTIES
    IMPORTED_LOCATION ${TorchWheel_DIR}/lib/lib${name}.so
    IMPORTED_SONAME lib${name}.so)
endfunction()
_torch_library(c10)
_torch_library(torch_cpu)
_torch_library(torch_python)

add_library(TorchWheel::cpu INTERFACE IMPORTED)
target_link_libraries(TorchWheel::cpu INTERFACE TorchWheel::torch_cpu TorchWheel::c10)
target_include_directories(TorchWheel::cpu INTERFACE
  ${TorchWheel_DIR}/include ${TorchWheel_DIR}/include/torch/csrc/api/include)
target_compile_options(TorchWheel::cpu INTERFACE "-ffile-prefix-map=${TorchWheel_DIR}/=torch/")

add_library(TorchWheel::python INTERFACE IMPORTED)
target_link_libraries(TorchWheel::python INTERFACE TorchWheel::torch_python TorchWheel::cpu)
target_include_directories(TorchWheel::python INTERFACE ${Python3_INCLUDE_DIRS})

set(TorchWheel_FOUND TRUE)
