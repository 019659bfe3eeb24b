# Runs tools/gen_ops.py at build time. Sets NPU_GENERATED_DIR and NPU_GENERATED_SOURCES.
set(NPU_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(NPU_GENERATED_SHARDS 10 CACHE STRING "Number of files that the generated operators are spread over")

set(_generator ${CMAKE_SOURCE_DIR}/tools/gen_ops.py)
set(_generate ${CMAKE_COMMAND} -E env TORCH_DEVICE_BACKEND_AUTOLOAD=0
  ${Python3_EXECUTABLE} ${_generator} --output-dir ${NPU_GENERATED_DIR} --shards ${NPU_GENERATED_SHARDS})
file(GLOB _inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/gen/*.py ${CMAKE_SOURCE_DIR}/csrc/aten/ops/*.yaml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_generator})

execute_process(COMMAND ${_generate} --list-outputs
  OUTPUT_VARIABLE _outputs OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _status)
if(NOT _status EQUAL 0)
  message(FATAL_ERROR "tools/gen_ops.py failed; its message is above. The packages it needs are installed with:\n"
    "  \"${Python3_EXECUTABLE}\" -m pip install -r requirements/build.txt")
endif()
string(REPLACE "\n" ";" _outputs "${_outputs}")
foreach(_output IN LISTS _outputs)
  get_filename_component(_output ${_output} ABSOLUTE BASE_DIR ${NPU_GENERATED_DIR})
  list(APPEND NPU_GENERATED_SOURCES ${_output})
endforeach()

if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.27)
  set(_early DEPENDS_EXPLICIT_ONLY)   # need not wait for the runtime to be linked
endif()
add_custom_command(OUTPUT ${NPU_GENERATED_SOURCES} COMMAND ${_generate} DEPENDS ${_generator} ${_inputs}
  COMMENT "Generating the operators" VERBATIM ${_early})
