# Fails early, and in words, on machines and compilers that are not supported.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(FATAL_ERROR "torch_npu_lite supports Linux only; this system is ${CMAKE_SYSTEM_NAME}.")
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(NPU_X86_64 ON)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(NPU_X86_64 OFF)
else()
  message(FATAL_ERROR "torch_npu_lite supports x86-64 and aarch64; this processor is ${CMAKE_SYSTEM_PROCESSOR}.")
endif()

set(NPU_MINIMUM_GNU 12)
set(NPU_MINIMUM_Clang 16)
if(NOT DEFINED NPU_MINIMUM_${CMAKE_CXX_COMPILER_ID})
  message(FATAL_ERROR "torch_npu_lite builds with g++ 12 or clang 16 and later; ${CMAKE_CXX_COMPILER} is "
    "${CMAKE_CXX_COMPILER_ID}. Choose one with CXX=g++ or CXX=clang++-16.")
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS NPU_MINIMUM_${CMAKE_CXX_COMPILER_ID})
  message(FATAL_ERROR "torch_npu_lite needs ${CMAKE_CXX_COMPILER_ID} ${NPU_MINIMUM_${CMAKE_CXX_COMPILER_ID}} or later; "
    "${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_VERSION}. Choose another with CXX=g++-12 or CXX=clang++-16.")
endif()
