// Answers: each a function of one consistent view of a stream, with its certificate.
//
// Cost: a view copies and sorts the open window (at most 2^18 keys, under a millisecond; kept until
// the window changes); each φ is a search over a few ten thousand samples. Nothing here stops
// ingest: the stream's lock is held for the copy alone.
#ifndef TIDEMARK_SERVER_QUERY_QUERY_ENGINE_H_
#define TIDEMARK_SERVER_QUERY_QUERY_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/query/value.h"
#include "server/window/keyed_stream.h"

namespace tidemark::server {

class Pipeline;

/// How many values an answer covers and the error that was configured, as a share of n.
struct Coverage {
  std::uint64_t n = 0;
  double epsilon = 0;
  /// Of the n, so many may lie outside of a window by time: its border is not known more exactly.
  std::uint64_t uncertain = 0;
  StreamLosses losses;  ///< what n may not count
};

/// See proto/tidemark/v1/query.proto for what the bounds mean.
struct QuantileRow {
  double phi = 0;
  Value value;
  std::uint64_t rank_low = 0;
  std::uint64_t rank_high = 0;
};
struct QuantilesAnswer {
  Coverage coverage;
  std::vector<QuantileRow> rows;  ///< one for each φ; none while the stream is empty
};

struct RankRow {
  Value value;
  std::uint64_t rank_low = 0;
  std::uint64_t rank_high = 0;
};
struct RanksAnswer {
  Coverage coverage;
  std::vector<RankRow> rows;
};

/// Values v with low < v <= high.
struct BucketRow {
  std::optional<Value> low;
  std::optional<Value> high;
  std::uint64_t count_low = 0;
  std::uint64_t count_high = 0;
};
struct HistogramAnswer {
  Coverage coverage;
  std::vector<BucketRow> rows;
};

struct ItemRow {
  Value value;
  std::uint64_t count_low = 0;
  std::uint64_t count_high = 0;
};
struct ItemsAnswer {
  Coverage coverage;
  double support = 0;
  std::vector<ItemRow> rows;
};

/// A prefix of addresses or of strings; see proto/tidemark/v1/query.proto.
struct PrefixRow {
  Value prefix;
  int length = 0;  ///< bits, or components
  std::uint64_t count_low = 0, count_high = 0;
  std::uint64_t discounted_low = 0, discounted_high = 0;
};
struct PrefixesAnswer {
  Coverage coverage;
  double support = 0;
  std::vector<PrefixRow> rows;
};

/// Pairs (x, y) by their x.
struct AtMostValue {
  Value value;
};
struct BetweenValues {
  Value low, high;  ///< both belong to it
};
struct AtMostShare {
  double phi = 0;
};
struct BetweenShares {
  double low = 0, high = 0;  ///< above the one quantile, at or below the other
};
using PairRange = std::variant<AtMostValue, BetweenValues, AtMostShare, BetweenShares>;
struct SumRow {
  std::uint64_t count_low = 0, count_high = 0;
  double sum_low = 0, sum_high = 0;
  std::optional<std::pair<double, double>> average;
};
struct SumsAnswer {
  Coverage coverage;
  std::vector<SumRow> rows;  ///< one for each range; none while the stream is empty
};

struct CompareAnswer {
  Coverage a, b;
  double distance_low = 0, distance_high = 0;
  Value value;
  double share_a_low = 0, share_a_high = 0, share_b_low = 0, share_b_high = 0;
  std::optional<bool> moved;  ///< unset: cannot tell
  double chance_distance = 0;
};

struct SpreadQuestion {
  double low_phi = 0.25, high_phi = 0.75;
  double trim = 0;
};
/// See proto/tidemark/v1/query.proto.
struct SpreadAnswer {
  Coverage coverage;
  SpreadQuestion question;
  std::pair<Value, Value> low_quantile, high_quantile;
  double range_low = 0, range_high = 0;
  std::uint64_t trimmed_count = 0;
  double mean_low = 0, mean_high = 0;
  std::uint64_t distinct_low = 0, distinct_high = 0;
};

/// What every question says beside its subject.
struct Ask {
  constexpr Ask(std::chrono::steady_clock::time_point deadline_in,  // NOLINT: no more to say
                SlidingWidth width_in = {})
      : deadline(deadline_in), width(width_in) {}

