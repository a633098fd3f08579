#include <cstdint>
#include <type_traits>

#include "server/query/answering.h"
#include "summaries/distribution_distance.h"

namespace tidemark::server {
namespace {

// The probability with which chance_distance may be exceeded.
constexpr double kChance = 0.01;

}  // namespace

absl::StatusOr<CompareAnswer> QueryEngine::Compare(std::string_view stream_a, const Ask& ask_a,
                                                   std::string_view stream_b, const Ask& ask_b,
                                                   double threshold) const {
  if (!(threshold >= 0 && threshold <= 1)) {
    return absl::InvalidArgumentError(Concat("threshold ", threshold, " is outside [0, 1]"));
  }
  return WithQuantiles<CompareAnswer>(
      stream_a, ask_a, false,
      [&]<class KeyA>(const QuantileView<KeyA>& a, const Stream& of_a,
                      const Coverage& coverage_a) -> absl::StatusOr<CompareAnswer> {
        return WithQuantiles<CompareAnswer>(
            stream_b, ask_b, false,
            [&]<class KeyB>(const QuantileView<KeyB>& b, const Stream& of_b,
                            const Coverage& coverage_b) -> absl::StatusOr<CompareAnswer> {
              if (of_a.type() != of_b.type()) {
                return absl::InvalidArgumentError(
                    Concat("stream \"", Printable(of_a.name()), "\" holds ",
                           ValueTypeName(of_a.type()), " and \"", Printable(of_b.name()), "\" ",
                           ValueTypeName(of_b.type()), "; expected the same type"));
              }
              CompareAnswer answer;
              answer.a = coverage_a;
              answer.b = coverage_b;
              absl::Status status = NeedsValues(of_a, ask_a, coverage_a);
              status.Update(NeedsValues(of_b, ask_b, coverage_b));
              if (!status.ok()) return status;
              if constexpr (std::is_same_v<KeyA, KeyB>) {
                // Of windows by time the bounds hold for what truly lies inside, as they are
                // (distribution_distance.h).
                const auto distance = DistanceOf(a.Steps(), b.Steps());
                answer.distance_low = distance.low;
                answer.distance_high = distance.high;
                answer.value = DecodeValue(of_a.type(), distance.at);
                answer.share_a_low = distance.share_a.low;
                answer.share_a_high = distance.share_a.high;
                answer.share_b_low = distance.share_b.low;
                answer.share_b_high = distance.share_b.high;
                const Moved moved = HasMoved(distance, threshold);
                if (moved != Moved::kCannotTell) answer.moved = moved == Moved::kYes;
                answer.chance_distance =
                    SignificantDistance(kChance, SurelyIn(coverage_a), SurelyIn(coverage_b));
              }
              return answer;
            });
      });
}

}  // namespace tidemark::server
