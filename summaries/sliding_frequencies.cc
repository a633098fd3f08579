#include "summaries/sliding_frequencies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/sliding_cover.h"
#include "summaries/sorted_runs.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMSF";

/// What one part of a cover says of an item: it came there at least `low` times, and at most `over`
/// times more than an item of which the part says nothing may have come.
template <class Key>
struct Share {
  Key key;
  std::uint64_t low, over;
};

}  // namespace

namespace internal {

template <class Key>
bool SlidingFrequencyKind<Key>::MayStep(int level, std::uint64_t step, std::uint64_t age) const {
  return rule->MayDrop(level, step, age) && step <= rule->BlockValues(level);
}

template <class Key>
auto SlidingFrequencyKind<Key>::First(std::span<const Key> sorted) const -> Data {
  auto data = std::make_shared<SlidingEntries<Key>>();
  ForEachRun(sorted, rule->YoungDropped(0) + 1, [&](Key key, std::uint64_t count) {
    data->entries.push_back({key, count, 0});
  });
  return data;
}

template <class Key>
auto SlidingFrequencyKind<Key>::First(std::span<const KeyWeight<Key>> items) const -> Data {
  auto data = std::make_shared<SlidingEntries<Key>>();
  const std::uint64_t dropped = rule->YoungDropped(0);
  for (const auto& item : items) {
    if (item.weight > dropped) data->entries.push_back({item.key, item.weight, 0});
  }
  return data;
}

template <class Key>
auto SlidingFrequencyKind<Key>::Merge(int level, std::span<const Chunk> children) const
    -> std::vector<Data> {
  using Entry = FrequencyEntry<Key>;
  const std::uint64_t absent = rule->YoungDropped(level), after = rule->YoungDropped(level + 1);
  std::vector<Data> merged;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    const std::vector<Entry>&a = children[i].data->entries, &b = children[i + 1].data->entries;
    auto data = std::make_shared<SlidingEntries<Key>>();
    const auto keep = [&](Key key, std::uint64_t count, std::uint64_t delta) {
      if (count + delta > after) data->entries.push_back({key, count, delta});
    };
    auto x = a.begin();
    auto y = b.begin();
    while (x != a.end() || y != b.end()) {
      if (y == b.end() || (x != a.end() && x->key < y->key)) {
        keep(x->key, x->count, x->delta + absent);
        ++x;
      } else if (x == a.end() || y->key < x->key) {
        keep(y->key, y->count, y->delta + absent);
        ++y;
      } else {
        keep(x->key, x->count + y->count, x->delta + y->delta);
        ++x;
        ++y;
      }
    }
    data->entries.shrink_to_fit();
    merged.push_back(std::move(data));
  }
  return merged;
}

template <class Key>
auto SlidingFrequencyKind<Key>::Coarsen(int /*level*/, const Chunk& chunk, std::uint64_t step) const
    -> Data {
  auto data = std::make_shared<SlidingEntries<Key>>();
  for (std::size_t i = 0; i < chunk.blocks; ++i) {
    for (const auto& entry : chunk.data->Block(i)) {
      if (entry.count + entry.delta > step) data->entries.push_back(entry);
    }
    if (i + 1 < chunk.blocks) data->ends.push_back(data->entries.size());
  }
  data->entries.shrink_to_fit();
  return data;
}

template <class Key>
auto SlidingFrequencyKind<Key>::Join(const Chunk& a, const Chunk& b) const -> Data {
  auto data = std::make_shared<SlidingEntries<Key>>();
  data->entries.reserve(a.data->entries.size() + b.data->entries.size());
  data->ends.reserve(a.blocks + b.blocks - 1);
  for (const Chunk* chunk : {&a, &b}) {
    const std::size_t before = data->entries.size();
    if (chunk == &b) data->ends.push_back(before);  // of the last block of a
    for (const std::size_t end : chunk->data->ends) data->ends.push_back(before + end);
    data->entries.insert(data->entries.end(), chunk->data->entries.begin(),
                         chunk->data->entries.end());
  }
  return data;
}

