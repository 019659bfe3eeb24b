# What C++ programs need, inside the installed Python package: headers and find_package(torch_npu_lite).
include(CMakePackageConfigHelpers)

set(_config ${CMAKE_BINARY_DIR}/torch_npu_liteConfig.cmake)
configure_file(${CMAKE_SOURCE_DIR}/cmake/torch_npu_liteConfig.cmake.in ${_config} @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/torch_npu_liteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${_config} ${CMAKE_BINARY_DIR}/torch_npu_liteConfigVersion.cmake
  DESTINATION torch_npu_lite/share/cmake/torch_npu_lite)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/csrc/ ${CMAKE_BINARY_DIR}/generated/ DESTINATION torch_npu_lite/include/torch_npu_lite
  FILES_MATCHING PATTERN "*.h")
