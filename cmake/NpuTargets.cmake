# Functions that the CMakeLists.txt files below use, so that each of them stays a few lines long.

# The build tree mirrors the installed package, so one relative run path serves both.
set(NPU_PACKAGE_DIR ${CMAKE_BINARY_DIR}/torch_npu_lite)
set(CMAKE_INSTALL_MESSAGE NEVER)

# npu_glob(<variable> <pattern> <folder>...): sources below the folders, found again whenever a file appears or goes.
# Files named *_avx2.cpp and *_avx512.cpp hold variants that are chosen at run time: they get the flags of their
# instruction set on x86-64 and are left out elsewhere.
function(npu_glob variable pattern)
  list(TRANSFORM ARGN APPEND "/${pattern}" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  if(NOT NPU_X86_64)
    list(FILTER sources EXCLUDE REGEX "_avx(2|512)\\.cpp$")
  endif()
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    list(APPEND avx512 -Wno-uninitialized)   # g++ 12 warns about its own intrinsics
  endif()
  foreach(source IN LISTS sources)
    if(source MATCHES "_(avx2|avx512)\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${${CMAKE_MATCH_1}}")
    endif()
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# npu_hide_symbols(<target>): only what carries NPU_API is visible outside the library.
function(npu_hide_symbols target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# npu_place(<target> <folder in the package> <run path>...): where a library lies, built and installed.
function(npu_place target folder)
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${NPU_PACKAGE_DIR}/${folder}
    LINK_DEPENDS_NO_SHARED ON          # a changed kernel relinks one library, not all above it
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${ARGN}")
  npu_hide_symbols(${target})
  install(TARGETS ${target} LIBRARY DESTINATION torch_npu_lite/${folder})
endfunction()

# npu_add_tests(<folder>): one program for each *_test.cpp, and one ctest entry for each TEST in it.
function(npu_add_tests folder)
  npu_glob(sources *_test.cpp ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/csrc ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE npu_flags npu_runtime_objects GTest::gmock GTest::gtest_main)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX ${folder}. PROPERTIES TIMEOUT 120)
  endforeach()
endfunction()