template <class Key>
std::size_t SlidingFrequencyKind<Key>::Bytes(const Data& data) const {
  constexpr std::size_t kControlBytes = 16;  // two counters and a pointer before a shared object
  return kControlBytes + sizeof(*data) + data->ends.capacity() * sizeof(std::size_t) +
         data->entries.capacity() * sizeof(FrequencyEntry<Key>);
}

template <class Key>
void SlidingFrequencyKind<Key>::Write(ByteWriter& writer, const Data& data) const {
  for (std::size_t i = 0; i <= data->ends.size(); ++i) {
    const auto block = data->Block(i);
    writer.Put(static_cast<std::uint32_t>(block.size()));
    for (const auto& entry : block) {
      writer.Put(entry.key);
      writer.Put(entry.count);
      writer.Put(entry.delta);
    }
  }
}

template <class Key>
auto SlidingFrequencyKind<Key>::Read(ByteReader& reader, int level, std::uint64_t blocks,
                                     std::uint64_t step) const -> Data {
  auto data = std::make_shared<SlidingEntries<Key>>();
  const std::string name = "level " + std::to_string(level);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto count = reader.Get<std::uint32_t>();
    reader.NeedItems(count, sizeof(Key) + 16);
    std::uint64_t left = rule->BlockValues(level);  // values that no entry so far has counted
    for (std::uint32_t j = 0; j < count; ++j) {
      FrequencyEntry<Key> entry;
      entry.key = reader.Get<Key>();
      entry.count = reader.Get<std::uint64_t>();
      entry.delta = reader.Get<std::uint64_t>();
      if (j > 0 && entry.key <= data->entries.back().key) {
        reader.Fail("has entries out of order in " + name);
      }
      if (entry.count == 0 || entry.count > left) {
        reader.Fail("has a count that its block does not allow in " + name);
      }
      left -= entry.count;
      if (entry.delta > rule->YoungDropped(level) || entry.count + entry.delta <= step) {
        reader.Fail("has bounds that its epsilon does not allow in " + name);
      }
      data->entries.push_back(entry);
    }
    if (i + 1 < blocks) data->ends.push_back(data->entries.size());
  }
  return data;
}

template struct SlidingFrequencyKind<std::uint32_t>;
template struct SlidingFrequencyKind<std::uint64_t>;

}  // namespace internal

template <class Key>
FrequencySnapshot<Key> SlidingFrequencyCover<Key>::Snapshot() const {
  std::vector<KeyWeight<Key>> items;
  const std::vector<Key> sorted = recent.Sorted();
  internal::ForEachRun(std::span<const Key>(sorted), 1, [&](Key key, std::uint64_t count) {
    items.push_back({key, count});
  });
  return Snapshot(items);
}

