// What no single setting can see.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/settings.h"

namespace tidemark::server {
namespace {

struct Listener {
  std::string_view name;
  std::optional<HostPort> Config::Listen::*address;
};
constexpr std::array kListeners = {
    Listener{"grpc", &Config::Listen::grpc}, Listener{"tcp", &Config::Listen::tcp},
    Listener{"http", &Config::Listen::http}, Listener{"statsd", &Config::Listen::statsd}};

std::vector<std::string> Words(std::string_view text) {
  return absl::StrSplit(std::string(text), ' ', absl::SkipEmpty());
}

std::vector<std::string> AccessFaults(const Config& config) {
  std::vector<std::string> faults;
  const Config::Tls& tls = config.tls;
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    faults.push_back(fmt::format("tls.{} is set and tls.{} is not; expected both or neither",
                                 tls.cert_file.empty() ? "key_file" : "cert_file",
                                 tls.cert_file.empty() ? "cert_file" : "key_file"));
  }
  if (tls.cert_file.empty() && !tls.client_ca_file.empty()) {
    faults.push_back("tls.client_ca_file is set and tls.cert_file is not");
  }
  if (tls.require_client_cert && tls.client_ca_file.empty()) {
    faults.push_back(
        "tls.require_client_cert is set and no authority of such certificates; expected "
        "tls.client_ca_file");
  }
  for (const std::string& word : Words(tls.listeners)) {
    const bool known = std::any_of(kListeners.begin(), kListeners.end(),
                                   [&](const Listener& one) { return one.name == word; });
    if (!known) {
      faults.push_back(
          fmt::format("tls.listeners: expected some of grpc tcp http statsd, not {}", Quote(word)));
    }
  }
  if (!config.listen.allow_insecure && faults.empty()) {
    for (const std::string& one : InsecureListeners(config)) {
      // Over UDP StatsD can have neither.
      faults.push_back(
          fmt::format("{} and other machines reach it; expected {}an address such as 127.0.0.1, or "
                      "listen.allow_insecure = true",
                      one, one.starts_with("listen.statsd") ? "" : "both ([tls], [access]), "));
    }
  }
  return faults;
}

/// "" if a file can be made in the folder. Made and removed, because permission bits alone do not
/// tell: root passes them, and a read-only file system does not show in them.
std::string CheckWritableFolder(const std::string& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "it is not a folder";
  std::string path = folder + "/.tidemark-write-test-XXXXXX";
  const int file = ::mkstemp(path.data());
  if (file < 0) return std::strerror(errno);
  ::close(file);
  ::unlink(path.c_str());
  return "";
}

}  // namespace

bool UsesTls(const Config& config, std::string_view listener) {
  if (config.tls.cert_file.empty()) return false;
  const std::vector<std::string> words = Words(config.tls.listeners);
  return std::find(words.begin(), words.end(), listener) != words.end();
}

bool IsLoopback(const HostPort& address) {
  // Of IPv4 in digits alone, as inet_aton's short forms (127.1) are no host:port of ours anyway.
  const bool v4 = address.host.starts_with("127.") &&
                  address.host.find_first_not_of("0123456789.") == std::string::npos;
  return v4 || address.host == "::1" || address.host == "localhost";
}

std::vector<std::string> InsecureListeners(const Config& config) {
  std::vector<std::string> all;
  const bool rules = !config.access.rules_file.empty();
  for (const Listener& one : kListeners) {
    const std::optional<HostPort>& address = config.listen.*one.address;
    if (!address || IsLoopback(*address)) continue;
    const bool tls = UsesTls(config, one.name);
    const std::string where = fmt::format("listen.{} ({})", one.name, address->ToString());
    if (one.name == "statsd") {
      // Its UDP half has neither, whatever is set.
      all.push_back(fmt::format("{} has no TLS over UDP{}", where, rules ? "" : ", and no rules"));
    } else if (!tls || !rules) {
      all.push_back(fmt::format("{} has {}", where,
                                tls     ? "no rules"
                                : rules ? "no TLS"
                                        : "neither TLS nor rules"));
    }
  }
  return all;
}

std::string CheckWhole(const Config& config) {
  std::vector<std::string> faults;
  // Two messages of the largest size that gRPC lets in (server/daemon/grpc_front.cc).
  const std::uint64_t grpc_bytes_min = 8 * config.limits.max_batch_bytes;
  if (config.limits.max_grpc_bytes != 0 && config.limits.max_grpc_bytes < grpc_bytes_min) {
    faults.push_back(fmt::format(
        "limits.max_grpc_bytes ({}) is less than eight times limits.max_batch_bytes; expected at "
        "least {}, or 0 for no limit",
        config.limits.max_grpc_bytes, grpc_bytes_min));
  }
  if (config.window.min_capacity > config.window.max_capacity) {
    faults.push_back(fmt::format("window.min_capacity ({}) is larger than window.max_capacity ({})",
                                 config.window.min_capacity, config.window.max_capacity));
  }
  if (config.limits.max_item_bytes > config.limits.max_batch_bytes) {
    faults.push_back(
        fmt::format("limits.max_item_bytes ({}) is larger than limits.max_batch_bytes ({})",
                    config.limits.max_item_bytes, config.limits.max_batch_bytes));
  }
  const struct {
    std::string_view name;
    const std::optional<HostPort>& address;
  } tcp_listeners[] = {{"listen.grpc", config.listen.grpc},
                       {"listen.tcp", config.listen.tcp},
                       {"listen.http", config.listen.http},
                       {"listen.statsd", config.listen.statsd}};
  for (std::size_t i = 0; i < std::size(tcp_listeners); ++i) {
    for (std::size_t j = i + 1; j < std::size(tcp_listeners); ++j) {
      const auto& a = tcp_listeners[i];
      const auto& b = tcp_listeners[j];
      if (a.address.has_value() && a.address->port != 0 && a.address == b.address) {
        faults.push_back(
            fmt::format("{} and {} are both {}", a.name, b.name, a.address->ToString()));
      }
    }
  }
  if (config.store.durability != "none" && config.daemon.data_dir.empty()) {
    faults.push_back(
        fmt::format("store.durability is {} and there is no folder to write to; "
                    "expected daemon.data_dir",
                    Quote(config.store.durability)));
  }
  for (std::string& fault : AccessFaults(config)) faults.push_back(std::move(fault));
  std::string all;
  for (const std::string& fault : faults)
    all += fmt::format("{}{}", all.empty() ? "" : "\n", fault);
  return all;
}

std::string CheckDataFolder(const Config& config) {
  if (config.daemon.data_dir.empty()) return "";
  const std::string why = CheckWritableFolder(config.daemon.data_dir);
  if (why.empty()) return "";
  return fmt::format("daemon.data_dir: the folder {} cannot be written: {}",
                     Quote(config.daemon.data_dir), why);
}

}  // namespace tidemark::server
