#include "server/query/query_engine.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "server/pipeline/pipeline.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_view.h"

namespace tidemark::server {
namespace {

absl::Status CheckCount(std::size_t count, std::size_t max, std::string_view what) {
  if (count <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(count, " ", what, " in one request; expected at most ", max));
}

absl::Status NeedsNumbers(const Stream& stream) {
  if (stream.type() != ValueType::kString) return absl::OkStatus();
  return absl::FailedPreconditionError(Concat("stream \"", Printable(stream.name()),
                                              "\" holds strings, which have counts but no ranks"));
}

// The streams of both key widths, for a generic lambda over the keyed stream.
template <class Function>
auto WithKeyed(const Stream& stream, Function function) {
  if (WideKeys(stream.type())) {
    return function(static_cast<const KeyedStream<std::uint64_t>&>(stream));
  }
  return function(static_cast<const KeyedStream<std::uint32_t>&>(stream));
}

template <class Key>
Key KeyOf(const KeyPosition& position) {
  return static_cast<Key>(position.key);
}

// An answer from quantiles need not wait for windows under way while they are few against ε n.
template <class Key>
bool QuantilesTolerate(const SummarySnapshot<Key>& summaries, std::uint64_t /*open*/,
                       std::uint64_t unseen) {
  return summaries.quantiles.count > 0 &&
         QuantileView<Key>(summaries.quantiles, {}, unseen).WithinEpsilon();
}

}  // namespace

template <class Key>
ViewRule<Key> QueryEngine::Rule(Deadline deadline) const {
  ViewRule<Key> rule;
  rule.deadline = deadline;
  if (deadline == kAtOnce) {
    rule.sort = [this](std::span<Key> keys) { pipeline_.sort_stage().SortFewNow(keys); };
    rule.sort_pairs = [this](std::span<Key> keys, std::span<std::uint64_t> payloads) {
      pipeline_.sort_stage().SortFewPairsNow(keys, payloads);
    };
  } else {
    rule.sort = [this](std::span<Key> keys) { pipeline_.sort_stage().SortNow(keys); };
    rule.sort_pairs = [this](std::span<Key> keys, std::span<std::uint64_t> payloads) {
      pipeline_.sort_stage().SortPairsNow(keys, payloads);
    };
  }
  return rule;
}

// Calls `answer(view, stream)` with a QuantileView of a numeric stream.
template <class Answer>
absl::StatusOr<Answer> QueryEngine::WithQuantiles(std::string_view name, Deadline deadline,
                                                  bool ends_matter, const auto& answer) const {
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (absl::Status status = NeedsNumbers(**stream); !status.ok()) return status;
  return WithKeyed(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<Answer> {
        ViewRule<Key> rule = Rule<Key>(deadline);
        if (!ends_matter) rule.tolerates = QuantilesTolerate<Key>;
        absl::StatusOr<StreamView<Key>> view = keyed.View(rule);
        if (!view.ok()) return view.status();
        const QuantileView<Key> quantiles(std::move(view->summaries.quantiles), view->open->keys(),
                                          view->unseen, keyed.settings().quantile_epsilon);
        return answer(quantiles, static_cast<const Stream&>(keyed));
      });
}

absl::StatusOr<QuantilesAnswer> QueryEngine::Quantiles(std::string_view stream,
                                                       std::span<const double> phis,
                                                       Deadline deadline) const {
  if (absl::Status status = CheckCount(phis.size(), kArgumentsMax, "phi"); !status.ok()) {
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
      stream, deadline, ends_matter,
      [&](const auto& view, const Stream& of) -> absl::StatusOr<QuantilesAnswer> {
        QuantilesAnswer answer{{view.n(), view.epsilon()}, {}};
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
                                               Deadline deadline) const {
  if (absl::Status status = CheckCount(values.size(), kArgumentsMax, "values"); !status.ok()) {
    return status;
  }
  return WithQuantiles<RanksAnswer>(
      stream, deadline, false,
      [&]<class Key>(const QuantileView<Key>& view,
                     const Stream& of) -> absl::StatusOr<RanksAnswer> {
        RanksAnswer answer{{view.n(), view.epsilon()}, {}};
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
                                                                Deadline deadline) const {
  if (buckets == 0 || buckets > kArgumentsMax) {
    return absl::InvalidArgumentError(Concat(buckets, " buckets; expected 1 to ", kArgumentsMax));
  }
  return WithQuantiles<HistogramAnswer>(
      stream, deadline, true,
      [&]<class Key>(const QuantileView<Key>& view,
                     const Stream& of) -> absl::StatusOr<HistogramAnswer> {
        HistogramAnswer answer{{view.n(), view.epsilon()}, {}};
        if (view.n() == 0) return answer;
        const std::vector<Key> bounds = view.EquiDepthBounds(buckets);
        std::optional<Value> low;
        for (const Key bound : bounds) {
          const Value high = DecodeValue(of.type(), bound);
          answer.rows.push_back({low, high, 0, 0});
          low = high;
        }
        FillCounts<Key>(view, bounds, answer.rows);
        return answer;
      });
}

absl::StatusOr<HistogramAnswer> QueryEngine::BoundedHistogram(std::string_view stream,
                                                              std::span<const Value> bounds,
                                                              Deadline deadline) const {
  if (absl::Status status = CheckCount(bounds.size(), kArgumentsMax, "bounds"); !status.ok()) {
    return status;
  }
  if (bounds.empty()) return absl::InvalidArgumentError("a histogram needs at least one bound");
  return WithQuantiles<HistogramAnswer>(
      stream, deadline, false,
      [&]<class Key>(const QuantileView<Key>& view,
                     const Stream& of) -> absl::StatusOr<HistogramAnswer> {
        HistogramAnswer answer{{view.n(), view.epsilon()}, {}};
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

namespace {

// Texts looked up at a time, so that not much more than an answer's bytes are ever held: at the
// largest item that can be configured, 64 KiB, as many again.
constexpr std::size_t kTextsAtOnce = 64;

// Turns keys into values; for strings through the dictionary. nullopt if an item's text was
// forgotten since the view was taken. Errors: RESOURCE_EXHAUSTED if the texts are too large.
template <class Key, class Counts>
absl::StatusOr<std::optional<std::vector<ItemRow>>> ToRows(const KeyedStream<Key>& stream,
                                                           const Counts& counts) {
  std::vector<ItemRow> rows;
  rows.reserve(counts.size());
  for (const auto& count : counts) {
    rows.push_back({DecodeValue(stream.type(), count.key), count.count_low, count.count_high});
  }
  if (stream.type() != ValueType::kString) return rows;
  std::size_t bytes = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += kTextsAtOnce) {
    std::vector<std::uint64_t> ids;
    for (std::size_t i = begin; i < std::min(begin + kTextsAtOnce, rows.size()); ++i) {
      ids.push_back(counts[i].key);
    }
    std::optional<std::vector<std::string>> texts = stream.ItemTexts(ids);
    if (!texts) return std::nullopt;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      bytes += (*texts)[i].size();
      rows[begin + i].value = std::move((*texts)[i]);
    }
    if (bytes > QueryEngine::kAnswerBytesMax) {
      return absl::ResourceExhaustedError(Concat(
          "the texts of ", rows.size(), " items take more than the ", QueryEngine::kAnswerBytesMax,
          " bytes of one answer; set a smaller limit or ask for a larger support"));
    }
  }
  return rows;
}

// An item may drop out of summary and dictionary between a view and the look-up of its text; a new
// view then no longer has it. More than a few times in a row means that something is wrong.
constexpr int kViewAttempts = 8;

// How often an item that the view has not met may have come: no id stands for it, so that any key
// without entry answers for it. Keys of strings are hashes; the few that are taken are passed over.
template <class Key>
std::uint64_t AbsentMax(const FrequencyView<Key>& view) {
  Key key = 0;
  while (view.Count(key).count_low > 0) ++key;
  return view.Count(key).count_high;
}

}  // namespace

absl::StatusOr<ItemsAnswer> QueryEngine::HeavyHitters(std::string_view name, double support,
                                                      std::uint32_t limit,
                                                      Deadline deadline) const {
  if (!(support > 0 && support <= 1)) {
    return absl::InvalidArgumentError(Concat("support ", support, " is outside (0, 1]"));
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  return WithKeyed(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<ItemsAnswer> {
        const double epsilon = keyed.settings().frequency_epsilon;
        for (int attempt = 0; attempt < kViewAttempts; ++attempt) {
          const absl::StatusOr<StreamView<Key>> view = keyed.View(Rule<Key>(deadline));
          if (!view.ok()) return view.status();
          const FrequencyView<Key> frequencies(view->summaries.frequencies, view->open->keys(),
                                               view->unseen, epsilon);
          ItemsAnswer answer{{frequencies.n(), epsilon}, support, {}};
          if (frequencies.n() == 0) return answer;
          if (!frequencies.Serves(support)) {
            return absl::InvalidArgumentError(
                Concat("support ", support,
                       " is below what this stream can answer without "
                       "missing an item; expected at least ",
                       frequencies.MinimumSupport(), " (its frequency epsilon is ", epsilon, ")"));
          }
          auto found = frequencies.HeavyHitters(support);
          if (limit != 0 && found.size() > limit) found.resize(limit);
          if (found.size() > kRowsMax) {
            return absl::ResourceExhaustedError(
                Concat(found.size(), " items have a support of ", support, "; an answer holds ",
                       kRowsMax, ": set limit to that or less, or ask for a larger support"));
          }
          auto rows = ToRows(keyed, found);
          if (!rows.ok()) return rows.status();
          if (*rows) {
            answer.rows = **std::move(rows);
            return answer;
          }
        }
        return absl::UnavailableError(Concat("the items of stream \"", Printable(name),
                                             "\" change faster than they can be read; try again"));
      });
}

absl::StatusOr<ItemsAnswer> QueryEngine::Counts(std::string_view name, std::span<const Value> items,
                                                Deadline deadline) const {
  if (absl::Status status = CheckCount(items.size(), kArgumentsMax, "items"); !status.ok()) {
    return status;
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  return WithKeyed(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<ItemsAnswer> {
        const double epsilon = keyed.settings().frequency_epsilon;
        std::vector<std::optional<Key>> keys;
        for (std::size_t i = 0; i < items.size(); ++i) {
          if (keyed.type() == ValueType::kString) {
            const auto* text = std::get_if<std::string>(&items[i]);
            if (text == nullptr) {
              return absl::InvalidArgumentError(
                  Concat("item ", i, " is not a string, but the stream holds strings"));
            }
            const std::optional<std::uint64_t> id = keyed.FindItem(*text);
            keys.push_back(id ? std::optional(static_cast<Key>(*id)) : std::nullopt);
            continue;
          }
          const absl::StatusOr<KeyPosition> position = PositionOf(keyed.type(), items[i]);
          if (!position.ok()) return position.status();
          // A number that the stream's type cannot hold never came.
          keys.push_back(position->exact ? std::optional(KeyOf<Key>(*position)) : std::nullopt);
        }
        const absl::StatusOr<StreamView<Key>> view = keyed.View(Rule<Key>(deadline));
        if (!view.ok()) return view.status();
        // An item that was unknown may have come between the look-up and the view; one that is
        // still unknown is not in the view, or was forgotten because it is in no summary.
        if (keyed.type() == ValueType::kString) {
          for (std::size_t i = 0; i < items.size(); ++i) {
            if (keys[i]) continue;
            const std::optional<std::uint64_t> id = keyed.FindItem(std::get<std::string>(items[i]));
            if (id) keys[i] = static_cast<Key>(*id);
          }
        }
        const FrequencyView<Key> frequencies(view->summaries.frequencies, view->open->keys(),
                                             view->unseen, epsilon);
        ItemsAnswer answer{{frequencies.n(), epsilon}, 0, {}};
        for (std::size_t i = 0; i < items.size(); ++i) {
          ItemRow row{items[i], 0, 0};
          if (keys[i]) {
            const auto count = frequencies.Count(*keys[i]);
            row.count_low = count.count_low;
            row.count_high = count.count_high;
          } else if (keyed.type() == ValueType::kString) {
            row.count_high = AbsentMax(frequencies);
          }
          answer.rows.push_back(std::move(row));
        }
        return answer;
      });
}

}  // namespace tidemark::server
