#include "summaries/sliding_hierarchy.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/prefix_sweep.h"
#include "summaries/sliding_cover.h"

namespace tidemark {
namespace internal {
namespace {

constexpr std::string_view kMagic = "TMSH";

/// The tree after a step that raises D to `dropped`.
template <class Key>
PrefixTree<Key> Raised(PrefixTree<Key> tree, const PrefixLevels<Key>& levels, std::uint64_t before,
                       std::uint64_t dropped) {
  PrefixSweep<Key> sweep(levels, {}, WindowMass(), before, dropped);
  tree.entries = sweep.Run(std::move(tree.entries), tree.root);
  return tree;
}

template <class Key>
SlidingTree<Key> Packed(const PrefixTree<Key>& tree, const PrefixLevels<Key>& levels,
                        std::uint64_t dropped) {
  return {tree.root, PackedEntries<Key>(tree.entries, levels, dropped)};
}

template <class Key>
PrefixTree<Key> Unpacked(const SlidingTree<Key>& tree, const PrefixLevels<Key>& levels,
                         std::uint64_t dropped) {
  return {tree.entries.Unpack(levels, dropped), tree.root};
}

}  // namespace

template <class Key>
auto SlidingTreeKind<Key>::First(std::span<const Key> sorted) const -> Data {
  PrefixTree<Key> tree;
  PrefixSweep<Key> sweep(*levels, sorted, WindowMass(), 0, rule->YoungDropped(0));
  tree.entries = sweep.Run({}, tree.root);
  return std::make_shared<Trees>(1, Packed(tree, *levels, rule->YoungDropped(0)));
}

template <class Key>
std::vector<std::shared_ptr<const std::vector<SlidingTree<Key>>>> SlidingTreeKind<Key>::Merge(
    int level, std::span<const Chunk> children) const {
  const std::uint64_t before = rule->YoungDropped(level), after = rule->YoungDropped(level + 1);
  std::vector<Data> merged;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    auto both = MergeTrees(*levels, Unpacked(children[i].data->front(), *levels, before),
                           Unpacked(children[i + 1].data->front(), *levels, before));
    const auto tree = Raised(std::move(both), *levels, 2 * before, after);
    merged.push_back(std::make_shared<Trees>(1, Packed(tree, *levels, after)));
  }
  return merged;
}

template <class Key>
bool SlidingTreeKind<Key>::MayStep(int level, std::uint64_t step, std::uint64_t age) const {
  return rule->MayDropFromTree(level, step, age) && step <= rule->BlockValues(level);
}

template <class Key>
auto SlidingTreeKind<Key>::Coarsen(int /*level*/, const Chunk& chunk, std::uint64_t step) const
    -> Data {
  auto trees = std::make_shared<Trees>();
  trees->reserve(chunk.data->size());
  for (const auto& tree : *chunk.data) {
    const auto raised = Raised(Unpacked(tree, *levels, chunk.step), *levels, chunk.step, step);
    trees->push_back(Packed(raised, *levels, step));
  }
  return trees;
}

template <class Key>
auto SlidingTreeKind<Key>::Join(const Chunk& a, const Chunk& b) const -> Data {
  auto trees = std::make_shared<Trees>();
  trees->reserve(a.data->size() + b.data->size());
  trees->insert(trees->end(), a.data->begin(), a.data->end());
  trees->insert(trees->end(), b.data->begin(), b.data->end());
  return trees;
}

template <class Key>
std::size_t SlidingTreeKind<Key>::Size(const Data& data) const {
  std::size_t size = 0;
  for (const auto& tree : *data) size += tree.entries.size();
  return size;
}

template <class Key>
std::size_t SlidingTreeKind<Key>::Bytes(const Data& data) const {
  constexpr std::size_t kControlBytes = 16;  // two counters and a pointer before a shared object
  std::size_t bytes = kControlBytes + sizeof(*data) + data->capacity() * sizeof(SlidingTree<Key>);
  for (const auto& tree : *data) bytes += tree.entries.bytes();
  return bytes;
}

template <class Key>
void SlidingTreeKind<Key>::Write(ByteWriter& writer, const Data& data) const {
  for (const auto& tree : *data) {
    const std::string_view stream = tree.entries.stream();
    writer.Put(tree.root.missed);
    writer.Put(static_cast<std::uint32_t>(tree.entries.size()));
    writer.Put(static_cast<std::uint32_t>(stream.size()));
    writer.PutBytes(stream);
  }
}

template <class Key>
auto SlidingTreeKind<Key>::Read(ByteReader& reader, int level, std::uint64_t blocks,
                                std::uint64_t step) const -> Data {
  auto trees = std::make_shared<Trees>();
  const std::string name = "level " + std::to_string(level);
  const std::uint64_t values = rule->BlockValues(level);
  const bool root_alone = levels->lengths() == std::vector<int>{0};
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto missed = reader.Get<std::uint64_t>();
    const auto count = reader.Get<std::uint32_t>();
    const auto length = reader.Get<std::uint32_t>();
    reader.NeedItems(length, 1);
    const std::string_view stream = reader.GetBytes(length);
    if (count > length / PackedEntries<Key>::kEntryMin) {
      reader.Fail("has more entries than bytes for them in " + name);
    }
    auto entries = PackedEntries<Key>::Check(stream, count, *levels, step, values);
    if (missed > step || !entries) {
      reader.Fail("has entries that are out of order or that their block does not allow in " +
                  name);
    }
    std::uint64_t counted = 0;
    for (const auto& entry : entries->Unpack(*levels, step)) counted += entry.count;
    if (step == 0 && counted != values && !root_alone) {
      reader.Fail("lacks values although nothing was dropped in " + name);
    }
    trees->push_back({{values - counted, missed}, *std::move(entries)});
  }
  return trees;
}

