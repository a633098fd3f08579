// What the daemon answers, as plain structures. Field meanings are those of proto/tidemark/v1.
#ifndef TIDEMARK_CLIENT_ANSWERS_H_
#define TIDEMARK_CLIENT_ANSWERS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/value.h"

namespace tidemark::client {

struct StreamConfig {
  ValueType type = ValueType::kUnspecified;  ///< unspecified: the daemon's default
  double quantile_epsilon = 0;   ///< share of n; 0: the daemon's default; strings have no quantiles
  double frequency_epsilon = 0;  ///< share of n; 0: the daemon's default
  PayloadType payload = PayloadType::kNone;

  /// The one that the stream's first answers are within: of counts for strings, else of ranks.
  double epsilon() const {
    return type == ValueType::kString ? frequency_epsilon : quantile_epsilon;
  }
};

struct StreamInfo {
  std::string name;
  StreamConfig config;
  std::uint64_t count = 0;    ///< values taken in
  std::uint64_t refused = 0;  ///< values refused, not part of count
  std::uint64_t pending = 0;  ///< values of windows that are not summarised yet
  std::uint64_t window_capacity = 0;
  std::uint64_t window_fill = 0;
  std::uint64_t quantile_bytes = 0;
  std::uint64_t frequency_bytes = 0;
  std::uint64_t window_bytes = 0;
  std::uint64_t dictionary_bytes = 0;
  std::uint64_t windows_summarized = 0;
  bool exact = false;  ///< no summary has dropped anything yet
};

/// What every query answer begins with.
struct AnswerHeader {
  std::string stream;
  std::uint64_t n = 0;  ///< values that the answer covers
  double epsilon = 0;   ///< the configured error, as a share of n
};

/// `value` is an element of the stream whose true rank lies in [rank_low, rank_high].
struct QuantileAnswer {
  double phi = 0;
  Value value;
  std::uint64_t rank_low = 0;
  std::uint64_t rank_high = 0;
};
struct QuantilesAnswer : AnswerHeader {
  std::vector<QuantileAnswer> answers;
};

/// The number of values <= value lies in [rank_low, rank_high].
struct RankAnswer {
  Value value;
  std::uint64_t rank_low = 0;
  std::uint64_t rank_high = 0;
};
struct RanksAnswer : AnswerHeader {
  std::vector<RankAnswer> answers;
};

/// Values v with low < v <= high; no low: from the smallest value on, no high: unbounded.
struct HistogramBucket {
  std::optional<Value> low;
  std::optional<Value> high;
  std::uint64_t count_low = 0;
  std::uint64_t count_high = 0;
};
struct HistogramAnswer : AnswerHeader {
  std::vector<HistogramBucket> buckets;
};

/// The item's true count lies in [count_low, count_high].
struct ItemCount {
  Value value;
  std::uint64_t count_low = 0;
  std::uint64_t count_high = 0;
};
struct HeavyHittersAnswer : AnswerHeader {
  double support = 0;
  std::vector<ItemCount> items;  ///< largest count_high first
};
struct CountsAnswer : AnswerHeader {
  std::vector<ItemCount> items;  ///< in the order asked
};

struct WatchAnswer {
  std::variant<QuantilesAnswer, HeavyHittersAnswer> answer;
  std::uint64_t skipped = 0;  ///< answers replaced by newer ones since the call began
  std::chrono::system_clock::time_point time;
};

struct GlInfo {
  bool available = false;
  std::string error;
  std::string vendor;
  std::string renderer;
  std::string version;
  bool software = false;
};
struct SorterMeasurement {
  std::uint32_t key_bits = 0;
  std::uint64_t window = 0;
  std::string sorter;
  std::string algorithm;
  double keys_per_second = 0;
  bool chosen = false;
};
struct SorterInfo {
  std::string requested;
  std::string active;
  std::string reason;
  GlInfo gl;
  std::vector<SorterMeasurement> measurements;
};
struct Endpoint {
  std::string name;  ///< grpc, tcp, http, statsd
  std::string address;
};
struct Limits {
  std::uint64_t max_streams = 0;
  std::uint64_t max_name_bytes = 0;
  std::uint64_t max_batch_bytes = 0;
  std::uint64_t max_item_bytes = 0;
  std::uint64_t max_subscriptions = 0;
  std::uint64_t max_connections = 0;
};
struct ServerInfo {
  std::string version;
  SorterInfo sorter;
  std::vector<Endpoint> endpoints;
  Limits limits;
  std::uint64_t streams = 0;
  std::uint64_t values = 0;
  std::chrono::microseconds uptime{0};
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_ANSWERS_H_
