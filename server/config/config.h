// Every setting of the daemon, with its default. Light on purpose: neither the TOML nor the command
// line library is seen here.
//
// A setting has one name in three forms, listed in settings.cc:
//   file         limits.max_streams = 100000      (table and key, TOML)
//   environment  TIDEMARK_MAX_STREAMS=100000      (TIDEMARK_ and the flag in capitals)
//   flag         --max-streams 100000
// Flags win over the environment, the environment over the file, the file over the defaults here.
#ifndef TIDEMARK_SERVER_CONFIG_CONFIG_H_
#define TIDEMARK_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/host_port.h"

namespace tidemark::server {

struct Config {
  /// Where the daemon listens; nullopt (written "off"): that protocol is not served.
  struct Listen {
    std::optional<HostPort> grpc = HostPort{"127.0.0.1", 7070};
    std::optional<HostPort> tcp = HostPort{"127.0.0.1", 7071};
    std::optional<HostPort> http = HostPort{"127.0.0.1", 7072};
    /// UDP and TCP, the same port for both.
    std::optional<HostPort> statsd = HostPort{"127.0.0.1", 8125};
    /// Lets a listener be reached from other machines without TLS or without rules.
    bool allow_insecure = false;
    friend bool operator==(const Listen&, const Listen&) = default;
  };

  /// Who may do what: docs/operations.md.
  struct Access {
    /// A file of rules (server/access/policy.h); empty: everybody may do everything.
    std::string rules_file;
    friend bool operator==(const Access&, const Access&) = default;
  };

  /// PEM files. With a certificate the listeners below speak TLS alone.
  struct Tls {
    std::string cert_file;
    std::string key_file;
    /// Authorities of clients' certificates; empty: none is asked for.
    std::string client_ca_file;
    bool require_client_cert = false;
    /// Separated by blanks; of statsd the TCP half. UDP is never encrypted.
    std::string listeners = "grpc tcp http statsd";
    /// From accepting a connection to the end of its handshake. gRPC: to its first bytes, and as
    /// long again to the end of that and of HTTP/2's.
    std::uint64_t handshake_timeout_s = 10;
    /// So many handshakes begin a second at most over gRPC, whose threads answer calls, too; the
    /// others wait for their turn. 0: there is no limit.
    std::uint64_t grpc_handshakes_per_s = 500;
    friend bool operator==(const Tls&, const Tls&) = default;
  };

  struct Daemon {
    /// A folder that must exist and be writable; empty: none. What outlives the process is in it.
    std::string data_dir;
    /// From ready to stop, the ports in use are here as one JSON object; empty: nowhere.
    std::string ports_file;
    /// What a SIGTERM leaves for draining before the process ends anyway.
    std::uint64_t shutdown_deadline_s = 10;
    friend bool operator==(const Daemon&, const Daemon&) = default;
  };

  struct Log {
    std::string level = "info";   ///< debug, info, warn, error
    std::string format = "auto";  ///< text, json; auto: text on a terminal, json elsewhere
    friend bool operator==(const Log&, const Log&) = default;
  };

  struct Sort {
    std::string sorter = "auto";  ///< auto, cpu, gl-compute, gl-bitonic, gl-abisort, gl-pbsn
    /// Threads that sort and summarise; 0: as many as the machine has cores, and three that wait
    /// for a GPU where auto uses one.
    std::uint64_t workers = 0;
    /// Lets `auto` open a software rasteriser: about 90 MB, never the fastest.
    bool allow_software_gl = false;
    /// Time that `auto` may spend at start on finding the fastest sorter.
    std::uint64_t measure_budget_ms = 600;
    /// A GPU that takes longer for a request hangs: the CPU takes over. A software rasteriser needs
    /// seconds for large windows.
    std::uint64_t gl_timeout_ms = 60'000;
    /// Measures at this start though daemon.data_dir has what an earlier one found.
    bool measure_again = false;
    friend bool operator==(const Sort&, const Sort&) = default;
  };

