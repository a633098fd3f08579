#include <algorithm>
#include <limits>
#include <utility>

#include "server/query/answering.h"
#include "summaries/key_codec.h"
#include "summaries/value_spread.h"

namespace tidemark::server {
namespace {

template <class Key>
ValueOf<Key> NumberOf(ValueType type) {
  if constexpr (sizeof(Key) == 4) {
    return type == ValueType::kFloat32 ? Float32Value : Uint32Value;
  } else {
    switch (type) {
      case ValueType::kFloat64:
        return Float64Value;
      case ValueType::kInt64:
        return Int64Value;
      default:
        return Uint64Value;
    }
  }
}

/// The keys of the least and the greatest value. (Beyond those of the infinities lie NaN.)
template <class Key>
KeyBounds<Key> KeysOf(ValueType type) {
  const auto floats = [](auto infinity) {
    return KeyBounds<Key>{static_cast<Key>(EncodeKey(-infinity)),
                          static_cast<Key>(EncodeKey(infinity))};
  };
  if (type == ValueType::kFloat32) return floats(std::numeric_limits<float>::infinity());
  if (type == ValueType::kFloat64) return floats(std::numeric_limits<double>::infinity());
  return {0, std::numeric_limits<Key>::max()};
}

absl::Status CheckQuestion(const Stream& stream, const SpreadQuestion& question) {
  if (!(question.low_phi >= 0 && question.low_phi <= question.high_phi && question.high_phi <= 1)) {
    return absl::InvalidArgumentError(Concat("shares ", question.low_phi, " and ",
                                             question.high_phi, " do not ascend in [0, 1]"));
  }
  if (!(question.trim >= 0 && question.trim < 0.5)) {
    return absl::InvalidArgumentError(Concat("trim ", question.trim, " is outside [0, 0.5)"));
  }
  if (stream.type() == ValueType::kIpv4) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(stream.name()),
               "\" holds addresses, which have an order but no distances"));
  }
  return absl::OkStatus();
}

/// `sums`: of the same values, where the stream sums them; else null.
template <class Key>
absl::StatusOr<SpreadAnswer> AnswerOf(const QuantileView<Key>& view, const Stream& stream,
                                      const Ask& ask, const Coverage& coverage,
                                      const SpreadQuestion& question,
                                      const CorrelatedView<Key>* sums) {
  if (absl::Status status = NeedsValues(stream, ask, coverage); !status.ok()) return status;
  const CdfSteps<Key> steps = view.Steps();
  const ValueOf<Key> number = NumberOf<Key>(stream.type());
  // All that steps say of windows by time holds for the values truly inside (cdf_steps.h,
  // value_spread.h).
  const auto values = [&, ends = KeysOf<Key>(stream.type())](const KeyBounds<Key>& keys) {
    return std::pair(DecodeValue(stream.type(), std::max(keys.low, ends.low)),
                     DecodeValue(stream.type(), std::min(keys.high, ends.high)));
  };
  const auto range = RangeBetweenQuantiles(steps, question.low_phi, question.high_phi, number);
  TrimmedMean mean = TrimmedMeanOf(steps, question.trim, number);
  if (sums != nullptr) {
    // Both hold the mean.
    mean.mean = Intersection(mean.mean, TrimmedMeanOf(*sums, question.trim, number).mean);
  }
  const CountBounds distinct = DistinctValues(steps);
  return SpreadAnswer{coverage,
                      question,
                      values(range.low_quantile),
                      values(range.high_quantile),
                      range.range.low,
                      range.range.high,
                      mean.count,
                      mean.mean.low,
                      mean.mean.high,
                      distinct.low,
                      distinct.high};
}

}  // namespace

absl::StatusOr<SpreadAnswer> QueryEngine::Spread(std::string_view name,
                                                 const SpreadQuestion& question,
                                                 const Ask& ask) const {
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (absl::Status status = NeedsNumbers(**stream); !status.ok()) return status;
  if (absl::Status status = CheckQuestion(**stream, question); !status.ok()) return status;
  if (!ask.whole() || !(*stream)->settings().sums) {
    return WithQuantiles<SpreadAnswer>(
        name, ask, true,
        [&]<class Key>(const QuantileView<Key>& view, const Stream& of, const Coverage& coverage) {
          return AnswerOf<Key>(view, of, ask, coverage, question, nullptr);
        });
  }
  return WithRanked(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<SpreadAnswer> {
        const absl::StatusOr<StreamView<Key>> view = keyed.View(Rule<Key>(ask.deadline));
        if (!view.ok()) return view.status();
        const QuantileView<Key> quantiles(view->summaries.quantiles, view->open->keys());
        return WithSums(keyed, *view, [&](const CorrelatedView<Key>& sums) {
          return AnswerOf<Key>(quantiles, keyed, ask,
                               Coverage{quantiles.n(), quantiles.epsilon(), 0, keyed.Losses()},
                               question, &sums);
        });
      });
}

}  // namespace tidemark::server
