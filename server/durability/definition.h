// A stream's name and settings as the log holds them. docs/store_format.md has the bytes.
#ifndef TIDEMARK_SERVER_DURABILITY_DEFINITION_H_
#define TIDEMARK_SERVER_DURABILITY_DEFINITION_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/window/stream.h"

namespace tidemark::server {

struct Definition {
  std::string name;
  StreamSettings settings;
  friend bool operator==(const Definition&, const Definition&) = default;
};

std::string EncodeDefinition(std::string_view name, const StreamSettings& settings);

/// Errors: DATA_LOSS for bytes that no EncodeDefinition made, FAILED_PRECONDITION for those of a
/// later version. Whether the settings make a stream is for the registry to say.
absl::StatusOr<Definition> DecodeDefinition(std::string_view bytes);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DURABILITY_DEFINITION_H_
