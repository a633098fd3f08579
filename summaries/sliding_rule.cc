#include "summaries/sliding_rule.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "summaries/fraction.h"

namespace tidemark {
namespace {

constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 48;
constexpr std::int64_t kMaxAge = std::int64_t{1} << 62;

// Shares of 2 * epsilon (quantiles) and of epsilon (frequencies). Of those tried at epsilon = 1 %
// and 0.1 % they lead to the fewest keys among those with which a value is merged about once.
constexpr double kFirstGap = 0.2;              // gamma_0: the samples of a sorted block
constexpr double kLastGap = 0.32;              // gamma of the last level
constexpr double kYoungDropped = 0.25;         // D_l / B_l
constexpr double kTimeShare = 1.0 / 8;         // of epsilon
constexpr double kTimeCut = 1.0 - kTimeShare;  // so that cut block and time together stay within it

// Over so many levels gamma rises if the widest window is not known as a number of values: 2^24
// blocks. Beyond, blocks are merged without pruning.
constexpr int kLevelsByTime = 24;

// From so many values times 1 / epsilon on, rounding to whole values is small against the budget.
constexpr double kRounding = 32;

std::uint64_t PowerOfTwoAtMost(double value) {
  return value < 1 ? 1 : std::bit_floor(static_cast<std::uint64_t>(value));
}

}  // namespace

std::size_t DefaultBlockSize(double epsilon, std::uint64_t max_values) {
  constexpr std::size_t kLeast = 256, kMost = std::size_t{1} << 20;
  constexpr std::uint64_t kMostAsTheyCame = std::uint64_t{1} << 22;
  std::size_t size = std::bit_ceil(static_cast<std::size_t>(std::ceil(16 / epsilon)));
  if (max_values > 0) size = std::min<std::size_t>(size, std::bit_ceil(max_values / 4 + 1));
  if (max_values == 0 || max_values > kMostAsTheyCame) {
    const double kappa = 1 / (kTimeCut * epsilon);
    while (kappa * static_cast<double>(size) > kMostAsTheyCame) size /= 2;
  }
  return std::clamp(size, kLeast, kMost);
}

SlidingRule::SlidingRule(const SlidingOptions& options) : options_(options) {
  const auto fail = [](const std::string& why) {
    throw std::invalid_argument("a sliding summary cannot have " + why);
  };
  if (!(options.epsilon >= 1e-6 && options.epsilon <= 0.2)) {
    fail("epsilon " + std::to_string(options.epsilon) + ", expected 1e-6 to 0.2");
  }
  if (options.max_values > kMaxValues) {
    fail("windows of " + std::to_string(options.max_values) + " values, expected at most 2^48");
  }
  if (options.max_age_us < 0 || options.max_age_us > kMaxAge) {
    fail("windows of " + std::to_string(options.max_age_us) +
         " microseconds, expected 0 (none by time) to 2^62");
  }
  if (options.max_values == 0 && options.max_age_us == 0) {
    fail("no window at all, expected a number of values or a time");
  }
  if (options.block_size == 0) {
    options_.block_size = DefaultBlockSize(options.epsilon, by_time() ? 0 : options.max_values);
  }
  const std::size_t size = options_.block_size;
  if (!std::has_single_bit(size) || size < 64 || size > (std::size_t{1} << 20)) {
    fail("blocks of " + std::to_string(size) + " values, expected a power of two from 64 to 2^20");
  }
  kappa_ =
      static_cast<std::uint64_t>(std::ceil(1 / (by_time() ? kTimeCut * epsilon() : epsilon())));
  MakeShapes();
  // ceil(width / 2) <= floor(epsilon * values), with a value to spare for either rounding; and
  // width
  // <= floor(epsilon * values).
  quantile_aging_ = Solve([this](std::uint64_t values,
                                 std::uint64_t aging) { return QuantileWidth(values, aging) + 3; },
                          2 * epsilon());
  frequency_aging_ =
      Solve([this](std::uint64_t values,
                   std::uint64_t aging) { return FrequencyWidth(values, aging) + 1; },
            epsilon());
  tree_aging_ = Solve(
      [this](std::uint64_t values, std::uint64_t aging) { return TreeWidth(values, aging) + 1; },
      epsilon());
}

template <class Width>
std::uint64_t SlidingRule::Solve(Width width, double budget) const {
  const auto [least, most] = Widths();
  const std::vector<std::uint64_t> breaks = Breaks();
  const auto fits = [&, least = least, most = most](std::uint64_t aging) {
    const auto within = [&](std::uint64_t values) {
      return width(values, aging) <= budget * static_cast<double>(values);
    };
    if (!std::all_of(breaks.begin(), breaks.end(), within)) return false;
    for (std::uint64_t values = aging; values <= most; values *= 2) {
      if (values >= least && !within(values)) return false;
    }
    return true;
  };
  auto aging = static_cast<std::uint64_t>(std::ceil(0.25 / epsilon()));
  while (!fits(aging)) aging += aging / 16 + 1;
  return aging;
}

void SlidingRule::MakeShapes() {
  const double budget = 2 * epsilon();
  const int last = by_time() ? kLevelsByTime
                             : static_cast<int>(std::bit_width(options_.max_values / block_size()));
  const auto first_block = static_cast<double>(block_size());
  BucketShape shape;
  shape.weight = std::min<std::uint64_t>(PowerOfTwoAtMost(kFirstGap * budget * first_block + 1),
                                         block_size() / 2);
  const double first_gap = static_cast<double>(shape.weight - 1) / first_block;
  for (int level = 0; level == 0 || BlockValues(level) <= kMaxValues; ++level) {
    const std::uint64_t values = BlockValues(level);
    if (level > 0) {
      shape.slack = 2 * shape.slack + shape.weight - 1;
      const double gamma = first_gap + (kLastGap * budget - first_gap) *
                                           std::min(1.0, 1.0 * level / std::max(1, last));
      const auto allowed = static_cast<std::uint64_t>(gamma * static_cast<double>(values));
      while (level <= last && 2 * shape.weight + shape.slack - 1 <= allowed) shape.weight *= 2;
    }
    shape.samples = values / shape.weight;
    young_.push_back(shape);
  }
}

int SlidingRule::CutLevel(std::uint64_t values) const {
  const std::uint64_t blocks = values / recent_values();
  return std::min(static_cast<int>(std::bit_width(blocks)), levels()) - 1;
}

std::uint64_t SlidingRule::YoungDropped(int level) const {
  return FloorFraction(kYoungDropped * epsilon(), BlockValues(level));
}

std::uint64_t SlidingRule::TimeSlack(std::uint64_t values) const {
  return by_time() ? FloorFraction(kTimeShare * epsilon(), values) : 0;
}

bool SlidingRule::NeverCut(int level) const {
  return !by_time() && CutLevel(options_.max_values) < level;
}

// The widths for which the bounds below are to hold.
std::pair<std::uint64_t, std::uint64_t> SlidingRule::Widths() const {
  return {static_cast<std::uint64_t>(std::ceil(kRounding / epsilon())),
          by_time() ? kMaxValues : options_.max_values};
}

// Those at which the bounds jump or bend, but for the powers of two times aging.
std::vector<std::uint64_t> SlidingRule::Breaks() const {
  const auto [least, most] = Widths();
  std::vector<std::uint64_t> breaks;
  const auto add = [&breaks, least = least, most = most](std::uint64_t width) {
    if (width >= least && width <= most) breaks.push_back(width);
  };
  add(least);
  for (int level = 0; level < levels(); ++level) {
    add(BlockValues(level));
    add(kYoung * BlockValues(level));
    add(kappa_ * BlockValues(level));
  }
  return breaks;
}

// At least the sum of the gaps of the widest cover of `values` values.
double SlidingRule::QuantileWidth(std::uint64_t values, std::uint64_t aging) const {
  const int cut = CutLevel(values);
  double width = cut < 0 ? 0 : static_cast<double>(BlockValues(cut) - 1);
  double gamma = 0;
  for (int level = 0; level < levels() && BlockValues(level) <= values; ++level) {
    const auto& shape = YoungShape(level);
    const auto block = static_cast<double>(BlockValues(level));
    gamma = std::max(gamma, static_cast<double>(shape.weight - 1 + shape.slack) / block);
    if (level < cut || kYoung * BlockValues(level) > values) continue;
    std::uint64_t weight = shape.weight;
    while (2 * weight <= values / aging && 2 * weight <= BlockValues(level)) weight *= 2;
    width += static_cast<double>(weight - shape.weight);
  }
  return width + gamma * static_cast<double>(values) + static_cast<double>(TimeSlack(values));
}

double SlidingRule::FrequencyWidth(std::uint64_t values, std::uint64_t aging) const {
  const int cut = CutLevel(values);
  double width = 0;
  if (cut >= 0) width = static_cast<double>(BlockValues(cut) / 2 + YoungDropped(cut));
  if (cut >= 0 && by_time()) {
    // Where no block of that level was made: what finer ones in its place may drop.
    double finer = 1;
    for (int level = cut - 1; level >= -1; --level) {
      finer += std::min(static_cast<double>(BlockValues(std::max(level, 0))),
                        static_cast<double>(values) / static_cast<double>(aging));
    }
    width = std::max(width, finer);
  }
  for (int level = 0; level < levels() && BlockValues(level) <= values; ++level) {
    const auto young = static_cast<double>(YoungDropped(level));
    if (level < cut || kYoung * BlockValues(level) > values) continue;
    width += std::max(0.0, static_cast<double>(values) / static_cast<double>(aging) - young);
  }
  return width + (kYoungDropped * epsilon()) * static_cast<double>(values) +
         static_cast<double>(TimeSlack(values));
}

// What the cut block dropped is not in FrequencyWidth where that is more than a new one drops. Its
// first value is less than its own length, epsilon * values, older than the window.
double SlidingRule::TreeWidth(std::uint64_t values, std::uint64_t aging) const {
  const double oldest = static_cast<double>(values) * (1 + epsilon());
  return FrequencyWidth(values, aging) +
         (CutLevel(values) < 0 ? 0 : oldest / static_cast<double>(aging));
}

std::uint64_t SlidingRule::KeysKept(std::uint64_t values) const {
  constexpr double kThinnedTogether = 1.2;
  double keys = static_cast<double>(std::min(recent_values(), values) + block_size());
  for (int level = 0; level < levels() && BlockValues(level) <= values; ++level) {
    const std::uint64_t young = kYoung * BlockValues(level);
    const std::uint64_t oldest = std::min(values, KeptFor(level));
    keys += static_cast<double>(std::min(kYoung, values / BlockValues(level)) *
                                YoungShape(level).samples);
    if (oldest <= young) continue;
    keys += kThinnedTogether * static_cast<double>(quantile_aging_) *
            std::log2(static_cast<double>(oldest) / static_cast<double>(young));
  }
  return static_cast<std::uint64_t>(keys);
}

}  // namespace tidemark
