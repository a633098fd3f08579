# cmake --install into an empty folder, then a program that uses find_package(tidemark) and nothing
# of the build: configured, built, run against a real daemon.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "exit status ${status}: ${ARGN}")
  endif()
endfunction()

if(SANITIZE)
  string(APPEND CXX_FLAGS " -fsanitize=${SANITIZE}")
endif()
file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --component development --prefix "${WORK}/prefix")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${WORK}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/with_daemon.py" "${DAEMON}" "${WORK}/build/consumer")
run("${WORK}/build/tcp_consumer")
file(REMOVE_RECURSE "${WORK}")
