// Work of which it is not known what it throws.
#ifndef TIDEMARK_SERVER_RPC_TRY_H_
#define TIDEMARK_SERVER_RPC_TRY_H_

#include <exception>
#include <stdexcept>
#include <type_traits>

#include "absl/status/status.h"

namespace tidemark::server {

/// What `work` gives, which is an absl::Status or made of one: OUT_OF_RANGE for std::length_error,
/// INTERNAL for every other exception. What a library throws must not end the daemon.
template <class Work>
std::invoke_result_t<const Work&> Try(const Work& work) {
  try {
    return work();
  } catch (const std::length_error& error) {
    return absl::OutOfRangeError(error.what());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_TRY_H_
