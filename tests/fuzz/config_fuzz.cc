// The TOML loader: no bytes crash it, a refusal is a list of lines that begin with the file's name,
// and what is accepted is printed and read back to the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tidemark::server::Config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Config config;
  const absl::Status status = tidemark::server::ApplyToml(text, "f", config);
  if (!status.ok()) {
    const std::string message(status.message());
    if (!message.starts_with("f:") || config != Config()) std::abort();
    for (std::size_t end = message.find('\n'); end != std::string::npos;
         end = message.find('\n', end + 1)) {
      if (!std::string_view(message).substr(end + 1).starts_with("f:")) std::abort();
    }
    return 0;
  }
  Config back;
  if (!tidemark::server::ApplyToml(tidemark::server::ToToml(config), "f", back).ok() ||
      back != config) {
    std::abort();
  }
  return 0;
}