  /// What a stream gets that is created without saying so. See proto/tidemark/v1/streams.proto.
  struct Streams {
    std::string type = "float64";  ///< as ValueTypeName() writes it
    double quantile_epsilon = 0.001;
    double frequency_epsilon = 0.0001;
    std::string quantile_form = "histogram";  ///< histogram, compact, tail
    double tail_epsilon = 0.005;
    bool frequencies = true;
    bool sums = false;
    double sliding_epsilon = 0.01;
    friend bool operator==(const Streams&, const Streams&) = default;
  };

  /// Keys of one window: powers of two, min <= max. A stream starts at min and grows with its rate.
  struct Window {
    std::uint64_t min_capacity = std::uint64_t{1} << 8;
    std::uint64_t max_capacity = std::uint64_t{1} << 18;
    friend bool operator==(const Window&, const Window&) = default;
  };

  struct Ingest {
    /// Threads that read sockets; 0: as many as the machine has cores, 4 at most.
    std::uint64_t io_threads = 0;
    /// Keys of full windows that may wait for a sorter, or be sorted, before sources are told to
    /// stop reading; eight bytes of strings' text count as one more key. 0: two windows of the
    /// largest size for each sort worker, eight for a GL sorter if that is more; sixteen beside
    /// those of the workers where auto uses GPU and CPU. Twice as many bring no more values in (two
    /// workers) and make queries of a busy stream wait longer.
    std::uint64_t max_pending_keys = 0;
    /// Asked of the kernel for the StatsD socket. 32 MiB held 10 million lines/s without loss where
    /// the default of 208 KiB lost more than half.
    std::uint64_t udp_receive_buffer_bytes = std::uint64_t{32} << 20;
    friend bool operator==(const Ingest&, const Ingest&) = default;
  };

  /// What outlives the process, in daemon.data_dir.
  struct Store {
    /// none: nothing. snapshot: all streams, now and then, and when the daemon stops. log:
    /// definitions of streams and every batch, and snapshots, so that a start need not read all of
    /// it; a batch is acknowledged when it is synced.
    std::string durability = "none";
    /// From one snapshot to the next. In mode snapshot a crash loses so much; in mode log a start
    /// replays so much, twice that if the newest snapshot is damaged.
    std::uint64_t snapshot_interval_s = 300;
    /// From one sync to the next, while batches come. An acknowledgement waits for at most so long
    /// and two syncs; each is worth as many batches as came meanwhile. 0: one after the other.
    std::uint64_t sync_interval_us = 5'000;
    /// Of one file of the log. A start holds one in memory.
    std::uint64_t segment_bytes = std::uint64_t{64} << 20;
    /// Taken in and not yet synced; beyond, batches are refused with UNAVAILABLE. At 2 GB/s a disk
    /// has 32 ms to sync these.
    std::uint64_t max_pending_bytes = std::uint64_t{64} << 20;
    friend bool operator==(const Store&, const Store&) = default;
  };

