#include "summaries/frequency_entries.h"

namespace tidemark {

template <class Key>
std::optional<FrequencyEntry<Key>> FrequencyEntries<Key>::Find(Key key) const {
  // The last block whose keys are all above `before`, and may be this one.
  auto skip =
      std::lower_bound(skips_.begin(), skips_.end(), key,
                       [](const Skip& a_skip, Key wanted) { return a_skip.before < wanted; });
  if (skip != skips_.begin()) --skip;
  Reader reader(*this);
  if (skip != skips_.end()) {
    const auto block = static_cast<std::size_t>(skip - skips_.begin());
    reader.at_ += skip->at;
    reader.key_ = skip->before;
    reader.left_ -= block * kBlock;
  }
  Entry entry;
  while (reader.Next(entry)) {
    if (entry.key >= key) return entry.key == key ? std::optional(entry) : std::nullopt;
  }
  return std::nullopt;
}

template <class Key>
FrequencyEntries<Key> FrequencyEntriesWriter<Key>::Finish() && {
  if (entries_.size_ > 0) {
    // Not shrink_to_fit: it may do nothing, and bytes() is to be a function of the entries.
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(used_);
    entries_.bytes_.reserve(used_ + internal::kEntryPadding);
    entries_.bytes_.assign(bytes_.begin(), end);
    entries_.bytes_.resize(used_ + internal::kEntryPadding);
    entries_.skips_ = std::vector(entries_.skips_.begin(), entries_.skips_.end());
  }
  return std::move(entries_);
}

template class FrequencyEntries<std::uint32_t>;
template class FrequencyEntries<std::uint64_t>;
template class FrequencyEntriesWriter<std::uint32_t>;
template class FrequencyEntriesWriter<std::uint64_t>;

}  // namespace tidemark
