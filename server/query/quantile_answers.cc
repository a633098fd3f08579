#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "server/query/answering.h"

namespace tidemark::server {

absl::Status QueryEngine::CheckArguments(std::size_t count, std::string_view what) {
  if (count <= kArgumentsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(count, " ", what, " in one request; expected at most ", kArgumentsMax));
}

absl::StatusOr<QuantilesAnswer> QueryEngine::Quantiles(std::string_view stream,
                                                       std::span<const double> phis,
                                                       const Ask& ask) const {
  if (absl::Status status = CheckArguments(phis.size(), "phi"); !status.ok()) {
    return status;
  }
  for (const double phi : phis) {
    if (!(phi >= 0 && phi <= 1)) {
      return absl::InvalidArgumentError(Concat("phi ", phi, " is outside [0, 1]"));
    }
  }
  const bool ends_matter =
      std::any_of(phis.begin(), phis.end(), [](double phi) { return phi == 0 || phi == 1; });
  return WithQuantiles<QuantilesAnswer>(
      stream, ask, ends_matter,
      [&](const auto& view, const Stream& of,
          const Coverage& coverage) -> absl::StatusOr<QuantilesAnswer> {
        QuantilesAnswer answer{coverage, {}};
        if (view.n() == 0) return answer;
        const auto found = view.Quantiles(phis);
        for (std::size_t i = 0; i < phis.size(); ++i) {
          answer.rows.push_back({phis[i], DecodeValue(of.type(), found[i].value), found[i].rank_low,
                                 found[i].rank_high});
        }
        return answer;
      });
}

absl::StatusOr<RanksAnswer> QueryEngine::Ranks(std::string_view stream,
                                               std::span<const Value> values,
                                               const Ask& ask) const {
  if (absl::Status status = CheckArguments(values.size(), "values"); !status.ok()) {
    return status;
  }
  return WithQuantiles<RanksAnswer>(
      stream, ask, false,
      [&]<class Key>(const QuantileView<Key>& view, const Stream& of,
                     const Coverage& coverage) -> absl::StatusOr<RanksAnswer> {
        RanksAnswer answer{coverage, {}};
        for (const Value& value : values) {
          const absl::StatusOr<KeyPosition> position = PositionOf(of.type(), value);
          if (!position.ok()) return position.status();
          RankRow row{value, 0, 0};
          if (!position->below_all) {
            const RankBounds bounds = view.Bounds(KeyOf<Key>(*position));
            row.rank_low = bounds.at_most_low;
            row.rank_high = bounds.at_most_high;
          }
          answer.rows.push_back(std::move(row));
        }
        return answer;
      });
}

namespace {

// Buckets between ascending keys, with what CountsBetween found for them.
template <class Key>
void FillCounts(const QuantileView<Key>& view, std::span<const Key> bounds,
                std::vector<BucketRow>& rows) {
  const std::vector<CountBounds> counts = view.CountsBetween(bounds);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].count_low = counts[i].low;
    rows[i].count_high = counts[i].high;
  }
}

}  // namespace

absl::StatusOr<HistogramAnswer> QueryEngine::EquiDepthHistogram(std::string_view stream,
                                                                std::uint32_t buckets,
                                                                const Ask& ask) const {
  if (buckets == 0 || buckets > kArgumentsMax) {
    return absl::InvalidArgumentError(Concat(buckets, " buckets; expected 1 to ", kArgumentsMax));
  }
  return WithQuantiles<HistogramAnswer>(
      stream, ask, true,
      [&]<class Key>(const QuantileView<Key>& view, const Stream& of,
                     const Coverage& coverage) -> absl::StatusOr<HistogramAnswer> {
        HistogramAnswer answer{coverage, {}};
        if (view.n() == 0) return answer;
        std::vector<Key> bounds = view.EquiDepthBounds(buckets);
        std::optional<Value> low;
        for (const Key bound : bounds) {
          const Value high = DecodeValue(of.type(), bound);
          answer.rows.push_back({low, high, 0, 0});
          low = high;
        }
        // The greatest value of a window whose first block is cut is not known: no bound then.
        if (view.Bounds(bounds.back()).at_most_low < view.n()) {
          bounds.pop_back();
          answer.rows.back().high.reset();
        }
        FillCounts<Key>(view, bounds, answer.rows);
        return answer;
      });
}

absl::StatusOr<HistogramAnswer> QueryEngine::BoundedHistogram(std::string_view stream,
                                                              std::span<const Value> bounds,
                                                              const Ask& ask) const {
  if (absl::Status status = CheckArguments(bounds.size(), "bounds"); !status.ok()) {
    return status;
  }
  if (bounds.empty()) return absl::InvalidArgumentError("a histogram needs at least one bound");
  return WithQuantiles<HistogramAnswer>(
      stream, ask, false,
      [&]<class Key>(const QuantileView<Key>& view, const Stream& of,
                     const Coverage& coverage) -> absl::StatusOr<HistogramAnswer> {
        HistogramAnswer answer{coverage, {}};
        std::vector<Key> keys;
        std::size_t below_all = 0;
        for (std::size_t i = 0; i < bounds.size(); ++i) {
          const absl::StatusOr<KeyPosition> position = PositionOf(of.type(), bounds[i]);
          if (!position.ok()) return position.status();
          if (position->below_all) {
            // A bound below every value of the type: the bucket that it closes is empty.
            if (!keys.empty()) {
              return absl::InvalidArgumentError(
                  Concat("bound ", i, " is below the one before; expected ascending bounds"));
            }
            ++below_all;
            continue;
          }
          if (!keys.empty() && KeyOf<Key>(*position) < keys.back()) {
            return absl::InvalidArgumentError(
                Concat("bound ", i, " is below the one before; expected ascending bounds"));
          }
          keys.push_back(KeyOf<Key>(*position));
        }
        const std::vector<CountBounds> counts = keys.empty()
                                                    ? std::vector<CountBounds>{{view.n(), view.n()}}
                                                    : view.CountsBetween(keys);
        std::optional<Value> low;
        for (std::size_t i = 0; i <= bounds.size(); ++i) {
          BucketRow row;
          row.low = low;
          if (i < bounds.size()) row.high = bounds[i];
          if (i >= below_all) {
            row.count_low = counts[i - below_all].low;
            row.count_high = counts[i - below_all].high;
          }
          low = row.high;
          answer.rows.push_back(std::move(row));
        }
        return answer;
      });
}

}  // namespace tidemark::server
