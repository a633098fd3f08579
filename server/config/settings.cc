#include "server/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tidemark::server {
namespace {

// The member that a line of the table sets; the table stays a constant.
#define TIDEMARK_FIELD(member) [](Config& c) -> SettingField { return &c.member; }

// The widest ranges in which the daemon was thought through; an order of magnitude beyond any use
// that the limits were made for, small enough that their products stay below 2^63.
constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;
constexpr double kDay = 86400;

constexpr std::array kSettings = {
    Setting{"listen", "grpc", "grpc", TIDEMARK_FIELD(listen.grpc),
            "gRPC: ingest, queries, streams"},
    Setting{"listen", "tcp", "tcp", TIDEMARK_FIELD(listen.tcp), "framed TCP ingest"},
    Setting{"listen", "http", "http", TIDEMARK_FIELD(listen.http), "/metrics, health, reload"},
    Setting{"listen", "statsd", "statsd", TIDEMARK_FIELD(listen.statsd),
            "StatsD lines, UDP and TCP"},
    Setting{"listen", "allow_insecure", "allow-insecure", TIDEMARK_FIELD(listen.allow_insecure),
            "listen beyond this machine without TLS or rules all the same"},
    Setting{"access", "rules_file", "rules-file", TIDEMARK_FIELD(access.rules_file),
            "who may do what; none: everybody may do everything"},
    Setting{"tls", "cert_file", "tls-cert-file", TIDEMARK_FIELD(tls.cert_file),
            "certificate and its chain, PEM; none: no TLS"},
    Setting{"tls", "key_file", "tls-key-file", TIDEMARK_FIELD(tls.key_file),
            "key of the certificate, PEM without a passphrase"},
    Setting{"tls", "client_ca_file", "tls-client-ca-file", TIDEMARK_FIELD(tls.client_ca_file),
            "authorities of clients' certificates, PEM; none: they are not asked for one"},
    Setting{"tls", "require_client_cert", "tls-require-client-cert",
            TIDEMARK_FIELD(tls.require_client_cert), "refuse clients without a certificate"},
    Setting{"tls", "listeners", "tls-listeners", TIDEMARK_FIELD(tls.listeners),
            "which listeners speak TLS, with a certificate; UDP never does"},
    Setting{"tls", "handshake_timeout_s", "tls-handshake-timeout-s",
            TIDEMARK_FIELD(tls.handshake_timeout_s),
            "a TLS handshake must be over within this; over gRPC its first bytes, and as long "
            "again the rest",
            1, 3600},
    Setting{"tls", "grpc_handshakes_per_s", "tls-grpc-handshakes-per-s",
            TIDEMARK_FIELD(tls.grpc_handshakes_per_s),
            "so many handshakes begin a second over gRPC, the others wait; 0: no limit", 0,
            1'000'000},
    Setting{"daemon", "data_dir", "data-dir", TIDEMARK_FIELD(daemon.data_dir),
            "an existing folder that can be written"},
    Setting{"daemon", "ports_file", "ports-file", TIDEMARK_FIELD(daemon.ports_file),
            "once ready, the ports in use are written here as JSON"},
    Setting{"daemon", "shutdown_deadline_s", "shutdown-deadline-s",
            TIDEMARK_FIELD(daemon.shutdown_deadline_s), "time for draining after SIGTERM", 1, 3600},
    Setting{"log", "level", "log-level", TIDEMARK_FIELD(log.level), "least level that is logged", 0,
            0, false, "debug info warn error"},
    Setting{"log", "format", "log-format", TIDEMARK_FIELD(log.format),
            "auto: text on a terminal, json elsewhere", 0, 0, false, "auto text json"},
    Setting{"sort", "sorter", "sorter", TIDEMARK_FIELD(sort.sorter), "what sorts the windows", 0, 0,
            false, "auto cpu gl-compute gl-bitonic gl-abisort gl-pbsn"},
    Setting{"sort", "workers", "sort-workers", TIDEMARK_FIELD(sort.workers),
            "threads that sort and summarise; 0: one a core, and three more beside a GPU of auto",
            0, 1024},
    Setting{"sort", "allow_software_gl", "allow-software-gl",
            TIDEMARK_FIELD(sort.allow_software_gl),
            "let auto open a software rasteriser (90 MB, never the fastest)"},
    Setting{"sort", "measure_budget_ms", "measure-budget-ms",
            TIDEMARK_FIELD(sort.measure_budget_ms), "time for measuring sorters at start", 10,
            60'000},
    Setting{"sort", "gl_timeout_ms", "gl-timeout-ms", TIDEMARK_FIELD(sort.gl_timeout_ms),
            "a GPU that takes longer for a request hangs: the CPU takes over", 100, 3'600'000},
    Setting{"sort", "measure_again", "measure-again", TIDEMARK_FIELD(sort.measure_again),
            "measure sorters though the data folder has what an earlier start found"},
    Setting{"streams", "type", "stream-type", TIDEMARK_FIELD(streams.type),
            "values of a stream created on first use", 0, 0, false,
            "float64 float32 int64 uint64 uint32 ipv4 ipv6 string"},
    Setting{"streams", "quantile_epsilon", "quantile-epsilon",
            TIDEMARK_FIELD(streams.quantile_epsilon), "largest rank error, as a share of n", 1e-6,
            0.5},
    Setting{"streams", "frequency_epsilon", "frequency-epsilon",
            TIDEMARK_FIELD(streams.frequency_epsilon), "largest count error, as a share of n", 1e-6,
            0.5},
    Setting{"streams", "quantile_form", "quantile-form", TIDEMARK_FIELD(streams.quantile_form),
            "how quantile summaries are kept", 0, 0, false, "histogram compact tail"},
    Setting{"streams", "tail_epsilon", "tail-epsilon", TIDEMARK_FIELD(streams.tail_epsilon),
            "form tail: largest rank error, as a share of the distance from the largest value",
            1e-6, 0.5},
    Setting{"streams", "frequencies", "frequencies", TIDEMARK_FIELD(streams.frequencies),
            "count items, too; false: quantiles alone, which the compact form need not sort for"},
    Setting{"streams", "sums", "sums", TIDEMARK_FIELD(streams.sums),
            "add values up, too, for tight means; of numbers with nothing beside them"},
    Setting{"streams", "sliding_epsilon", "sliding-epsilon",
            TIDEMARK_FIELD(streams.sliding_epsilon),
            "largest error over a sliding window, as a share of its values", 1e-4, 0.2},
    Setting{"window", "min_capacity", "window-min", TIDEMARK_FIELD(window.min_capacity),
            "keys of a quiet stream's window", 16, 1 << 20, true},
    Setting{"window", "max_capacity", "window-max", TIDEMARK_FIELD(window.max_capacity),
            "keys of a busy stream's window", 16, 1 << 20, true},
    Setting{"ingest", "io_threads", "io-threads", TIDEMARK_FIELD(ingest.io_threads),
            "threads that read sockets; 0: one a core, at most 4", 0, 256},
    Setting{"ingest",
            "max_pending_keys",
            "max-pending-keys",
            TIDEMARK_FIELD(ingest.max_pending_keys),
            "keys waiting for a sorter before senders wait; 0: two windows of the largest size "
            "for each sort worker, eight for a GL sorter if that is more, and sixteen more for a "
            "GPU of auto",
            1 << 10,
            kGiB,
            false,
            {},
            true},
    Setting{"ingest", "udp_receive_buffer_bytes", "udp-receive-buffer-bytes",
            TIDEMARK_FIELD(ingest.udp_receive_buffer_bytes), "asked of the kernel for StatsD",
            4 * kKiB, kGiB},
    Setting{
        "store", "durability", "durability", TIDEMARK_FIELD(store.durability),
        "log: batches outlive the process, and are acknowledged when they do; snapshot: they do "
        "by and by",
        0, 0, false, "none snapshot log"},
    Setting{"store", "snapshot_interval_s", "snapshot-interval-s",
            TIDEMARK_FIELD(store.snapshot_interval_s), "from one snapshot to the next", 1,
            7 * 86'400},
    Setting{"store", "sync_interval_us", "sync-interval-us", TIDEMARK_FIELD(store.sync_interval_us),
            "from one sync of the log to the next", 0, 10'000'000},
    Setting{"store", "segment_bytes", "log-segment-bytes", TIDEMARK_FIELD(store.segment_bytes),
            "of one file of the log", kMiB, 4 * kGiB},
    Setting{"store", "max_pending_bytes", "log-pending-bytes",
            TIDEMARK_FIELD(store.max_pending_bytes),
            "taken in and not yet synced; from half of it on sources wait, beyond it batches are "
            "refused",
            kMiB, 64 * kGiB},
    Setting{"limits", "max_streams", "max-streams", TIDEMARK_FIELD(limits.max_streams),
            "streams that may exist", 1, 10'000'000},
    Setting{"limits", "max_name_bytes", "max-name-bytes", TIDEMARK_FIELD(limits.max_name_bytes),
            "bytes of a stream's name", 1, 4096},
    Setting{"limits", "max_batch_bytes", "max-batch-bytes", TIDEMARK_FIELD(limits.max_batch_bytes),
            "bytes of one batch or message", 4 * kKiB, 64 * kMiB},
    Setting{"limits", "max_item_bytes", "max-item-bytes", TIDEMARK_FIELD(limits.max_item_bytes),
            "bytes of one string item", 1, 64 * kKiB},
    Setting{"limits", "max_text_bytes", "max-text-bytes", TIDEMARK_FIELD(limits.max_text_bytes),
            "bytes of text that all string streams hold", 4 * kKiB, 1024 * kGiB},
    Setting{"limits", "max_memory_bytes", "max-memory-bytes",
            TIDEMARK_FIELD(limits.max_memory_bytes),
            "resident bytes; near it the newest and the idlest are refused; 0: no limit", 0,
            1024 * kGiB},
    Setting{"limits", "stream_ttl_s", "stream-ttl-s", TIDEMARK_FIELD(limits.stream_ttl_s),
            "a stream that gets nothing for so long is deleted; 0: never", 0, 3650 * kDay},
    Setting{"limits", "max_producers", "max-producers", TIDEMARK_FIELD(limits.max_producers),
            "producers whose batches are recognised when they come again", 1, 100'000'000},
    Setting{"limits", "max_connections", "max-connections", TIDEMARK_FIELD(limits.max_connections),
            "open connections of each protocol", 1, 1'000'000},
    Setting{"limits", "max_subscriptions", "max-subscriptions",
            TIDEMARK_FIELD(limits.max_subscriptions), "open continuous queries", 1, 1'000'000},
    Setting{"limits", "max_named_subscriptions", "max-named-subscriptions",
            TIDEMARK_FIELD(limits.max_named_subscriptions),
            "continuous queries that are kept under names", 1, 1'000'000},
    Setting{"limits", "max_connections_per_peer", "max-connections-per-peer",
            TIDEMARK_FIELD(limits.max_connections_per_peer),
            "of those, of one peer; 0: half of them", 0, 1'000'000},
    Setting{"limits", "max_calls_per_peer", "max-calls-per-peer",
            TIDEMARK_FIELD(limits.max_calls_per_peer),
            "gRPC calls under way of one peer; 0: half of max_connections", 0, 1'000'000},
    Setting{"limits", "max_bytes_per_peer", "max-bytes-per-peer",
            TIDEMARK_FIELD(limits.max_bytes_per_peer),
            "bytes that one peer has on their way; 0: no limit", 0, 1024 * kGiB},
    Setting{"limits", "max_grpc_bytes", "max-grpc-bytes", TIDEMARK_FIELD(limits.max_grpc_bytes),
            "bytes of gRPC's connections and calls above which it refuses; 0: no limit", 0,
            1024 * kGiB},
    Setting{"limits", "loopback_is_one_peer", "loopback-is-one-peer",
            TIDEMARK_FIELD(limits.loopback_is_one_peer),
            "callers on this machine without a name are one peer, too"},
    Setting{"limits", "idle_timeout_s", "idle-timeout-s", TIDEMARK_FIELD(limits.idle_timeout_s),
            "a silent connection (gRPC: without a call) is closed after this; 0: never", 0,
            30 * kDay},
    Setting{"limits", "http_timeout_s", "http-timeout-s", TIDEMARK_FIELD(limits.http_timeout_s),
            "an HTTP request must be complete within this", 1, 3600},
};

#undef TIDEMARK_FIELD

std::string KindOf(const Scalar& value) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return Quote(v); }
  };
  return std::visit(Visitor{}, value);
}