template <class Key>
FrequencySnapshot<Key> SlidingFrequencyCover<Key>::Snapshot(
    std::span<const KeyWeight<Key>> recent_items) const {
  std::vector<Share<Key>> shares;
  std::uint64_t dropped = 0;
  for (const Part& part : whole) {
    dropped += part.dropped;
    for (const auto& entry : part.entries->Block(part.block)) {
      shares.push_back({entry.key, entry.count, entry.count + entry.delta - part.dropped});
    }
  }
  if (cut.entries != nullptr) {
    // Of the values that an entry counts, as many as are outside may be.
    const std::uint64_t outside = cut_size - cut_values;
    const std::uint64_t absent = std::min(cut.dropped, cut_values);
    dropped += absent;
    for (const auto& entry : cut.entries->Block(cut.block)) {
      shares.push_back({entry.key, entry.count - std::min(entry.count, outside),
                        std::min(entry.count + entry.delta, cut_values) - absent});
    }
  }
  for (const auto& item : recent_items) shares.push_back({item.key, item.weight, item.weight});
  std::sort(shares.begin(), shares.end(),
            [](const Share<Key>& a, const Share<Key>& b) { return a.key < b.key; });

  std::vector<FrequencyEntry<Key>> entries;
  std::uint64_t widest = 0;
  for (auto share = shares.begin(); share != shares.end();) {
    const Key key = share->key;
    std::uint64_t low = 0, over = 0;
    for (; share != shares.end() && share->key == key; ++share) {
      low += share->low;
      over += share->over;
    }
    // Nothing is known of it that is not known of any other.
    if (over == 0 && low == 0) continue;
    const std::uint64_t high = dropped + std::max<std::uint64_t>(over, 1);
    entries.push_back({key, low, high - low});
    widest = std::max(widest, high - low);
  }
  FrequencyEntriesWriter<Key> packed(dropped, 0, widest);
  for (const auto& entry : entries) packed.Append(entry);
  FrequencySnapshot<Key> snapshot;
  snapshot.epsilon = epsilon;
  snapshot.count = range.end - range.begin;
  snapshot.dropped = dropped;
  snapshot.entries = std::make_shared<const FrequencyEntries<Key>>(std::move(packed).Finish());
  snapshot.widest = widest;
  return snapshot;
}

template <class Key>
FrequencyView<Key> SlidingFrequencyCover<Key>::View(std::span<const Key> later_sorted) const {
  const std::uint64_t unseen =
      range.later - std::min<std::uint64_t>(range.later, later_sorted.size());
  return FrequencyView<Key>(Snapshot(), later_sorted, range.uncertain() + unseen);
}

template <class Key>
FrequencyView<Key> SlidingFrequencyCover<Key>::View(std::span<const KeyWeight<Key>> recent_items,
                                                    std::span<const KeyWeight<Key>> later_items,
                                                    std::uint64_t later_values) const {
  const std::uint64_t unseen = range.later - std::min(range.later, later_values);
  return FrequencyView<Key>::OfItems(Snapshot(recent_items), later_items,
                                     range.uncertain() + unseen, std::nullopt, later_values);
}

template <class Key>
SlidingFrequencies<Key>::SlidingFrequencies(std::shared_ptr<const SlidingRule> rule)
    : blocks_(rule, {rule}) {}

template <class Key>
void SlidingFrequencies<Key>::AddBlock(std::span<const Key> sorted, std::uint64_t expired) {
  internal::CheckSlidingBlock(sorted.size(), rule(), "sliding frequencies");
  blocks_.Add(blocks_.kind().First(sorted), expired);
}

template <class Key>
void SlidingFrequencies<Key>::AddItems(std::uint64_t values, std::span<const KeyWeight<Key>> items,
                                       std::uint64_t expired) {
  internal::CheckSlidingBlock(values, rule(), "sliding frequencies");
  internal::CheckSlidingItems(items, values);
  blocks_.Add(blocks_.kind().First(items), expired);
}

template <class Key>
SlidingFrequencyCover<Key> SlidingFrequencies<Key>::Cover(const SlidingRange& range,
                                                          const SlidingRecord<Key>& record) const {
  return internal::CoverOfCounts<SlidingFrequencyCover<Key>>(blocks_, range, record);
}

template <class Key>
std::string SlidingFrequencies<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  WriteOptions(writer, rule().options());
  blocks_.Write(writer);
  return writer.Finish();
}

template <class Key>
SlidingFrequencies<Key> SlidingFrequencies<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "sliding frequencies");
  const auto rule = ReadRule(reader);
  SlidingFrequencies frequencies(rule);
  frequencies.blocks_ = decltype(blocks_)::Read(reader, rule, {rule});
  reader.ExpectEnd();
  return frequencies;
}

template struct SlidingFrequencyCover<std::uint32_t>;
template struct SlidingFrequencyCover<std::uint64_t>;
template class SlidingFrequencies<std::uint32_t>;
template class SlidingFrequencies<std::uint64_t>;

}  // namespace tidemark
