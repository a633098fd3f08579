# cmake --install of the daemon into an empty folder: the program runs there, takes the example
# configuration that came with it, and the unit starts that very program.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
set(prefix "${WORK}/prefix")

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}: exit status ${status}\n${output}")
  endif()
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --component daemon --prefix "${prefix}")
run("${prefix}/bin/tidemarkd" --config "${prefix}/share/doc/tidemark/tidemark.toml" --check-config)

file(STRINGS "${prefix}/lib/systemd/system/tidemark.service" unit)
foreach(line "Type=notify" "[Install]"
        "ExecStart=${prefix}/bin/tidemarkd --config /etc/tidemark/tidemark.toml --data-dir /var/lib/tidemark")
  if(NOT line IN_LIST unit)
    message(FATAL_ERROR "the installed unit lacks the line \"${line}\"")
  endif()
endforeach()
