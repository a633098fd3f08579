#include "summaries/sliding_quantiles.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/fraction.h"
#include "summaries/merge_sorted.h"
#include "summaries/sliding_cover.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMSQ";

/// Keys of one block: its minimum and its samples.
std::uint64_t BlockKeys(const SlidingRule& rule, int level, std::uint64_t weight) {
  return 1 + rule.BlockValues(level) / weight;
}

/// keys[stride - 1], keys[2 * stride - 1], …: `count` of them.
template <class Key>
void TakeEvery(const Key* keys, std::uint64_t stride, std::uint64_t count, Key* out) {
  if (stride == 1) {
    std::copy_n(keys, count, out);
  } else if (stride == 2) {  // a constant stride is vectorised
    for (std::uint64_t i = 0; i < count; ++i) out[i] = keys[2 * i + 1];
  } else if (stride == 4) {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = keys[4 * i + 3];
  } else {
    for (std::uint64_t i = 0; i < count; ++i) out[i] = keys[(i + 1) * stride - 1];
  }
}

/// Bounds of how many of the last `alive` of a block's values lie below its samples: of those that
/// lie there in the whole block, at most all others are not among them.
template <class Key>
std::shared_ptr<const RankedSamples<Key>> CutBounds(const SampleBucket<Key>& block, Key min,
                                                    std::uint64_t alive) {
  const auto& [weight, samples, slack] = block.shape;
  const std::uint64_t count = block.shape.count(), dead = count - alive;
  auto bounds = std::make_shared<RankedSamples<Key>>();
  bounds->count = alive;
  const auto add = [&](Key key, std::uint64_t low, std::uint64_t before) {
    bounds->keys.push_back(key);
    bounds->low.push_back(low - std::min(low, dead));
    bounds->high.push_back(std::min(before, alive) + 1);
  };
  bounds->keys.reserve(samples + 1);
  bounds->low.reserve(samples + 1);
  bounds->high.reserve(samples + 1);
  add(min, 1, 0);
  for (std::uint64_t i = 1; i <= samples; ++i) {
    add(block.keys[i - 1], i * weight, std::min(i * weight + slack, count) - 1);
  }
  return bounds;
}

}  // namespace

namespace internal {

template <class Key>
bool SlidingQuantileKind<Key>::MayStep(int level, std::uint64_t step, std::uint64_t age) const {
  return rule->MayWeigh(level, step, age) && step <= rule->BlockValues(level);
}

template <class Key>
auto SlidingQuantileKind<Key>::First(std::span<const Key> sorted) const -> Data {
  const BucketShape& shape = rule->YoungShape(0);
  auto keys = std::make_shared_for_overwrite<Key[]>(1 + shape.samples);
  keys[0] = sorted.front();
  TakeEvery(sorted.data(), shape.weight, shape.samples, keys.get() + 1);
  assert(std::is_sorted(keys.get(), keys.get() + 1 + shape.samples));
  return {std::move(keys), 1 + shape.samples};
}

template <class Key>
auto SlidingQuantileKind<Key>::Merge(int level, std::span<const Chunk> children) const
    -> std::vector<Data> {
  const BucketShape &from = rule->YoungShape(level), &to = rule->YoungShape(level + 1);
  const std::uint64_t keep = to.weight / from.weight, size = 2 * from.samples;
  const std::size_t parents = children.size() / 2;
  // Merged in place, unless only some of the samples are kept.
  std::unique_ptr<Key[]> scratch;
  if (keep > 1) scratch = std::make_unique_for_overwrite<Key[]>(2 * size);
  const auto child = [&](std::size_t i) { return children[i].data.keys.get(); };
  std::vector<Data> merged(parents);
  for (std::size_t i = 0; i < parents; i += 2) {
    const std::size_t together = std::min<std::size_t>(2, parents - i);
    std::array<std::shared_ptr<Key[]>, 2> keys;
    std::array<Key*, 2> out;
    for (std::size_t j = 0; j < together; ++j) {
      keys[j] = std::make_shared_for_overwrite<Key[]>(1 + to.samples);
      keys[j][0] = std::min(child(2 * (i + j))[0], child(2 * (i + j) + 1)[0]);
      out[j] = keep > 1 ? scratch.get() + j * size : keys[j].get() + 1;
    }
    if (together == 2) {
      MergeEqualLengths(child(2 * i) + 1, child(2 * i + 1) + 1, out[0], child(2 * i + 2) + 1,
                        child(2 * i + 3) + 1, out[1], from.samples);
    } else {
      MergeEqualLengths(child(2 * i) + 1, child(2 * i + 1) + 1, from.samples, out[0]);
    }
    for (std::size_t j = 0; j < together; ++j) {
      if (keep > 1) TakeEvery(out[j], keep, to.samples, keys[j].get() + 1);
      merged[i + j] = {std::move(keys[j]), 1 + to.samples};
    }
  }
  return merged;
}

template <class Key>
auto SlidingQuantileKind<Key>::Coarsen(int level, const Chunk& chunk, std::uint64_t step) const
    -> Data {
  const std::uint64_t from = BlockKeys(*rule, level, chunk.step),
                      to = BlockKeys(*rule, level, step);
  auto keys = std::make_shared_for_overwrite<Key[]>(chunk.blocks * to);
  for (std::uint64_t i = 0; i < chunk.blocks; ++i) {
    const Key* block = chunk.data.keys.get() + i * from;
    Key* out = keys.get() + i * to;
    out[0] = block[0];
    TakeEvery(block + 1, step / chunk.step, to - 1, out + 1);
  }
  return {std::move(keys), chunk.blocks * to};
}

template <class Key>
auto SlidingQuantileKind<Key>::Join(const Chunk& a, const Chunk& b) const -> Data {
  const std::size_t size = a.data.size + b.data.size;
  auto keys = std::make_shared_for_overwrite<Key[]>(size);
  std::copy_n(a.data.keys.get(), a.data.size, keys.get());
  std::copy_n(b.data.keys.get(), b.data.size, keys.get() + a.data.size);
  return {std::move(keys), size};
}

template <class Key>
std::size_t SlidingQuantileKind<Key>::Bytes(const Data& data) const {
  // A shared array has two counters and a pointer before it.
  constexpr std::size_t kControlBytes = 32;
  return kControlBytes + data.size * sizeof(Key);
}

template <class Key>
void SlidingQuantileKind<Key>::Write(ByteWriter& writer, const Data& data) const {
  writer.PutKeys(data.keys.get(), data.size);
}

template <class Key>
auto SlidingQuantileKind<Key>::Read(ByteReader& reader, int level, std::uint64_t blocks,
                                    std::uint64_t step) const -> Data {
  const std::uint64_t size = BlockKeys(*rule, level, step);
  reader.NeedItems(blocks, size * sizeof(Key));
  auto keys = std::make_shared_for_overwrite<Key[]>(blocks * size);
  reader.GetKeys(keys.get(), blocks * size);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    if (!std::is_sorted(keys.get() + i * size, keys.get() + (i + 1) * size)) {
      reader.Fail("has samples that do not ascend in level " + std::to_string(level));
    }
  }
  return {std::move(keys), blocks * size};
}

