#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "server/window/concat.h"
#include "server/window/finish_or_end.h"
#include "server/window/keyed_stream.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"

namespace tidemark::server {

// A batch takes this share of the text budget without a look at its items. More of it, for items
// that are known or come several times, would keep room from the other streams' batches.
constexpr std::size_t kTextShareUnseen = 64;

template <class Key>
std::uint64_t KeyedStream<Key>::InternItem(std::string_view item) {
  return text_levels_ ? dictionary_->InternBelow(*text_levels_, item, next_number_)
                      : dictionary_->Intern(item, next_number_);
}

template <class Key>
std::vector<std::string_view> KeyedStream<Key>::PrefixesOf(
    std::span<const std::string_view> items) const {
  std::vector<std::string_view> prefixes;
  if (!text_levels_) return prefixes;
  for (const std::string_view item : items) {
    for (const std::string_view prefix : text_levels_->Prefixes(item)) {
      if (prefix.size() < item.size()) prefixes.push_back(prefix);
    }
  }
  return prefixes;
}

template <class Key>
std::size_t KeyedStream<Key>::EntryBytes(std::string_view item) const {
  return Dictionary::EntryBytes(item) + (text_levels_ ? Dictionary::kLevelBytes : 0);
}

// Takes room for the items' text from the budget of all streams: how much was taken. `most` is what
// they need if all of them are new and different. Without enough room for that, they are looked up.
template <class Key>
absl::StatusOr<std::size_t> KeyedStream<Key>::TakeText(std::span<const std::string_view> items,
                                                       std::size_t most) {
  if (context_.replaying) {
    context_.text.Change(0, most);
    return most;
  }
  if (most <= context_.text.limit() / kTextShareUnseen && context_.text.TryTake(most)) return most;
  const auto needed_now = [&] {  // of a hierarchy, `items` has what stands above them, too
    std::vector<std::string_view> fresh;
    for (const std::string_view item : items) {
      if (!dictionary_->Find(item)) fresh.push_back(item);
    }
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    std::size_t bytes = 0;
    for (const std::string_view item : fresh) bytes += EntryBytes(item);
    return bytes;
  };
  std::size_t needed = needed_now();
  if (context_.text.TryTake(needed)) return needed;
  // Between two windows nothing more can be forgotten: one look is enough for all that is refused.
  if (looked_for_room_ != published_windows_) {
    looked_for_room_ = published_windows_;
    ForgetItems();
    needed = needed_now();
    if (context_.text.TryTake(needed)) return needed;
    // What is forgotten leaves its places in the tables: room for new texts, not for a budget.
    dictionary_->Shrink();
    CountDictionary(0);
    if (context_.text.TryTake(needed)) return needed;
  }
  return WithRefusal(absl::ResourceExhaustedError(Concat(
                         "stream \"", Printable(name()), "\": the batch's new items need ", needed,
                         " bytes; the string streams hold ", context_.text.held(), " of at most ",
                         context_.text.limit(), " bytes of text (limits.max_text_bytes)")),
                     Refusal::kTextLimit);
}

template <class Key>
std::size_t KeyedStream<Key>::ItemsKept() const {
  std::size_t kept = published_.frequencies.entries->size() + published_.weights.entries->size() +
                     (sliding_ ? sliding_->keys_kept() : 0);
  for (const auto& level : published_.text_levels) kept += level.entries->size();
  return kept;
}

// Forgets what neither a summary nor a window holds, if there may be any such item.
template <class Key>
void KeyedStream<Key>::ForgetItems() {
  const std::size_t kept = ItemsKept();
  if (dictionary_->size() <= kept + pending_keys_ + open_.size()) return;
  std::vector<std::uint64_t> ids;
  ids.reserve(kept);
  if constexpr (kRankedKeys<Key>) {
    const auto keep = [&](std::uint64_t id) { ids.push_back(id); };
    published_.frequencies.ForEachKey(keep);
    published_.weights.ForEachKey(keep);
    for (const auto& level : published_.text_levels) level.ForEachKey(keep);
    if (sliding_) sliding_->ForEachKey(keep);
  }
  if (text_levels_) dictionary_->AddAncestors(published_windows_, ids);
  std::sort(ids.begin(), ids.end());
  dictionary_->Forget(published_windows_, [&](std::uint64_t id) {
    return std::binary_search(ids.begin(), ids.end(), id);
  });
  forgotten_to_ = dictionary_->size();
  CountDictionary(0);
}

// Corrects what the budget counts for this stream, of which `taken` is for entries to come.
template <class Key>
void KeyedStream<Key>::CountDictionary(std::size_t taken) {
  const std::size_t bytes = dictionary_->bytes();
  context_.text.Change(counted_bytes_ + taken, bytes);
  counted_bytes_ = bytes;
}

template <class Key>
AppendResult KeyedStream<Key>::AppendStrings(std::span<const std::string_view> values,
                                             std::span<const std::byte> payloads,
                                             const BatchStamp& stamp, std::vector<Window>& full) {
  AppendResult result;
  if constexpr (sizeof(Key) == 8) {
    if (type() == ValueType::kString) {
      if (absl::Status status = CheckPayloads(values.size(), payloads.size()); !status.ok()) {
        return RefuseUnread(std::move(status));
      }
      const std::size_t item_bytes_max =
          context_.replaying ? std::numeric_limits<std::size_t>::max() : context_.item_bytes_max;
      std::size_t most = 0;
      for (const std::string_view item : values) {
        if (absl::Status status = CheckItem(item, item_bytes_max); !status.ok()) {
          return RefuseUnread(std::move(status));
        }
        most += EntryBytes(item);
      }
      std::vector<std::string_view> with_prefixes = PrefixesOf(values);
      for (const std::string_view prefix : with_prefixes) most += EntryBytes(prefix);
      if (text_levels_) with_prefixes.insert(with_prefixes.end(), values.begin(), values.end());
      const std::lock_guard lock(mutex_);
      if (Answered(stamp.from, result)) return result;
      const absl::StatusOr<std::uint64_t> weight = WeightWith(values.size(), payloads);
      if (!weight.ok()) {
        result.status = weight.status();
        return result;
      }
      result.status = CheckMemory(values.size(), most + payloads.size(), stamp.time);
      if (!result.status.ok()) return result;
      // Before anything else, so that a refused batch leaves no trace in windows or summaries.
      const absl::StatusOr<std::size_t> taken =
          TakeText(text_levels_ ? std::span<const std::string_view>(with_prefixes) : values, most);
      if (!taken.ok()) {
        result.status = taken.status();
        return result;
      }
      const absl::StatusOr<std::uint64_t> logged = LogBatch({.form = BatchForm::kTexts,
                                                             .stamp = stamp,
                                                             .count = values.size(),
                                                             .texts = values,
                                                             .payloads = payloads});
      if (!logged.ok()) {
        CountDictionary(*taken);  // gives back what was taken
        result.status = logged.status();
        return result;
      }
      const FinishOrEnd applied;
      result.log_sequence = *logged;
      weight_ = *weight;
      BeginBatch(stamp.time, full);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // One by one: the id belongs to the window that takes it.
        const std::string_view item = values[i];
        const std::size_t before = dictionary_->content_bytes();
        const Key id = static_cast<Key>(InternItem(item));
        open_text_bytes_ += item.size();
        open_new_bytes_ += dictionary_->content_bytes() - before;
        if (!payloads.empty()) {
          std::uint64_t bits = 0;
          std::memcpy(&bits, payloads.data() + i * kPayloadBytes, sizeof bits);
          open_payloads_.push_back(bits);
        }
        AppendKeys({&id, 1}, stamp.time, full);
        // Sliding blocks have one size: of these the budget of all streams alone limits the text.
        if (!sliding_ && open_text_bytes_ >= context_.string_window_bytes_max && !open_.empty()) {
          CloseWindow(stamp.time, full);
        }
      }
      CountDictionary(*taken);
      result.accepted = values.size();
      Remember(stamp.from, result);
      return result;
    }
  }
  return RefuseUnread(absl::FailedPreconditionError(
      Concat("stream \"", Printable(name()), "\" holds ", ValueTypeName(type()), ", not strings")));
}

