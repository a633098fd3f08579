#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/query/answering.h"

namespace tidemark::server {
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
      ids.push_back(static_cast<std::uint64_t>(counts[i].key));
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
template <class Key, class View>
std::uint64_t AbsentMax(const View& view) {
  Key key = 0;
  while (view.Count(key).count_low > 0) ++key;
  return view.Count(key).count_high;
}

// The items of at least a share of n. Errors: INVALID_ARGUMENT if the view cannot tell them all.
template <class Key, class View>
absl::StatusOr<std::vector<ItemCount<Key>>> Frequent(const View& view, const Coverage& coverage,
                                                     double support, std::uint32_t limit) {
  if (!view.Serves(support)) {
    return absl::InvalidArgumentError(Concat("support ", support,
                                             " is below what this stream can answer without "
                                             "missing an item; expected at least ",
                                             view.MinimumSupport(), " (its epsilon for items is ",
                                             coverage.epsilon, ")"));
  }
  std::vector<ItemCount<Key>> found = view.HeavyHitters(support);
  if (limit != 0 && found.size() > limit) found.resize(limit);
  if (found.size() > QueryEngine::kRowsMax) {
    return absl::ResourceExhaustedError(
        Concat(found.size(), " items have a support of ", support, "; an answer holds ",
               QueryEngine::kRowsMax, ": set limit to that or less, or ask for a larger support"));
  }
  return found;
}

}  // namespace

absl::StatusOr<ItemsAnswer> QueryEngine::HeavyHitters(std::string_view name, double support,
                                                      std::uint32_t limit, const Ask& ask,
                                                      bool by_weight) const {
  if (!(support > 0 && support <= 1)) {
    return absl::InvalidArgumentError(Concat("support ", support, " is outside (0, 1]"));
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (absl::Status status = NeedsFrequencies(**stream); !status.ok()) return status;
  return WithKeyed(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<ItemsAnswer> {
        for (int attempt = 0; attempt < kViewAttempts; ++attempt) {
          ItemsAnswer answer;
          using Found = std::vector<ItemCount<Key>>;
          const auto found = WithItems<Found>(
              keyed, ask, by_weight,
              [&](const auto& view, const Coverage& coverage) -> absl::StatusOr<Found> {
                answer = {coverage, support, {}};
                if (coverage.n == 0) return Found();
                return Frequent<Key>(view, coverage, support, limit);
              });
          if (!found.ok()) return found.status();
          auto rows = ToRows(keyed, *found);
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

namespace {

// The keys of given items; nullopt for an item that is in no summary.
template <class Key>
absl::StatusOr<std::vector<std::optional<Key>>> KeysOf(const KeyedStream<Key>& stream,
                                                       std::span<const Value> items) {
  std::vector<std::optional<Key>> keys;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (stream.type() == ValueType::kString) {
      const auto* text = std::get_if<std::string>(&items[i]);
      if (text == nullptr) {
        return absl::InvalidArgumentError(
            Concat("item ", i, " is not a string, but the stream holds strings"));
      }
      const std::optional<std::uint64_t> id = stream.FindItem(*text);
      keys.push_back(id ? std::optional(static_cast<Key>(*id)) : std::nullopt);
      continue;
    }
    if constexpr (!kRankedKeys<Key>) {
      const auto* address = std::get_if<Ipv6>(&items[i]);
      if (address == nullptr) {
        return absl::InvalidArgumentError(
            Concat("item ", i, " is no address of ipv6, but the stream holds ipv6"));
      }
      keys.push_back(address->address);
      continue;
    }
    const absl::StatusOr<KeyPosition> position = PositionOf(stream.type(), items[i]);
    if (!position.ok()) return position.status();
    // A number that the stream's type cannot hold never came.
    keys.push_back(position->exact ? std::optional(KeyOf<Key>(*position)) : std::nullopt);
  }
  return keys;
}

}  // namespace

absl::StatusOr<ItemsAnswer> QueryEngine::Counts(std::string_view name, std::span<const Value> items,
                                                const Ask& ask, bool by_weight) const {
  if (absl::Status status = CheckArguments(items.size(), "items"); !status.ok()) {
    return status;
  }
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(name);
  if (!stream.ok()) return stream.status();
  if (absl::Status status = NeedsFrequencies(**stream); !status.ok()) return status;
  return WithKeyed(
      **stream, [&]<class Key>(const KeyedStream<Key>& keyed) -> absl::StatusOr<ItemsAnswer> {
        auto keys = KeysOf(keyed, items);
        if (!keys.ok()) return keys.status();
        return WithItems<ItemsAnswer>(
            keyed, ask, by_weight,
            [&](const auto& view, const Coverage& coverage) -> absl::StatusOr<ItemsAnswer> {
              // An item that was unknown may have come between the look-up and the view; one that
              // is still unknown is not in the view, or was forgotten as it is in no summary.
              // An id that was known is kept: the view may hold what is forgotten by now.
              if (keyed.type() == ValueType::kString) {
                auto now = KeysOf(keyed, items);
                if (!now.ok()) return now.status();
                for (std::size_t i = 0; i < items.size(); ++i) {
                  if (!(*keys)[i]) (*keys)[i] = (*now)[i];
                }
              }
              ItemsAnswer answer{coverage, 0, {}};
              for (std::size_t i = 0; i < items.size(); ++i) {
                ItemRow row{items[i], 0, 0};
                if ((*keys)[i]) {
                  const auto count = view.Count(*(*keys)[i]);
                  row.count_low = count.count_low;
                  row.count_high = count.count_high;
                } else if (keyed.type() == ValueType::kString) {
                  row.count_high = AbsentMax<Key>(view);
                }
                answer.rows.push_back(std::move(row));
              }
              return answer;
            });
      });
}

}  // namespace tidemark::server
