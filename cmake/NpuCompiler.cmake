# Flags shared by all our targets: link them with the interface target npu_flags. Third-party code does not get them.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

add_library(npu_flags INTERFACE)
target_compile_options(npu_flags INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(npu_flags INTERFACE -Wthread-safety)
endif()
# Neither messages nor debug information may name a folder of the build machine; debug builds, which stay on it, keep
# what debuggers and sanitizers need to find the sources.
set(NPU_PREFIX_MAP $<IF:$<CONFIG:Debug>,-fmacro-prefix-map,-ffile-prefix-map>)
target_compile_options(npu_flags INTERFACE "${NPU_PREFIX_MAP}=${CMAKE_SOURCE_DIR}/=")
string(FIND "${CMAKE_BINARY_DIR}/" "${CMAKE_SOURCE_DIR}/" _inside)
if(NOT _inside EQUAL 0)
  target_compile_options(npu_flags INTERFACE "${NPU_PREFIX_MAP}=${CMAKE_BINARY_DIR}/=")
endif()

if(NPU_SANITIZE)
  add_compile_options("-fsanitize=${NPU_SANITIZE}" -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${NPU_SANITIZE}")
  if(NPU_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(NPU_CCACHE ccache)
if(NPU_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness lets ccache work with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${NPU_CCACHE})
endif()
