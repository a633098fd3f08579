// Which summaries a stream keeps, and how.
#ifndef TIDEMARK_SERVER_SUMMARIZE_SUMMARY_OPTIONS_H_
#define TIDEMARK_SERVER_SUMMARIZE_SUMMARY_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "summaries/correlated_sums.h"

namespace tidemark::server {

/// How the quantile summary is kept. The numbers are those of tidemark.v1.QuantileForm.
enum class QuantileKind : std::uint8_t { kHistogram = 1, kCompact = 2, kTail = 3 };
/// "histogram", "compact", "tail".
std::string_view QuantileKindName(QuantileKind form);
std::optional<QuantileKind> ParseQuantileKind(std::string_view name);

/// Answers about the most recent values: the largest widths that can be asked for. 0: none.
struct SlidingSettings {
  std::uint64_t values_max = 0;
  std::int64_t time_max_us = 0;
  double epsilon = 0.01;

  bool any() const { return values_max != 0 || time_max_us != 0; }
  friend bool operator==(const SlidingSettings&, const SlidingSettings&) = default;
};

/// Which prefixes are counted.
struct HierarchySettings {
  std::vector<int> prefix_lengths;  ///< of addresses: in bits, ascending; empty: none
  int depth = 0;                    ///< of strings: up to so many components; 0: none
  char separator = '.';             ///< between them
  bool root_last = false;           ///< the last one stands for the most

  bool any() const { return !prefix_lengths.empty() || depth > 0; }
  friend bool operator==(const HierarchySettings&, const HierarchySettings&) = default;
};

struct SummaryOptions {
  std::optional<double> quantile_epsilon;  ///< unset: no quantiles (strings)
  QuantileKind quantile_form = QuantileKind::kHistogram;
  double tail_epsilon = 0.005;              ///< of QuantileKind::kTail
  std::optional<double> frequency_epsilon;  ///< unset: no counts of items
  SlidingSettings sliding;
  HierarchySettings hierarchy;
  bool weights = false;  ///< payloads are weights
  bool sums = false;     ///< payloads are the bits of doubles, the y of pairs
  /// What the values are where they are summed themselves, as their own y (value_sums.h). Not
  /// beside payloads.
  std::optional<SumType> value_sums;

  /// What y are; unset: nothing is summed.
  std::optional<SumType> summed() const {
    return sums ? std::optional(SumType::kFloat64) : value_sums;
  }
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_SUMMARY_OPTIONS_H_