template struct SlidingTreeKind<std::uint32_t>;
template struct SlidingTreeKind<std::uint64_t>;
template struct SlidingTreeKind<Key128>;

}  // namespace internal

template <class Key>
HierarchicalSnapshot<Key> SlidingHierarchyCover<Key>::Snapshot() const {
  std::vector<internal::PrefixTree<Key>> trees;
  std::uint64_t dropped = 0;
  const auto add = [&](const Part& part) {
    trees.push_back(internal::Unpacked((*part.trees)[part.block], *levels, part.dropped));
    dropped += part.dropped;
  };
  for (const Part& part : whole) add(part);
  if (cut.trees != nullptr) add(cut);
  if (trees.empty()) trees.emplace_back();
  while (trees.size() > 1) {
    // The neighbours are of similar size, but at the end of a cover.
    std::vector<internal::PrefixTree<Key>> fewer;
    for (std::size_t i = 0; i + 1 < trees.size(); i += 2) {
      fewer.push_back(internal::MergeTrees(*levels, trees[i], trees[i + 1]));
    }
    if (trees.size() % 2 == 1) fewer.push_back(std::move(trees.back()));
    trees = std::move(fewer);
  }
  const auto tree = internal::Raised(std::move(trees.front()), *levels, dropped, dropped);
  std::uint64_t count = tree.root.count;
  for (const auto& entry : tree.entries) count += entry.count;
  return {epsilon,
          count,
          dropped,
          tree.root,
          levels,
          std::make_shared<const PackedEntries<Key>>(
              PackedEntries<Key>(tree.entries, *levels, dropped))};
}

template <class Key>
HierarchicalSnapshot<Key> SlidingHierarchyCover<Key>::CutSnapshot() const {
  const internal::SlidingTree<Key>& tree = (*cut.trees)[cut.block];
  return {epsilon,   cut_size, cut.dropped,
          tree.root, levels,   std::shared_ptr<const PackedEntries<Key>>(cut.trees, &tree.entries)};
}

template <class Key>
SlidingHierarchy<Key>::SlidingHierarchy(std::shared_ptr<const SlidingRule> rule,
                                        PrefixLevels<Key> levels)
    : blocks_(rule, {rule, std::make_shared<const PrefixLevels<Key>>(std::move(levels))}) {}

template <class Key>
void SlidingHierarchy<Key>::AddBlock(std::span<const Key> sorted, std::uint64_t expired) {
  internal::CheckSlidingBlock(sorted.size(), rule(), "a sliding hierarchy");
  blocks_.Add(blocks_.kind().First(sorted), expired);
}

template <class Key>
SlidingHierarchyCover<Key> SlidingHierarchy<Key>::Cover(const SlidingRange& range,
                                                        const SlidingRecord<Key>& record) const {
  auto cover = internal::CoverOfCounts<SlidingHierarchyCover<Key>>(blocks_, range, record);
  cover.levels = blocks_.kind().levels;
  return cover;
}

template <class Key>
std::string SlidingHierarchy<Key>::Serialize() const {
  ByteWriter writer(internal::kMagic, sizeof(Key));
  WriteOptions(writer, rule().options());
  writer.Put(static_cast<std::uint8_t>(levels().size()));
  for (const int length : levels().lengths()) writer.Put(static_cast<std::uint8_t>(length));
  blocks_.Write(writer);
  return writer.Finish();
}

template <class Key>
SlidingHierarchy<Key> SlidingHierarchy<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, internal::kMagic, sizeof(Key), "sliding hierarchy");
  const auto rule = ReadRule(reader);
  std::vector<int> lengths(reader.Get<std::uint8_t>());
  for (int& length : lengths) length = reader.Get<std::uint8_t>();
  std::optional<PrefixLevels<Key>> levels;
  try {
    levels.emplace(std::move(lengths));
  } catch (const std::invalid_argument& error) {
    reader.Fail(std::string("has wrong levels: ") + error.what());
  }
  SlidingHierarchy hierarchy(rule, *std::move(levels));
  const auto kind = hierarchy.blocks_.kind();
  hierarchy.blocks_ = decltype(blocks_)::Read(reader, rule, kind);
  reader.ExpectEnd();
  return hierarchy;
}

template struct SlidingHierarchyCover<std::uint32_t>;
template struct SlidingHierarchyCover<std::uint64_t>;
template struct SlidingHierarchyCover<Key128>;
template class SlidingHierarchy<std::uint32_t>;
template class SlidingHierarchy<std::uint64_t>;
template class SlidingHierarchy<Key128>;

}  // namespace tidemark
