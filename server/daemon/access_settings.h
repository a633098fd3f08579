// The files that [access] and [tls] name, as they are now.
#ifndef TIDEMARK_SERVER_DAEMON_ACCESS_SETTINGS_H_
#define TIDEMARK_SERVER_DAEMON_ACCESS_SETTINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/policy.h"
#include "server/access/tls_material.h"
#include "server/config/config.h"

namespace tidemark::server {

struct AccessSettings {
  std::shared_ptr<const Policy> policy;    ///< null: no rules
  std::shared_ptr<const TlsMaterial> tls;  ///< null: no TLS
  /// Faults that refuse nothing, each in one line: files with secrets that others may read.
  std::vector<std::string> warnings;
};

/// Reads and checks both, or neither. Errors: INVALID_ARGUMENT, one line for each fault, with its
/// file.
absl::StatusOr<AccessSettings> LoadAccess(const Config& config, std::int64_t now_us);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_ACCESS_SETTINGS_H_