template struct SlidingQuantileKind<std::uint32_t>;
template struct SlidingQuantileKind<std::uint64_t>;

}  // namespace internal

template <class Key>
QuantileSnapshot<Key> SlidingQuantileCover<Key>::Snapshot() const {
  QuantileSnapshot<Key> snapshot;
  snapshot.epsilon = epsilon;
  snapshot.count = range.end - range.begin;
  snapshot.min = min;
  snapshot.buckets = whole;
  if (!recent.pieces.empty()) {
    auto sorted = std::make_shared<const std::vector<Key>>(recent.Sorted());
    const std::uint64_t count = sorted->size();
    snapshot.min = whole.empty() ? sorted->front() : std::min(min, sorted->front());
    snapshot.buckets.push_back(
        {{1, count, 0}, std::shared_ptr<const Key[]>(sorted, sorted->data())});
  }
  if (cut.keys != nullptr) snapshot.edges.push_back(CutBounds(cut, cut_min, cut_values));
  return snapshot;
}

template <class Key>
QuantileView<Key> SlidingQuantileCover<Key>::View(std::span<const Key> later_sorted) const {
  const std::uint64_t unseen =
      range.later - std::min<std::uint64_t>(range.later, later_sorted.size());
  return QuantileView<Key>(Snapshot(), later_sorted, range.uncertain() + unseen);
}

template <class Key>
SlidingQuantiles<Key>::SlidingQuantiles(std::shared_ptr<const SlidingRule> rule)
    : blocks_(rule, {rule}) {}

template <class Key>
void SlidingQuantiles<Key>::AddBlock(std::span<const Key> sorted, std::uint64_t expired) {
  internal::CheckSlidingBlock(sorted.size(), rule(), "sliding quantiles");
  blocks_.Add(blocks_.kind().First(sorted), expired);
}

template <class Key>
SlidingQuantileCover<Key> SlidingQuantiles<Key>::Cover(const SlidingRange& range,
                                                       const SlidingRecord<Key>& record) const {
  internal::CheckSlidingRange(range, blocks_, record);
  SlidingQuantileCover<Key> cover;
  cover.epsilon = rule().epsilon();
  cover.range = range;
  const SlidingCover parts = blocks_.Cover(range.begin);
  const auto bucket = [&](const BlockName& name) {
    const auto [chunk, place] = blocks_.Find(name);
    const std::uint64_t size = BlockKeys(rule(), name.level, chunk->step);
    const Key* keys = chunk->data.keys.get() + place * size;
    return std::pair(keys[0],
                     SampleBucket<Key>{{chunk->step, size - 1, rule().YoungShape(name.level).slack},
                                       {chunk->data.keys, keys + 1}});
  };
  std::uint64_t width = 0;
  for (const BlockName& name : parts.whole) {
    auto [least, block] = bucket(name);
    width += block.shape.weight - 1 + block.shape.slack;
    cover.min = cover.whole.empty() ? least : std::min(cover.min, least);
    cover.whole.push_back(std::move(block));
  }
  const std::uint64_t values = range.end - range.begin;
  if (width / 2 + width % 2 > FloorFraction(rule().epsilon(), values) &&
      values < rule().recent_values()) {
    cover.whole.clear();
    cover.recent = record.Recent(range.begin, range.end);
  } else if (parts.cut_as_came) {
    cover.recent = record.Recent(range.begin, range.begin + parts.cut_values);
  } else if (parts.cut_values > 0) {
    cover.cut_values = parts.cut_values;
    std::tie(cover.cut_min, cover.cut) = bucket(parts.cut);
  }
  return cover;
}

template <class Key>
std::string SlidingQuantiles<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  WriteOptions(writer, rule().options());
  blocks_.Write(writer);
  return writer.Finish();
}

template <class Key>
SlidingQuantiles<Key> SlidingQuantiles<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "sliding quantiles");
  const auto rule = ReadRule(reader);
  SlidingQuantiles quantiles(rule);
  quantiles.blocks_ = decltype(blocks_)::Read(reader, rule, {rule});
  reader.ExpectEnd();
  return quantiles;
}

template struct SlidingQuantileCover<std::uint32_t>;
template struct SlidingQuantileCover<std::uint64_t>;
template class SlidingQuantiles<std::uint32_t>;
template class SlidingQuantiles<std::uint64_t>;

}  // namespace tidemark
