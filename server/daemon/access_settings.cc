#include "server/daemon/access_settings.h"

#include <cstdlib>
#include <string>

#include "server/access/file_text.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

// 10,000 tokens with their principals take about 1 MiB.
constexpr std::size_t kFileBytesMax = std::size_t{16} << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  return ReadFileText(path, kFileBytesMax);
}

// As ssh does; but a start is not refused for it: a group may be meant.
void WarnIfOpen(std::string_view what, const std::string& path,
                std::vector<std::string>& warnings) {
  const std::string mode = OpenToOthers(path);
  if (mode.empty()) return;
  warnings.push_back(Concat(what, " \"", path, "\" is open to others than its owner (", mode,
                            "); expected -rw-------"));
}

}  // namespace

absl::StatusOr<AccessSettings> LoadAccess(const Config& config, std::int64_t now_us) {
  AccessSettings settings;
  if (const std::string& path = config.access.rules_file; !path.empty()) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) {
      return absl::InvalidArgumentError(Concat("access.rules_file: \"", path, "\" cannot be read: ",
                                               std::string(text.status().message())));
    }
    const auto read_token = [&warnings = settings.warnings](const std::string& file) {
      WarnIfOpen("a token's file", file, warnings);
      return ReadFile(file);
    };
    const Policy::Sources sources{.file = read_token, .environment = [](const char* name) {
                                    return static_cast<const char*>(std::getenv(name));
                                  }};
    auto policy = Policy::Parse(*text, path, sources);
    if (!policy.ok()) return policy.status();
    settings.policy = *std::move(policy);
  }
  if (const Config::Tls& tls = config.tls; !tls.cert_file.empty()) {
    auto material = LoadTls({.certificate = tls.cert_file,
                             .key = tls.key_file,
                             .client_ca = tls.client_ca_file,
                             .require_client_certificate = tls.require_client_cert},
                            now_us);
    if (!material.ok()) return material.status();
    settings.tls = *std::move(material);
    WarnIfOpen("tls.key_file:", tls.key_file, settings.warnings);
  }
  return settings;
}

}  // namespace tidemark::server
