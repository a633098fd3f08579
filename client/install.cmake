# `cmake --install`, component "development": find_package(tidemark) gives tidemark::client (no gRPC
# or protobuf in its headers), tidemark::tcp_client (values in over framed TCP, with Abseil's status in
# its header), tidemark::wire under it, and tidemark::proto (the generated messages and stubs).
include(CMakePackageConfigHelpers)

set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tidemark")
set_target_properties(tidemark_proto PROPERTIES EXPORT_NAME proto)
install(TARGETS tidemark_client tidemark_tcp_client tidemark_wire tidemark_proto EXPORT tidemarkTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(FILES answers.h client.h error.h push.h retrying_tcp_producer.h tcp_producer.h value.h
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tidemark/client" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/wire/frame.h" "${PROJECT_SOURCE_DIR}/wire/token.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tidemark/wire" COMPONENT development)
install(DIRECTORY "${PROJECT_BINARY_DIR}/proto/gen/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/proto/tidemark" DESTINATION "${CMAKE_INSTALL_DATADIR}/tidemark/proto"
        COMPONENT development FILES_MATCHING PATTERN "*.proto")
install(EXPORT tidemarkTargets NAMESPACE tidemark:: DESTINATION "${_package_dir}"
        COMPONENT development)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/tidemarkConfig.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/tidemarkConfig.cmake" INSTALL_DESTINATION "${_package_dir}")
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/tidemarkConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tidemarkConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/tidemarkConfigVersion.cmake"
        DESTINATION "${_package_dir}" COMPONENT development)