  /// Each bounds memory that a client could otherwise make the daemon take.
  struct Limits {
    std::uint64_t max_streams = 100'000;
    std::uint64_t max_name_bytes = 512;
    std::uint64_t max_batch_bytes = std::uint64_t{4} << 20;
    std::uint64_t max_item_bytes = 1024;
    /// Text that all string streams hold together, in windows and summaries, with its tables.
    /// 256 MiB are 64 windows as full of text as a window may be.
    std::uint64_t max_text_bytes = std::uint64_t{256} << 20;
    /// Resident bytes of the process; 0: there is no limit. Near it the newest streams are refused
    /// first, then the idlest (server/window/memory_guard.h).
    std::uint64_t max_memory_bytes = 0;
    /// A stream to which nothing came for so long is deleted, its definition too; 0: never.
    std::uint64_t stream_ttl_s = 0;
    /// Producers that number their batches, those of all streams together: about 650 bytes each.
    std::uint64_t max_producers = 100'000;
    /// Open connections of each protocol.
    std::uint64_t max_connections = 1000;
    std::uint64_t max_subscriptions = 1000;
    /// Kept under names, at most 16 KiB each.
    std::uint64_t max_named_subscriptions = 1000;
    /// Of one peer (server/access/peers.h). 0: half of max_connections, so that who takes all locks
    /// no one else out. Calls are those of gRPC under way.
    std::uint64_t max_connections_per_peer = 0;
    std::uint64_t max_calls_per_peer = 0;
    /// Of one peer: read buffers of framed TCP and StatsD, handles of framed TCP, requests of gRPC
    /// and their answers until those have left; 0: no limit. Room for 512 connections with usual
    /// read buffers.
    std::uint64_t max_bytes_per_peer = std::uint64_t{256} << 20;
    /// Of messages, connections and calls before and behind the services, above which gRPC refuses
    /// or cuts some; 0: no limit. It looks now and then, so that more may be held meanwhile.
    std::uint64_t max_grpc_bytes = std::uint64_t{512} << 20;
    /// Callers on this machine who show no name share these too.
    bool loopback_is_one_peer = false;
    /// A connection of framed TCP or StatsD that has sent nothing for so long is closed, and one of
    /// gRPC without a call; 0: never.
    std::uint64_t idle_timeout_s = 600;
    /// An HTTP connection must send its whole request, or its next one, within this time.
    std::uint64_t http_timeout_s = 30;
    friend bool operator==(const Limits&, const Limits&) = default;
  };

  Listen listen;
  Access access;
  Tls tls;
  Daemon daemon;
  Log log;
  Sort sort;
  Streams streams;
  Window window;
  Ingest ingest;
  Store store;
  Limits limits;

  friend bool operator==(const Config&, const Config&) = default;
};

/// Whether `listener` (grpc, tcp, http, statsd) speaks TLS.
bool UsesTls(const Config& config, std::string_view listener);

/// Whether the address is reached from this machine alone: 127.x.x.x, ::1 or localhost. Other names
/// are not looked up, and count as reached from everywhere.
bool IsLoopback(const HostPort& address);

/// The listeners that other machines reach without TLS, or without rules, each with what it lacks:
/// `listen.tcp (0.0.0.0:7071) has neither TLS nor rules`.
std::vector<std::string> InsecureListeners(const Config& config);

/// As std::getenv: the value of an environment variable, nullptr if it is not set.
using EnvLookup = std::function<const char*(const char* name)>;

/// What the command line asks for.
struct ParsedArgs {
  enum class Action {
    kRun,           ///< run the daemon with `config`
    kPrintAndExit,  ///< --help, --version, --check-config: print `text` on stdout, exit with
                    ///< `exit_code`
  };
  Action action = Action::kRun;
  Config config;
  /// --check-config: of the files that `config` names, those of [access] and [tls] are still to be
  /// checked.
  bool check_config = false;
  std::string text;
  int exit_code = 0;
};

/// Reads flags, environment and the file named by --config or TIDEMARK_CONFIG, and checks the
/// whole: ranges, settings that contradict each other, the data folder (by writing a file into it).
/// Calling it again with the same arguments is how a reload reads the settings anew.
/// Errors: INVALID_ARGUMENT; the message has one line for each fault, each naming where it is
/// (`tidemark.toml:12:3:`, `TIDEMARK_GRPC:`, `--grpc:`), what is wrong and what was expected.
/// main() prints it to stderr and exits with 2.
absl::StatusOr<ParsedArgs> ParseCommandLine(int argc, const char* const* argv,
                                            const EnvLookup& env);

/// Reads TOML text over `config`. `file` is only for messages. Keys that do not exist are errors.
/// Errors: INVALID_ARGUMENT, one line for each fault; `config` is then unchanged.
absl::Status ApplyToml(std::string_view text, std::string_view file, Config& config);

/// The whole configuration as TOML that ApplyToml reads back to the same value.
std::string ToToml(const Config& config);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_CONFIG_CONFIG_H_
