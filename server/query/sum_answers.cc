#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "server/query/answering.h"
#include "summaries/correlated_view.h"

namespace tidemark::server {
namespace {

SumRow RowOf(const PairSums& sums) {
  SumRow row{sums.count.low, sums.count.high, sums.sum.low_value(), sums.sum.high_value(), {}};
  if (sums.average) row.average.emplace(sums.average->low, sums.average->high);
  return row;
}

absl::Status CheckShares(double low, double high) {
  if (low >= 0 && low <= high && high <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(Concat("phi ", low, " to ", high,
                                           " is no range of shares; expected ascending ones in [0, "
                                           "1]"));
}

// The sums of one range.
template <class Key>
struct Summing {
  const CorrelatedView<Key>& view;
  ValueType type;

  absl::StatusOr<SumRow> operator()(const AtMostValue& range) const {
    const absl::StatusOr<KeyPosition> position = PositionOf(type, range.value);
    if (!position.ok()) return position.status();
    if (position->below_all) return SumRow{};
    return RowOf(view.Through(KeyOf<Key>(*position)));
  }
  absl::StatusOr<SumRow> operator()(const BetweenValues& range) const {
    const absl::StatusOr<KeyPosition> low = PositionOf(type, range.low);
    if (!low.ok()) return low.status();
    const absl::StatusOr<KeyPosition> high = PositionOf(type, range.high);
    if (!high.ok()) return high.status();
    if (high->below_all) return SumRow{};
    // A low end that the type cannot hold lies just above the key at or below it.
    Key first = low->below_all ? 0 : KeyOf<Key>(*low);
    if (!low->below_all && !low->exact) {
      if (first == static_cast<Key>(-1)) return SumRow{};
      ++first;
    }
    return RowOf(view.Between(first, KeyOf<Key>(*high)));
  }
  absl::StatusOr<SumRow> operator()(const AtMostShare& range) const {
    if (absl::Status status = CheckShares(range.phi, range.phi); !status.ok()) return status;
    if (view.n() == 0) return SumRow{};
    return RowOf(view.ThroughQuantile(range.phi).through_quantile);
  }
  absl::StatusOr<SumRow> operator()(const BetweenShares& range) const {
    if (absl::Status status = CheckShares(range.low, range.high); !status.ok()) return status;
    if (view.n() == 0) return SumRow{};
    return RowOf(view.BetweenQuantiles(range.low, range.high).quantiles);
  }
};

template <class Key>
absl::StatusOr<SumsAnswer> AnswerOf(const CorrelatedView<Key>& sums, const Stream& stream,
                                    std::span<const PairRange> ranges) {
  const StreamSettings& settings = stream.settings();
  SumsAnswer answer{{sums.n(), settings.quantile_epsilon, 0, stream.Losses()}, {}};
  for (const PairRange& range : ranges) {
    const absl::StatusOr<SumRow> row = std::visit(Summing<Key>{sums, settings.type}, range);
    if (!row.ok()) return row.status();
    // Of an empty stream there is nothing to say; what is wrong with a range is said.
    if (sums.n() > 0) answer.rows.push_back(*row);
  }
  return answer;
}

}  // namespace

absl::StatusOr<SumsAnswer> QueryEngine::Sums(std::string_view name,
                                             std::span<const PairRange> ranges,
                                             Deadline deadline) const {
  if (absl::Status status = CheckArguments(ranges.size(), "ranges"); !status.ok()) {
    return status;
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (!(*stream)->settings().summaries().summed()) {
    return absl::FailedPreconditionError(Concat(
        "stream \"", Printable(name), "\" holds ", ElementTypeName((*stream)->settings().element()),
        "; sums need values with y, or a stream created with sums of its values"));
  }
  return WithRanked(**stream,
                    [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<SumsAnswer> {
                      const absl::StatusOr<StreamView<Key>> view = keyed.View(Rule<Key>(deadline));
                      if (!view.ok()) return view.status();
                      return WithSums(keyed, *view, [&](const CorrelatedView<Key>& sums) {
                        return AnswerOf(sums, static_cast<const Stream&>(keyed), ranges);
                      });
                    });
}

}  // namespace tidemark::server