std::string Expected(std::string_view what, const Scalar& value) {
  return fmt::format("expected {}, not {}", what, KindOf(value));
}

std::string AssignTo(const Setting&, bool* field, const Scalar& value) {
  if (const bool* v = std::get_if<bool>(&value)) {
    *field = *v;
    return "";
  }
  return Expected("true or false", value);
}

std::string AssignTo(const Setting& setting, std::uint64_t* field, const Scalar& value) {
  const auto* v = std::get_if<std::int64_t>(&value);
  const std::string what =
      fmt::format("{}{}{} to {}", setting.or_zero ? "0 or " : "",
                  setting.power_of_two ? "a power of two from " : "a whole number from ",
                  static_cast<std::uint64_t>(setting.min), static_cast<std::uint64_t>(setting.max));
  const auto fits = [&](std::int64_t number) {
    if (setting.or_zero && number == 0) return true;
    const auto as_double = static_cast<double>(number);
    return number >= 0 && as_double >= setting.min && as_double <= setting.max &&
           (!setting.power_of_two || std::has_single_bit(static_cast<std::uint64_t>(number)));
  };
  if (v == nullptr || !fits(*v)) {
    return Expected(what, value);
  }
  *field = static_cast<std::uint64_t>(*v);
  return "";
}

std::string AssignTo(const Setting& setting, double* field, const Scalar& value) {
  double number = std::nan("");
  if (const auto* v = std::get_if<double>(&value)) number = *v;
  if (const auto* v = std::get_if<std::int64_t>(&value)) number = static_cast<double>(*v);
  if (!(number >= setting.min && number <= setting.max)) {
    return Expected(fmt::format("a number from {} to {}", setting.min, setting.max), value);
  }
  *field = number;
  return "";
}

