# Compiler settings shared by every target, and tidemark_library()/tidemark_test().

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

get_property(_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT _multi AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
# -O3 for both: the hot loops (key maps, sampling) are vectorised only there. Assertions stay on:
# they check the invariants that the proofs rest on, outside the inner loops.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM AND NOT TIDEMARK_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

add_library(tidemark_options INTERFACE)
# Designated initialisers leave the rest to the members' defaults on purpose.
target_compile_options(tidemark_options INTERFACE -Wall -Wextra -Wpedantic -Werror -Wshadow
                                                  -Wnon-virtual-dtor -Wold-style-cast
                                                  -Wno-missing-field-initializers)
target_include_directories(tidemark_options INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
if(TIDEMARK_SANITIZE)
  string(REPLACE "," "-" _tag "${TIDEMARK_SANITIZE}")
  message(STATUS "Sanitizers: ${TIDEMARK_SANITIZE}")
  add_compile_options(-fsanitize=${TIDEMARK_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TIDEMARK_SANITIZE})
  if(TIDEMARK_SANITIZE MATCHES "thread")
    # ThreadSanitizer does not know std::atomic_thread_fence, which Asio puts around handlers; what
    # orders them is a mutex, which it does know.
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC's own checks make it lose track of std::variant, std::string and fmt's fill character: false
    # alarms only there.
    target_compile_options(tidemark_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict
                                                      -Wno-stringop-overflow)
  endif()
endif()

find_package(Threads REQUIRED)

# tidemark_library(NAME sources... [LINK libs...]): a static library of one layer.
function(tidemark_library name)
  cmake_parse_arguments(ARG "" "" "LINK;PRIVATE_LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} PRIVATE tidemark_options ${ARG_PRIVATE_LINK})
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
endfunction()

# Of every test that runs code of ours; without a sanitizer it changes nothing.
set(TIDEMARK_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan_suppressions.txt")

# tidemark_test(NAME sources... [LINK libs...] [LABELS ...] [TIMEOUT s] [ARGS ...] [EXTENDED]): one
# test program on GoogleTest, one ctest entry. EXTENDED: and entries, in ctest's configuration
# `extended` alone, that run it once more with 10^5 random cases (tests/summaries/cases.h); four, so
# that they share the cores.
function(tidemark_test name)
  cmake_parse_arguments(ARG "EXTENDED" "TIMEOUT" "LINK;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tidemark_options GTest::gtest_main ${ARG_LINK})
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${TIDEMARK_TEST_ENVIRONMENT})
  if(ARG_EXTENDED)
    foreach(shard 0 1 2 3)
      set(_entry ${name}_extended_${shard})
      add_test(NAME ${_entry} CONFIGURATIONS extended COMMAND ${name} ${ARG_ARGS})
      set_tests_properties(${_entry} PROPERTIES TIMEOUT 7200 LABELS extended)
      set_property(TEST ${_entry} APPEND PROPERTY ENVIRONMENT ${TIDEMARK_TEST_ENVIRONMENT}
                   TIDEMARK_EXTENDED=1 RC_PARAMS=max_success=100000 GTEST_TOTAL_SHARDS=4
                   GTEST_SHARD_INDEX=${shard})
    endforeach()
  endif()
endfunction()
