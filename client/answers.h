// What the daemon answers, as plain structures. Field meanings are those of proto/tidemark/v1.
#ifndef TIDEMARK_CLIENT_ANSWERS_H_
#define TIDEMARK_CLIENT_ANSWERS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "client/value.h"

namespace tidemark::client {

/// How a quantile summary is kept. The numbers are those of tidemark.v1.QuantileForm.
enum class QuantileForm : std::uint8_t {
  kUnspecified = 0,  ///< the daemon's configured default
  kHistogram = 1,
  kCompact = 2,
  kTail = 3,
};

/// "histogram", "compact", "tail"; "unspecified".
std::string_view FormName(QuantileForm form);

/// Answers about the most recent values: the largest widths that can be asked for. 0: none.
struct SlidingConfig {
  std::uint64_t max_values = 0;
  std::chrono::microseconds max_time{0};
  double epsilon = 0;  ///< share of the values covered; 0: the daemon's default

  bool any() const { return max_values != 0 || max_time.count() != 0; }
};

struct StreamConfig {
  ValueType type = ValueType::kUnspecified;  ///< unspecified: the daemon's default
  double quantile_epsilon = 0;   ///< share of n; 0: the daemon's default; of what has ranks
  double frequency_epsilon = 0;  ///< share of n; 0: the daemon's default
  PayloadType payload = PayloadType::kNone;
  QuantileForm quantile_form = QuantileForm::kUnspecified;
  double tail_epsilon = 0;      ///< of kTail; 0: the daemon's default
  bool no_frequencies = false;  ///< no counts of items; for what has ranks
  std::optional<bool> sums;     ///< of the values themselves; unset: the daemon's default
  SlidingConfig sliding;
  std::vector<std::uint32_t> prefix_lengths;  ///< of a hierarchy of addresses; empty: none
  std::string separator;    ///< of a hierarchy of strings: one character; empty: none
  std::uint32_t depth = 0;  ///< of one: prefixes of up to so many components; 0: 8
  bool root_last = false;   ///< of one: the last component stands for the most

