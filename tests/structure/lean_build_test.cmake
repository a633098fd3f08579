# Configures the project without the service and without its tests as if no library were installed,
# builds the benchmarks and runs one; then again with libepoxy but without pkg-config, as a machine
# with a GPU may be, if this machine has libepoxy.
#
# usage: cmake -D SOURCE=… -D WORK=… -D GENERATOR=… -D CXX=… -D GL=ON|OFF -P lean_build_test.cmake
function(run expected)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "exit status ${status}: ${ARGN}")
  endif()
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "expected \"${expected}\" in what this printed: ${ARGN}")
  endif()
endfunction()

# What the service and the tests use, and pkg-config. REQUIRED by mistake, one of these is an error.
set(libraries
    absl benchmark Boost CLI11 fmt gRPC GTest nlohmann_json OpenSSL PkgConfig prometheus-cpp Protobuf
    Python3 rapidcheck spdlog tomlplusplus)
# Used where they are found.
set(optional Epoxy hwy)

function(configure folder expected)
  list(TRANSFORM ARGN REPLACE "(.+)" "-DCMAKE_DISABLE_FIND_PACKAGE_\\1=TRUE" OUTPUT_VARIABLE without)
  run("${expected}" "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${folder}" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${CXX}" -DTIDEMARK_SERVICE=OFF -DTIDEMARK_TESTS=OFF
      # Quick to build; what is built with speed in mind is tested elsewhere.
      -DCMAKE_BUILD_TYPE=Debug ${without})
endfunction()

file(REMOVE_RECURSE "${WORK}")
configure("${WORK}/bare" "Highway not found.*libepoxy not found|libepoxy not found.*Highway not found"
          ${libraries} ${optional})
run("" "${CMAKE_COMMAND}" --build "${WORK}/bare" --parallel 2)
run("radix-lsd-8" "${WORK}/bare/bin/sort_bench" --smoke)
if(GL)
  configure("${WORK}/gl" "Configuring done" ${libraries} hwy)
  run("gpu_bench" "${CMAKE_COMMAND}" --build "${WORK}/gl" --target help)
endif()
file(REMOVE_RECURSE "${WORK}")