std::string AssignTo(const Setting& setting, std::string* field, const Scalar& value) {
  const auto* v = std::get_if<std::string>(&value);
  if (v == nullptr) return Expected("text", value);
  if (setting.choices.empty()) {
    // Nearly all settings of this kind are paths; the system calls end a path at the first NUL.
    if (v->find('\0') != std::string::npos) return Expected("text without NUL", value);
    *field = *v;
    return "";
  }
  const std::vector<std::string> choices = absl::StrSplit(std::string(setting.choices), ' ');
  if (std::find(choices.begin(), choices.end(), *v) == choices.end()) {
    return fmt::format(
        "{}{}",
        Expected(fmt::format("one of {}",
                             absl::StrReplaceAll(std::string(setting.choices), {{" ", ", "}})),
                 value),
        Suggest(*v, choices));
  }
  *field = *v;
  return "";
}

std::string AssignTo(const Setting&, std::optional<HostPort>* field, const Scalar& value) {
  const auto* v = std::get_if<std::string>(&value);
  if (v == nullptr) return Expected("\"HOST:PORT\" or \"off\"", value);
  if (*v == "off") {
    field->reset();
    return "";
  }
  absl::StatusOr<HostPort> parsed = ParseHostPort(*v);
  if (!parsed.ok()) return std::string(parsed.status().message());
  *field = *std::move(parsed);
  return "";
}

