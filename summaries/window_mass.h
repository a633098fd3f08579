// What parts of an ascending window weigh: each key 1, or a weight of its own.
#ifndef TIDEMARK_SUMMARIES_WINDOW_MASS_H_
#define TIDEMARK_SUMMARIES_WINDOW_MASS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tidemark::internal {

/// Lifetime: not longer than the sums.
class WindowMass {
 public:
  /// Each key weighs 1.
  WindowMass() = default;
  /// sums[i]: the weights of the first i keys; one more of them than of keys.
  explicit WindowMass(const std::uint64_t* sums) : sums_(sums) {}

  bool is_unit() const { return sums_ == nullptr; }

  std::uint64_t Of(std::size_t begin, std::size_t end) const {
    return sums_ == nullptr ? end - begin : sums_[end] - sums_[begin];
  }
  /// The place that holds the unit of mass which comes `mass` units behind the first one of `at`
  /// (`at` itself, if it weighs more); `end` if that lies behind it.
  std::size_t Advance(std::size_t at, std::uint64_t mass, std::size_t end) const {
    if (sums_ == nullptr) return mass < end - at ? at + static_cast<std::size_t>(mass) : end;
    const std::uint64_t target = sums_[at] + mass;
    std::size_t step = 1;
    while (step < end - at && sums_[at + step] <= target) {
      at += step;
      step *= 2;
    }
    const std::size_t far = at + std::min(step, end - at);
    return static_cast<std::size_t>(std::upper_bound(sums_ + at + 1, sums_ + far + 1, target) -
                                    sums_) -
           1;
  }

 private:
  const std::uint64_t* sums_ = nullptr;
};

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_WINDOW_MASS_H_
