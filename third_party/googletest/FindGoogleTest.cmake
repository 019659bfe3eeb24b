# Provides GTest::gtest_main and GTest::gmock, compiled from source so that sanitizer flags reach them. In this order:
#   1. NPU_DEPS_DIR, when set: the archive below, or the same unpacked as NPU_DEPS_DIR/googletest
#   2. the sources that Debian's and Ubuntu's package googletest installs
#   3. a download of the archive, checked against its hash
set(GOOGLETEST_VERSION 1.15.2)
set(GOOGLETEST_ARCHIVE googletest-${GOOGLETEST_VERSION}.tar.gz)
set(GOOGLETEST_URL https://github.com/google/googletest/releases/download/v${GOOGLETEST_VERSION}/${GOOGLETEST_ARCHIVE})
set(GOOGLETEST_SHA256 7b42b4d6ed48810c5362c265a17faebe90dc2373c885e5216439d37927f02926)

set(_unpacked ${CMAKE_BINARY_DIR}/third_party)
function(_googletest_unpack archive)
  file(SHA256 ${archive} hash)
  if(NOT hash STREQUAL GOOGLETEST_SHA256)
    message(FATAL_ERROR "${archive} is not the pinned GoogleTest ${GOOGLETEST_VERSION}: its SHA-256 is ${hash}, "
      "expected ${GOOGLETEST_SHA256}. Delete it and run again.")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${_unpacked})
endfunction()

if(NPU_DEPS_DIR)
  if(EXISTS ${NPU_DEPS_DIR}/googletest/CMakeLists.txt)
    set(_source ${NPU_DEPS_DIR}/googletest)
  elseif(EXISTS ${NPU_DEPS_DIR}/${GOOGLETEST_ARCHIVE})
    _googletest_unpack(${NPU_DEPS_DIR}/${GOOGLETEST_ARCHIVE})
    set(_source ${_unpacked}/googletest-${GOOGLETEST_VERSION})
  else()
    message(FATAL_ERROR "NPU_DEPS_DIR=${NPU_DEPS_DIR} holds no ${GOOGLETEST_ARCHIVE}. Put it there from\n"
      "  ${GOOGLETEST_URL}\nor build without tests: cmake -DNPU_BUILD_TESTS=OFF")
  endif()
elseif(EXISTS /usr/src/googletest/CMakeLists.txt)
  set(_source /usr/src/googletest)
else()
  set(_source ${_unpacked}/googletest-${GOOGLETEST_VERSION})
  if(NOT EXISTS ${_source})
    message(STATUS "Downloading ${GOOGLETEST_URL}")
    file(DOWNLOAD ${GOOGLETEST_URL} ${_unpacked}/${GOOGLETEST_ARCHIVE} STATUS _status INACTIVITY_TIMEOUT 30)
    if(NOT _status MATCHES "^0;")
      message(FATAL_ERROR "GoogleTest is missing and could not be downloaded (${_status}). Use one of:\n"
        "  apt-get install googletest\n"
        "  NPU_DEPS_DIR=<a folder that holds ${GOOGLETEST_ARCHIVE} from ${GOOGLETEST_URL}>\n"
        "  cmake -DNPU_BUILD_TESTS=OFF")
    endif()
    _googletest_unpack(${_unpacked}/${GOOGLETEST_ARCHIVE})
  endif()
endif()

set(INSTALL_GTEST OFF CACHE INTERNAL "")
set(CMAKE_POLICY_VERSION_MINIMUM 3.22)   # packaged versions name an older one, which CMake 4 warns about
add_subdirectory(${_source} ${_unpacked}/googletest-build EXCLUDE_FROM_ALL)
foreach(_name gtest gtest_main gmock)
  if(NOT TARGET GTest::${_name})
    add_library(GTest::${_name} ALIAS ${_name})
  endif()
endforeach()
set(GoogleTest_FOUND TRUE)
message(STATUS "GoogleTest: ${_source}")