/// The value that `text` stands for in a setting whose member is of the given type; text that does
/// not read as that type stays text, which Assign then refuses with its own words.
Scalar Read(const bool*, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::string(text);
}
Scalar Read(const std::uint64_t*, std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  return std::string(text);
}
Scalar Read(const double*, std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end) return number;
  return std::string(text);
}
Scalar Read(const std::string*, std::string_view text) { return std::string(text); }
Scalar Read(const std::optional<HostPort>*, std::string_view text) { return std::string(text); }

std::string TomlString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string TomlNumber(double value) {
  std::string text = fmt::format("{}", value);  // the shortest form that reads back the same
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

/// Number of insertions, deletions and replacements between two words.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Setting::Name() const { return fmt::format("{}.{}", table, key); }

std::string Setting::EnvName() const {
  return fmt::format("TIDEMARK_{}",
                     absl::AsciiStrToUpper(absl::StrReplaceAll(std::string(flag), {{"-", "_"}})));
}

std::span<const Setting> Settings() { return kSettings; }

std::string Quote(std::string_view text) {
  // Long enough for any path or address that an operator would recognise.
  constexpr std::size_t kMaxBytes = 200;
  const bool cut = text.size() > kMaxBytes;
  return fmt::format("\"{}{}\"", absl::Utf8SafeCEscape(std::string(text.substr(0, kMaxBytes))),
                     cut ? "..." : "");
}

std::string Suggest(std::string_view unknown, std::span<const std::string> known) {
  // Longer words are no typing errors, and the distance costs their product.
  constexpr std::size_t kMaxBytes = 64;
  if (unknown.size() > kMaxBytes) return "";
  // One mistake in three letters still reads as a mistake.
  std::size_t best = std::max<std::size_t>(1, unknown.size() / 3) + 1;
  const auto nearer = [&best](std::string_view word, std::string_view candidate) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (longer - shorter >= best) return false;  // so many letters are to be put in at least
    const std::size_t distance = EditDistance(word, candidate);
    if (distance >= best) return false;
    best = distance;
    return true;
  };
  std::string_view name;
  for (const std::string& candidate : known) {
    if (nearer(unknown, candidate)) name = candidate;
    // The bare key of "table.key" is as good: the table was forgotten or mistaken.
    const std::size_t dot = candidate.find('.');
    if (dot != std::string::npos && nearer(unknown.substr(unknown.find('.') + 1),
                                           std::string_view(candidate).substr(dot + 1))) {
      name = candidate;
    }
  }
  if (name.empty()) return "";
  return fmt::format(" (did you mean \"{}\"?)", name);
}

std::string Assign(const Setting& setting, const Scalar& value, Config& config) {
  return std::visit([&](auto* field) { return AssignTo(setting, field, value); },
                    setting.field(config));
}

std::string AssignText(const Setting& setting, std::string_view text, Config& config) {
  return std::visit([&](auto* field) { return AssignTo(setting, field, Read(field, text)); },
                    setting.field(config));
}

std::string FormatValue(const Setting& setting, const Config& config) {
  struct Visitor {
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const std::uint64_t* v) const { return fmt::format("{}", *v); }
    std::string operator()(const double* v) const { return TomlNumber(*v); }
    std::string operator()(const std::string* v) const { return TomlString(*v); }
    std::string operator()(const std::optional<HostPort>* v) const {
      return TomlString(v->has_value() ? (*v)->ToString() : "off");
    }
  };
  Config copy = config;
  return std::visit(Visitor{}, setting.field(copy));
}

}  // namespace tidemark::server