template <class Key>
std::optional<std::uint64_t> KeyedStream<Key>::FindItem(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return dictionary_ ? dictionary_->Find(text) : std::nullopt;
}

template <class Key>
std::optional<std::vector<std::string>> KeyedStream<Key>::ItemTexts(
    std::span<const std::uint64_t> ids) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t id : ids) {
    const std::string* text = dictionary_ ? dictionary_->Text(id) : nullptr;
    if (text == nullptr) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

#define TIDEMARK_INSTANTIATE(Key)                                                                 \
  template std::uint64_t KeyedStream<Key>::InternItem(std::string_view);                          \
  template std::vector<std::string_view> KeyedStream<Key>::PrefixesOf(                            \
      std::span<const std::string_view>) const;                                                   \
  template std::size_t KeyedStream<Key>::EntryBytes(std::string_view) const;                      \
  template void KeyedStream<Key>::CountDictionary(std::size_t);                                   \
  template absl::StatusOr<std::size_t> KeyedStream<Key>::TakeText(                                \
      std::span<const std::string_view>, std::size_t);                                            \
  template std::size_t KeyedStream<Key>::ItemsKept() const;                                       \
  template void KeyedStream<Key>::ForgetItems();                                                  \
  template AppendResult KeyedStream<Key>::AppendStrings(std::span<const std::string_view>,        \
                                                        std::span<const std::byte>,               \
                                                        const BatchStamp&, std::vector<Window>&); \
  template std::optional<std::uint64_t> KeyedStream<Key>::FindItem(std::string_view) const;       \
  template std::optional<std::vector<std::string>> KeyedStream<Key>::ItemTexts(                   \
      std::span<const std::uint64_t>) const
TIDEMARK_INSTANTIATE(std::uint32_t);
TIDEMARK_INSTANTIATE(std::uint64_t);
TIDEMARK_INSTANTIATE(Key128);
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::server