  std::chrono::steady_clock::time_point deadline;
  SlidingWidth width;  ///< of the most recent values; neither values nor time: the whole history

  bool whole() const { return width.values == 0 && width.time_us == 0; }
};

/// Thread: any. Every call may wait, up to `deadline` (not with kAtOnce), for windows of the stream
/// that are being sorted. Errors of all: NOT_FOUND, INVALID_ARGUMENT (naming the argument),
/// FAILED_PRECONDITION (quantiles of a string stream), DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (the
/// answer is too large).
class QueryEngine {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  /// A deadline for callers that must not be held up: an answer that would have to wait, or to sort
  /// more than kAtOnceKeys values of an open window, is DEADLINE_EXCEEDED at once.
  static constexpr Deadline kAtOnce = kAtOnceDeadline;
  /// φ, values or items of one request.
  static constexpr std::size_t kArgumentsMax = 10'000;
  /// INVALID_ARGUMENT for more; `what` names them. The calls that take them look, too.
  static absl::Status CheckArguments(std::size_t count, std::string_view what);
  /// Rows of one answer, and bytes of it as a message: what a gRPC client receives by default. More
  /// is RESOURCE_EXHAUSTED, never cut in silence.
  static constexpr std::size_t kRowsMax = kArgumentsMax;
  static constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;

  explicit QueryEngine(Pipeline& pipeline) : pipeline_(pipeline) {}

  absl::StatusOr<QuantilesAnswer> Quantiles(std::string_view stream, std::span<const double> phis,
                                            const Ask& ask) const;
  absl::StatusOr<RanksAnswer> Ranks(std::string_view stream, std::span<const Value> values,
                                    const Ask& ask) const;
  absl::StatusOr<HistogramAnswer> EquiDepthHistogram(std::string_view stream, std::uint32_t buckets,
                                                     const Ask& ask) const;
  absl::StatusOr<HistogramAnswer> BoundedHistogram(std::string_view stream,
                                                   std::span<const Value> bounds,
                                                   const Ask& ask) const;
  /// `by_weight`: counts are sums of weights (FAILED_PRECONDITION for a stream without).
  absl::StatusOr<ItemsAnswer> HeavyHitters(std::string_view stream, double support,
                                           std::uint32_t limit, const Ask& ask,
                                           bool by_weight = false) const;
  absl::StatusOr<ItemsAnswer> Counts(std::string_view stream, std::span<const Value> items,
                                     const Ask& ask, bool by_weight = false) const;
  absl::StatusOr<PrefixesAnswer> HierarchicalHeavyHitters(std::string_view stream, double support,
                                                          const Ask& ask) const;
  absl::StatusOr<SumsAnswer> Sums(std::string_view stream, std::span<const PairRange> ranges,
                                  Deadline deadline) const;
  absl::StatusOr<CompareAnswer> Compare(std::string_view stream_a, const Ask& ask_a,
                                        std::string_view stream_b, const Ask& ask_b,
                                        double threshold) const;
  absl::StatusOr<SpreadAnswer> Spread(std::string_view stream, const SpreadQuestion& question,
                                      const Ask& ask) const;
  /// Everything that the stream's summaries hold, for export and merging.
  absl::StatusOr<StreamState> State(std::string_view stream, Deadline deadline) const;

 private:
  template <class Key>
  ViewRule<Key> Rule(Deadline deadline) const;
  /// Calls `answer(view, stream, coverage)` with the QuantileView of a numeric stream.
  /// `ends_matter`: minimum and maximum are part of the answer, so that no value may be unseen.
  template <class Answer>
  absl::StatusOr<Answer> WithQuantiles(std::string_view name, const Ask& ask, bool ends_matter,
                                       const auto& answer) const;
  /// Calls `answer(view, stream, coverage)` with the view of a stream's items.
  template <class Answer, class Key>
  absl::StatusOr<Answer> WithItems(const KeyedStream<Key>& stream, const Ask& ask, bool by_weight,
                                   const auto& answer) const;

  Pipeline& pipeline_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_QUERY_QUERY_ENGINE_H_
