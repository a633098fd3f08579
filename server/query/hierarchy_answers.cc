#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "server/query/answering.h"
#include "summaries/hierarchical_view.h"
#include "summaries/leveled_view.h"
#include "summaries/sliding_hierarchical_view.h"

namespace tidemark::server {
namespace {

// An item may be forgotten between a view and the look-up of what stands above it; a new view then
// no longer has it. More than a few times in a row means that something is wrong.
constexpr int kViewAttempts = 8;

absl::Status WeightsOfRecent() {
  return absl::UnimplementedError(
      "weights are summed over the whole history alone: ask without last_values and last_time");
}

template <class View>
absl::Status CheckSupport(const View& view, double support, const Coverage& coverage) {
  if (view.Serves(support)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("support ", support, " is below what this stream can answer; expected at least ",
             view.MinimumSupport(), " (its frequency epsilon is ", coverage.epsilon, ")"));
}

absl::Status CheckRows(std::size_t rows, double support) {
  if (rows <= QueryEngine::kRowsMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(Concat(rows, " prefixes have a support of ", support,
                                             "; an answer holds ", QueryEngine::kRowsMax,
                                             ": ask for a larger support"));
}

/// Of a view of addresses.
template <class View>
absl::StatusOr<PrefixesAnswer> AnswerOf(ValueType type, const View& view, const Coverage& coverage,
                                        double support) {
  PrefixesAnswer answer{coverage, support, {}};
  if (view.n() == 0) return answer;
  if (absl::Status status = CheckSupport(view, support, coverage); !status.ok()) return status;
  for (const auto& item : view.HeavyHitters(support)) {
    answer.rows.push_back({DecodeValue(type, item.prefix), view.levels().length(item.level),
                           item.count_low, item.count_high, item.discounted_low,
                           item.discounted_high});
  }
  if (absl::Status status = CheckRows(answer.rows.size(), support); !status.ok()) return status;
  return answer;
}

template <class Address>
absl::StatusOr<PrefixesAnswer> OfAddresses(const KeyedStream<Address>& stream, const Ask& ask,
                                           const ViewRule<Address>& rule, double support) {
  const StreamSettings& settings = stream.settings();
  const bool weights = settings.payload == PayloadType::kWeight;
  if (!ask.whole()) {
    if (weights) return WeightsOfRecent();
    const absl::StatusOr<RecentView<Address>> recent = stream.Recent(ask.width, rule);
    if (!recent.ok()) return recent.status();
    return AnswerOf(settings.type,
                    SlidingHierarchicalView<Address>(*recent->blocks.hierarchy, recent->later),
                    CoverageOf(stream, *recent), support);
  }
  const absl::StatusOr<StreamView<Address>> view = stream.View(rule);
  if (!view.ok()) return view.status();
  const auto answer = [&](const HierarchicalView<Address>& prefixes) {
    return AnswerOf(settings.type, prefixes,
                    {prefixes.n(), settings.frequency_epsilon, 0, stream.Losses()}, support);
  };
  const std::span<const Address> open = view->open->keys();
  if (!weights) return answer(HierarchicalView<Address>(view->summaries.hierarchy, open));
  const std::vector<std::uint64_t> sums = SumsOf(view->open_payloads.get());
  return answer(HierarchicalView<Address>(view->summaries.hierarchy, open, sums));
}

using TextStream = KeyedStream<std::uint64_t>;
using TextCounts = FrequencyView<std::uint64_t>;
/// nullopt if the text of an item was forgotten since the view was taken.
using TextsAnswer = absl::StatusOr<std::optional<PrefixesAnswer>>;

/// `levels`: of level l in element l - 1. `coverage`: of all of them.
TextsAnswer OfLevels(const TextStream& stream, std::span<const TextCounts> levels,
                     const Coverage& coverage, double support) {
  PrefixesAnswer answer{coverage, support, {}};
  if (coverage.n == 0) return answer;
  // Levels may have dropped more or less.
  const auto least = std::max_element(
      levels.begin(), levels.end(),
      [](const auto& a, const auto& b) { return a.MinimumSupport() < b.MinimumSupport(); });
  if (absl::Status status = CheckSupport(*least, support, coverage); !status.ok()) return status;
  bool forgotten = false;
  const auto parent_of = [&](int, std::uint64_t id) -> std::uint64_t {
    const std::optional<TextPlace> place = stream.ItemPlace(id);
    forgotten |= !place;
    return place ? place->parent : 0;
  };
  const auto found = LeveledHeavyHitters<std::uint64_t>(levels, support, parent_of,
                                                        coverage.n - coverage.uncertain);
  if (forgotten) return std::nullopt;
  if (absl::Status status = CheckRows(found.size(), support); !status.ok()) return status;
  std::vector<std::uint64_t> ids;
  for (const auto& item : found) {
    if (item.level > 0) ids.push_back(item.prefix);
  }
  std::optional<std::vector<std::string>> texts = stream.ItemTexts(ids);
  if (!texts) return std::nullopt;
  std::size_t next = 0, bytes = 0;
  for (const auto& item : found) {
    std::string text = item.level > 0 ? std::move((*texts)[next++]) : std::string();
    bytes += text.size();
    answer.rows.push_back({std::move(text), item.level, item.count_low, item.count_high,
                           item.discounted_low, item.discounted_high});
  }
  if (bytes > QueryEngine::kAnswerBytesMax) {
    return absl::ResourceExhaustedError(
        Concat("the texts of ", found.size(), " prefixes take more than the ",
               QueryEngine::kAnswerBytesMax, " bytes of one answer; ask for a larger support"));
  }
  return answer;
}

TextsAnswer OfTextHistory(const TextStream& stream, const ViewRule<std::uint64_t>& rule,
                          double support) {
  const absl::StatusOr<StreamView<std::uint64_t>> view = stream.View(rule);
  if (!view.ok()) return view.status();
  std::span<const std::uint64_t> payloads;
  if (view->open_payloads) payloads = *view->open_payloads;
  const std::optional<LevelItems> items = stream.ItemsOfLevels(view->open->keys(), payloads);
  if (!items) return std::nullopt;
  const std::uint64_t open =
      stream.settings().payload == PayloadType::kWeight
          ? std::accumulate(payloads.begin(), payloads.end(), std::uint64_t{0})
          : view->open->size();
  std::vector<TextCounts> levels;
  for (std::size_t i = 0; i < items->size(); ++i) {
    levels.push_back(
        TextCounts::OfItems(view->summaries.text_levels[i], (*items)[i], 0, std::nullopt, open));
  }
  return OfLevels(stream, levels,
                  {levels.front().n(), levels.front().epsilon(), 0, stream.Losses()}, support);
}

TextsAnswer OfRecentTexts(const TextStream& stream, const SlidingWidth& width,
                          const ViewRule<std::uint64_t>& rule, double support) {
  const absl::StatusOr<RecentView<std::uint64_t>> recent = stream.Recent(width, rule);
  if (!recent.ok()) return recent.status();
  const SlidingLevelsCover& cover = *recent->blocks.text_levels;
  const auto items_of = [&](std::span<const std::uint64_t> sorted) {
    return stream.ItemsOfLevels(sorted, {});
  };
  const std::optional<LevelItems> later_items = items_of(recent->later);
  if (!later_items) return std::nullopt;
  const std::optional<std::vector<TextCounts>> levels =
      cover.Views(items_of, *later_items, recent->later.size());
  if (!levels) return std::nullopt;
  return OfLevels(stream, *levels, CoverageOf(stream, *recent), support);
}

absl::StatusOr<PrefixesAnswer> OfTexts(const TextStream& stream, const Ask& ask,
                                       const ViewRule<std::uint64_t>& rule, double support) {
  if (!ask.whole() && stream.settings().payload == PayloadType::kWeight) {
    return WeightsOfRecent();
  }
  for (int attempt = 0; attempt < kViewAttempts; ++attempt) {
    TextsAnswer answer = ask.whole() ? OfTextHistory(stream, rule, support)
                                     : OfRecentTexts(stream, ask.width, rule, support);
    if (!answer.ok()) return answer.status();
    if (*answer) return **std::move(answer);
  }
  return absl::UnavailableError(Concat("the items of stream \"", Printable(stream.name()),
                                       "\" change faster than they can be read; try again"));
}

}  // namespace

absl::StatusOr<PrefixesAnswer> QueryEngine::HierarchicalHeavyHitters(std::string_view name,
                                                                     double support,
                                                                     const Ask& ask) const {
  if (!(support > 0 && support <= 1)) {
    return absl::InvalidArgumentError(Concat("support ", support, " is outside (0, 1]"));
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  const StreamSettings& settings = (*stream)->settings();
  if (!settings.hierarchy.any()) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(name), "\" was created without a hierarchy"));
  }
  if (settings.type != ValueType::kString) {
    return WithKeyed(**stream, [&]<class Key>(const KeyedStream<Key>& keyed) {
      return OfAddresses(keyed, ask, Rule<Key>(ask.deadline), support);
    });
  }
  return OfTexts(static_cast<const TextStream&>(**stream), ask, Rule<std::uint64_t>(ask.deadline),
                 support);
}

}  // namespace tidemark::server
