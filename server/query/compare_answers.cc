#include <algorithm>
#include <cmath>
#include <utility>

#include "server/query/answering.h"
#include "summaries/distribution_distance.h"

namespace tidemark::server {
namespace {

// A window by time may hold fewer values than the view has: of n, `uncertain` may lie outside. At
// any v, that moves the share of values at or below v by at most so much.
double ShareUnknown(const Coverage& coverage) {
  if (coverage.uncertain == 0) return 0;
  if (coverage.uncertain >= coverage.n) return 1;
  return std::nextafter(static_cast<double>(coverage.uncertain) /
                            static_cast<double>(coverage.n - coverage.uncertain),
                        2.0);
}

// The probability with which chance_distance may be exceeded.
constexpr double kChance = 0.01;

void Widen(double by, RealBounds& share) {
  if (by == 0) return;
  share.low = std::max(0.0, std::nextafter(share.low - by, -1.0));
  share.high = std::min(1.0, std::nextafter(share.high + by, 2.0));
}

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
              if (coverage_a.n == 0 || coverage_b.n == 0) {
                return absl::FailedPreconditionError(
                    Concat("stream \"", Printable((coverage_a.n == 0 ? of_a : of_b).name()),
                           "\" has no values to compare"));
              }
              if constexpr (std::is_same_v<KeyA, KeyB>) {
                auto distance = DistanceOf(a.Steps(), b.Steps());
                Widen(ShareUnknown(coverage_a), distance.share_a);
                Widen(ShareUnknown(coverage_b), distance.share_b);
                RealBounds bounds{distance.low, distance.high};
                Widen(ShareUnknown(coverage_a) + ShareUnknown(coverage_b), bounds);
                distance.low = answer.distance_low = bounds.low;
                distance.high = answer.distance_high = bounds.high;
                answer.value = DecodeValue(of_a.type(), distance.at);
                answer.share_a_low = distance.share_a.low;
                answer.share_a_high = distance.share_a.high;
                answer.share_b_low = distance.share_b.low;
                answer.share_b_high = distance.share_b.high;
                const Moved moved = HasMoved(distance, threshold);
                if (moved != Moved::kCannotTell) answer.moved = moved == Moved::kYes;
                answer.chance_distance = SignificantDistance(kChance, coverage_a.n, coverage_b.n);
              }
              return answer;
            });
      });
}

}  // namespace tidemark::server
