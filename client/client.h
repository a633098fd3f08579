// Tidemark's C++ client: streams, values in, answers out.
//
//   tidemark::client::Client client({.server = "127.0.0.1:7070"});
//   auto pusher = client.Push("latency_us");
//   pusher.Write(std::vector<double>{12.5, 17.25, 311});
//   pusher.Finish();
//   for (const auto& a : client.Quantiles("latency_us", {0.5, 0.99}).answers)
//     std::cout << a.phi << " " << FormatValue(a.value) << " rank in [" << a.rank_low << ", "
//               << a.rank_high << "]\n";
//
// No header here includes gRPC or protobuf.
#ifndef TIDEMARK_CLIENT_CLIENT_H_
#define TIDEMARK_CLIENT_CLIENT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/answers.h"
#include "client/error.h"
#include "client/push.h"
#include "client/value.h"

namespace tidemark::client {

struct Connection;  // connection.h, which is not installed

struct ClientOptions {
  std::string server = "127.0.0.1:7070";
  /// For each call that has one answer; pushes and watches run without one.
  std::chrono::milliseconds deadline{10'000};
  /// A silent connection is probed this often while a call is open, so that a long watch notices a
  /// daemon that vanished. gRPC servers end, by default, a client that probes more often than every
  /// 5 minutes: stay above that unless the server is known to allow more.
  std::chrono::milliseconds keepalive{310'000};

  /// TLS, and the files (PEM) that it takes: authorities of the daemon's certificate (empty: the
  /// system's), and the certificate to show with its key (empty: none). Any of them means TLS.
  bool tls = false;
  std::string tls_ca = {};
  std::string tls_cert = {};
  std::string tls_key = {};
  /// Sent with each call, "" for none. Without TLS only to a daemon on this machine.
  std::string token = {};
};

/// Only a part of the stream's history, of a stream that was created with sliding windows.
struct Scope {
  std::uint64_t last_values = 0;           ///< the last so many values; 0: all
  std::chrono::microseconds last_time{0};  ///< the values of the last so much time; 0: all

  bool whole() const { return last_values == 0 && last_time.count() == 0; }
};

struct SpreadOptions {
  double low_phi = 0.25, high_phi = 0.75;  ///< the range between these quantiles
  double trim = 0;                         ///< share left out of the mean at either end
  Scope scope;
};

struct WatchOptions {
  std::chrono::microseconds interval{1'000'000};
  /// Unset: an answer every interval; else only when it moved by more (see query.proto).
  std::optional<double> min_change;
  Scope scope;
};

/// What a continuous query asks for.
struct QuantilesQuery {
  std::vector<double> phi;
};
struct ItemsQuery {
  double support = 0;
  std::uint32_t limit = 0;  ///< only the so many most frequent; 0: all
  bool by_weight = false;
};
struct PrefixesQuery {
  double support = 0;
};
struct SumsQuery {
  std::vector<SumRange> ranges;  ///< over the whole history alone
};
struct WatchQuery {
  std::string stream;
  std::variant<QuantilesQuery, ItemsQuery, PrefixesQuery, SumsQuery> asks;
  WatchOptions options;
};
/// A continuous query that the daemon keeps under a name, as long as it keeps the stream.
struct Subscription {
  std::string name;
  WatchQuery query;
};

/// A continuous query. Thread: Next from one thread, Cancel from any. Destruction cancels.
class Watch {
 public:
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  ~Watch();

  /// Waits for the next answer; nullopt after Cancel. Throws Error when the daemon ends the call.
  std::optional<WatchAnswer> Next();
  void Cancel();

 private:
  friend class Client;
  struct Call;
  explicit Watch(std::unique_ptr<Call> call);
  std::unique_ptr<Call> call_;
};

/// One connection, opened by the first call and opened again by itself when it broke.
/// Errors: every call throws Error; kInvalidArgument, without asking the daemon, for a name or an
/// item that is not UTF-8. Thread: every method from any thread. Lifetime: pushers and
/// watches keep what they need of it.
class Client {
 public:
  /// Throws Error, kInvalidArgument, for files that cannot be read and for a token that would
  /// travel in clear.
  explicit Client(ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const ClientOptions& options() const;

  StreamInfo CreateStream(const std::string& name, const StreamConfig& config = {});
  /// Every stream whose name begins with `prefix`, by name; reads as many pages as there are.
  std::vector<StreamInfo> ListStreams(const std::string& prefix = "");
  StreamInfo DescribeStream(const std::string& name);
  void DeleteStream(const std::string& name);

  /// All that the stream's summaries hold, as the bytes of a tidemark.v1.SummaryFile.
  std::string ExportStream(const std::string& name);
  /// A new stream: the union of what such files hold.
  StreamInfo ImportStream(const std::string& name, const std::vector<std::string>& files);
  /// A new stream: the union of streams of the daemon, which go on unchanged.
  StreamInfo MergeStreams(const std::string& name, const std::vector<std::string>& from);

  Pusher Push(const std::string& stream);
  AcknowledgedPusher PushAcknowledged(const std::string& stream,
                                      AcknowledgedPushOptions options = {});

  QuantilesAnswer Quantiles(const std::string& stream, const std::vector<double>& phi,
                            const Scope& scope = {});
  RanksAnswer Ranks(const std::string& stream, const std::vector<Value>& values,
                    const Scope& scope = {});
  /// That many buckets of nearly equal count.
  HistogramAnswer EquiDepthHistogram(const std::string& stream, std::uint32_t buckets,
                                     const Scope& scope = {});
  /// Buckets between ascending bounds, one below and one above them.
  HistogramAnswer Histogram(const std::string& stream, const std::vector<Value>& bounds,
                            const Scope& scope = {});
  /// limit: only the so many most frequent; 0 means all.
  HeavyHittersAnswer HeavyHitters(const std::string& stream, double support,
                                  std::uint32_t limit = 0, const Scope& scope = {},
                                  bool by_weight = false);
  CountsAnswer Counts(const std::string& stream, const std::vector<Value>& items,
                      const Scope& scope = {}, bool by_weight = false);
  /// Of a stream of addresses or strings with a hierarchy. A scope is not for streams
  /// with weights.
  HierarchicalHeavyHittersAnswer HierarchicalHeavyHitters(const std::string& stream, double support,
                                                          const Scope& scope = {});
  /// Of a stream of pairs.
  SumsAnswer Sums(const std::string& stream, const std::vector<SumRange>& ranges);
  /// Two streams of one type, or one twice with another scope.
  CompareAnswer Compare(const std::string& stream_a, const Scope& scope_a,
                        const std::string& stream_b, const Scope& scope_b, double threshold);

  /// Of a stream of numbers.
  SpreadAnswer Spread(const std::string& stream, const SpreadOptions& options = {});

  Watch WatchQuantiles(const std::string& stream, const std::vector<double>& phi,
                       const WatchOptions& options = {});
  Watch WatchHeavyHitters(const std::string& stream, double support, std::uint32_t limit = 0,
                          const WatchOptions& options = {}, bool by_weight = false);
  Watch WatchHierarchicalHeavyHitters(const std::string& stream, double support,
                                      const WatchOptions& options = {});
  Watch WatchSums(const std::string& stream, const std::vector<SumRange>& ranges,
                  const WatchOptions& options = {});

  /// Of any of the kinds above.
  Watch Begin(const WatchQuery& query);
  /// What the subscription of this name asks for.
  Watch WatchSubscription(const std::string& name);

  /// Keeps it under a name: see subscriptions.proto.
  Subscription Subscribe(const std::string& name, const WatchQuery& query);
  void Unsubscribe(const std::string& name);
  /// Every one whose name begins with `prefix`, by name; reads as many pages as there are.
  std::vector<Subscription> ListSubscriptions(const std::string& prefix = "");

  ServerInfo Info();

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLIENT_H_
