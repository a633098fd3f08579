#include <utility>

#include "server/query/answering.h"
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

absl::Status CheckQuestion(const Stream& stream, const SpreadQuestion& question, const Ask& ask) {
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
  if (ask.width.time_us != 0) {
    return absl::UnimplementedError(
        "a spread over a window by time is not available, since its n is not always exact: ask for "
        "last_values, or the whole history");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SpreadAnswer> QueryEngine::Spread(std::string_view name,
                                                 const SpreadQuestion& question,
                                                 const Ask& ask) const {
  return WithQuantiles<SpreadAnswer>(
      name, ask, true,
      [&]<class Key>(const QuantileView<Key>& view, const Stream& stream,
                     const Coverage& coverage) -> absl::StatusOr<SpreadAnswer> {
        if (absl::Status status = CheckQuestion(stream, question, ask); !status.ok()) return status;
        if (coverage.n == 0) {
          return absl::FailedPreconditionError(
              Concat("stream \"", Printable(stream.name()), "\" has no values"));
        }
        const CdfSteps<Key> steps = view.Steps();
        const ValueOf<Key> number = NumberOf<Key>(stream.type());
        const auto values = [&](const KeyBounds<Key>& keys) {
          return std::pair(DecodeValue(stream.type(), keys.low),
                           DecodeValue(stream.type(), keys.high));
        };
        const auto range =
            RangeBetweenQuantiles(steps, question.low_phi, question.high_phi, number);
        const TrimmedMean mean = TrimmedMeanOf(steps, question.trim, number);
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
      });
}

}  // namespace tidemark::server
