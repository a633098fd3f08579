#include "client/error.h"

#include <array>
#include <cstddef>

namespace tidemark::client {

std::string CodeName(Code code) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "OK",
      "CANCELLED",
      "UNKNOWN",
      "INVALID_ARGUMENT",
      "DEADLINE_EXCEEDED",
      "NOT_FOUND",
      "ALREADY_EXISTS",
      "PERMISSION_DENIED",
      "RESOURCE_EXHAUSTED",
      "FAILED_PRECONDITION",
      "ABORTED",
      "OUT_OF_RANGE",
      "UNIMPLEMENTED",
      "INTERNAL",
      "UNAVAILABLE",
      "DATA_LOSS",
      "UNAUTHENTICATED",
  };
  const int number = static_cast<int>(code);
  if (number >= 0 && static_cast<std::size_t>(number) < kNames.size()) {
    return std::string(kNames[static_cast<std::size_t>(number)]);
  }
  return "CODE_" + std::to_string(number);
}

}  // namespace tidemark::client