  /// Of y, or of the values.
  bool HasSums() const { return payload == PayloadType::kY || sums.value_or(false); }
  /// Strings and addresses of ipv6 have counts and no ranks.
  bool HasRanks() const { return type != ValueType::kString && type != ValueType::kIpv6; }
  /// The one that the stream's first answers are within: of ranks, or of counts where there are
  /// none.
  double epsilon() const { return HasRanks() ? quantile_epsilon : frequency_epsilon; }
};

/// What of the values that came for a stream n may not count, beside those that it refused one by
/// one; since the daemon began. See proto/tidemark/v1/streams.proto.
struct Losses {
  /// Values of batches refused whole, each time that they came: n counts those that were sent again
  /// and taken in. Over StatsD nobody was told.
  std::uint64_t refused_whole = 0;
  std::uint64_t dropped_datagrams = 0;  ///< of StatsD, unread, for whatever stream they were
};

struct StreamInfo {
  std::string name;
  StreamConfig config;
  std::uint64_t count = 0;    ///< values taken in
  std::uint64_t refused = 0;  ///< values refused one by one, not part of count
  Losses losses;              ///< what else may not be part of it
  std::uint64_t pending = 0;  ///< values of windows that are not summarised yet
  std::uint64_t window_capacity = 0;
  std::uint64_t window_fill = 0;
  std::uint64_t quantile_bytes = 0;
  std::uint64_t frequency_bytes = 0;
  std::uint64_t sliding_bytes = 0;
  std::uint64_t sum_bytes = 0;
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
  /// Of the n, so many may have come before the scope's time began.
  std::uint64_t n_uncertain = 0;
  /// Values that the stream refused one by one since it began; no answer covers them.
  std::uint64_t refused = 0;
  Losses losses;  ///< what else n may not count
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

/// A prefix of addresses: `address` with zeros behind the first `length` bits; or of strings:
/// `text`, which has `length` components (none: everything). The discounted count is the number of
/// values below it that are below no other prefix of the answer below it.
struct PrefixCount {
  Address address;
  std::optional<std::string> text;
  std::uint32_t length = 0;
  std::uint64_t count_low = 0, count_high = 0;
  std::uint64_t discounted_low = 0, discounted_high = 0;
};
struct HierarchicalHeavyHittersAnswer : AnswerHeader {
  double support = 0;
  std::vector<PrefixCount> prefixes;  ///< largest discounted_high first
};

/// Which pairs (x, y), by their x.
struct AtMostValue {
  Value value;
};
struct BetweenValues {
  Value low, high;  ///< both belong to it
};
struct AtMostShare {
  double phi = 0;  ///< up to the quantile of this share
};
struct BetweenShares {
  double low = 0, high = 0;  ///< above the one quantile, up to the other
};
using SumRange = std::variant<AtMostValue, BetweenValues, AtMostShare, BetweenShares>;
struct SumAnswer {
  SumRange range;
  std::uint64_t count_low = 0, count_high = 0;
  double sum_low = 0, sum_high = 0;
  std::optional<double> average_low, average_high;  ///< unset where there may be no pair
};
struct SumsAnswer : AnswerHeader {
  std::vector<SumAnswer> answers;  ///< in the order asked; none while the stream is empty
};

/// How far apart two distributions are: the largest difference of the shares of values at or below
/// any v.
struct CompareAnswer {
  std::uint64_t n_a = 0, n_b = 0;
  double epsilon_a = 0, epsilon_b = 0;
  /// Of n_a and n_b, so many may have come before the scopes' times began.
  std::uint64_t n_uncertain_a = 0, n_uncertain_b = 0;
  std::uint64_t refused_a = 0, refused_b = 0;
  Losses losses_a, losses_b;  ///< as in AnswerHeader
  double distance_low = 0, distance_high = 0;
  Value value;  ///< where the shares differ by distance_low at least
  double share_a_low = 0, share_a_high = 0, share_b_low = 0, share_b_high = 0;
  std::optional<bool> moved;   ///< whether the distance exceeds the threshold; unset: cannot tell
  double chance_distance = 0;  ///< samples of one distribution exceed it in at most 1 % of cases
};

/// How far values lie apart; every interval holds the truth.
struct SpreadAnswer : AnswerHeader {
  double low_phi = 0, high_phi = 0;
  std::pair<Value, Value> low_quantile, high_quantile;  ///< the true quantiles lie between
  double range_low = 0, range_high = 0;                 ///< their distance
  double trim = 0;                                      ///< share left out at either end
  std::uint64_t trimmed_count = 0;                      ///< values left
  double trimmed_mean_low = 0, trimmed_mean_high = 0;
  std::uint64_t distinct_low = 0, distinct_high = 0;  ///< different values
};

struct WatchAnswer {
  std::variant<QuantilesAnswer, HeavyHittersAnswer, HierarchicalHeavyHittersAnswer, SumsAnswer>
      answer;
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
/// Of a sorter among which requests are divided, as seen: on GL of requests of four windows, on the
/// CPU of one thread.
struct ObservedRate {
  std::string sorter;
  std::uint32_t key_bits = 0;
  std::uint64_t window = 0;
  double keys_per_second = 0;
  std::uint64_t requests = 0;
};
struct RouteCount {
  std::string sorter;
  std::string reason;  ///< faster, busy, probe, only
  std::uint64_t requests = 0;
};
struct SorterInfo {
  std::string requested;
  std::string active;
  std::string reason;
  GlInfo gl;
  std::vector<SorterMeasurement> measurements;
  std::chrono::system_clock::time_point measured_at;
  bool cached = false;  ///< measured at an earlier start
  std::vector<ObservedRate> observed;
  std::vector<RouteCount> routes;
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
