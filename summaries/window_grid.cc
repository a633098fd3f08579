#include "summaries/window_grid.h"

#include <algorithm>
#include <type_traits>

#include "summaries/cell_walk.h"
#include "summaries/digest_rule.h"
#include "summaries/key_range.h"
#include "summaries/key_sample.h"

namespace tidemark {
namespace {

using internal::BlockCells;
using internal::BlockRange;
using internal::EvenCells;
using internal::GridTask;
using internal::LogCells;

constexpr std::size_t kGlance = 32;       // keys that are not all equal by chance
constexpr std::size_t kRunSample = 256;   // keys that show whether many are equal
constexpr double kManyRuns = 0.06;        // of the sample: more than chance in uniform keys
constexpr std::size_t kMaxSample = 4096;  // sorted in 1 % of the window's time

// Counting, copying and sorting keys may cost so much more than sorting at once only if it is
// found out late: of the sort's time, what was counted before the look takes at most a tenth.
constexpr std::size_t kWatchEighths = 3;
constexpr double kSurely = 0.8;    // of what a window seems to have saved: costs are estimates
constexpr int kMostWait = 15;      // what is lost in one window in 16 is not seen
constexpr double kPiledUp = 0.23;  // share of the keys counted so far
constexpr int kMostFiner = 1;      // halvings: cells of which few are missed, and not too many
constexpr int kLongCalm = 32;      // windows: what is then tried in vain costs 2 % of them

template <class Key>
double DefaultSortCost() {
  return sizeof(Key) == 4 ? 3.8 : 6;
}

/// Whether most keys lie in the cell of the key before: sorted, or slowly changing. REQUIRES: two
/// keys, at least.
template <class Key>
bool AreClustered(std::span<const Key> keys, int level) {
  constexpr std::size_t kPairs = 64;
  const std::size_t part = (keys.size() - 1) / kPairs;  // a pair is two neighbours
  std::size_t same = 0;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const Key* pair = keys.data() + i * part;
    same += pair[0] >> level == pair[1] >> level ? 1 : 0;
  }
  return same >= kPairs * 7 / 8;
}

}  // namespace

template <class Key>
WindowGrid<Key>::WindowGrid(SortKeys sort, const GridTuning& tuning)
    : sort_(std::move(sort)), tuning_(tuning) {
  if (tuning_.sort_cost == 0) tuning_.sort_cost = DefaultSortCost<Key>();
}

template <class Key>
WindowDigest<Key> WindowGrid<Key>::Digest(std::span<Key> window, std::uint64_t stride,
                                          GridMemory& memory) {
  CheckDigestible(window.size(), stride);
  WindowDigest<Key> digest;
  digest.stride = stride;
  path_ = DigestPath::kSorted;
  if (window.empty()) return digest;
  Builder builder(window.size(), stride, digest);
  if (memory.wait > 0) {
    --memory.wait;
    SortWindow(window, builder);
  } else {
    AddWindow(window, memory, builder);
  }
  builder.Last();
  return digest;
}

template <class Key>
void WindowGrid<Key>::AddWindow(std::span<Key> window, GridMemory& memory, Builder& builder) {
  const Glance glance = LookAt(window, builder.reach());
  work_ = 0;
  missed_ = false;
  sorted_ = glance.sort ? window.size() : 0;
  if (glance.sort) {
    SortWindow(window, builder);
  } else {
    const auto [min, max] = internal::RangeOf(std::span<const Key>(window));
    builder.First(min);
    const int level = internal::CellLevel(min, max, window.size(), builder.reach());
    AddPlanned({window.size(), min, max, level, builder.reach(), memory.finer, tuning_.vectors},
               window, glance.runs.share, 0, builder);
    Learn(memory);
  }
  const bool wait = glance.looked && !Paid(glance, window.size());
  memory.last_wait =
      wait ? static_cast<std::uint8_t>(std::min(2 * memory.last_wait + 1, kMostWait)) : 0;
  memory.wait = memory.last_wait;
}

/// Windows of a stream are alike: if blocks were too coarse in one, they are halved in the next.
template <class Key>
void WindowGrid<Key>::Learn(GridMemory& memory) const {
  if (missed_) {
    if (memory.finer < kMostFiner) ++memory.finer;
    memory.calm = 0;
  } else if (memory.finer > 0 && ++memory.calm == kLongCalm) {
    --memory.finer;
    memory.calm = 0;
  }
}

template <class Key>
bool WindowGrid<Key>::Paid(const Glance& glance, std::size_t keys) const {
  const double all = static_cast<double>(keys), sorted = static_cast<double>(sorted_);
  const double in_runs = std::min(sorted, glance.runs.share * all);
  const double cost =
      work_ + in_runs * glance.runs.run_cost + (sorted - in_runs) * tuning_.sort_cost;
  return cost < kSurely * glance.runs.sort_cost * all;
}

template <class Key>
void WindowGrid<Key>::SortWindow(std::span<Key> window, Builder& builder) {
  sort_(window);
  builder.First(window.front());
  builder.AddSorted(
      window, internal::CellLevel(window.front(), window.back(), window.size(), builder.reach()));
}

/// Two of the sample for each stride, so that heavy cells show.
template <class Key>
std::size_t WindowGrid<Key>::SampleSize(std::size_t keys, std::uint64_t stride) const {
  const auto size = static_cast<std::size_t>(2 * keys / stride);
  return std::max(std::min(std::clamp(size, kRunSample, kMaxSample), keys / 16), kGlance);
}

template <class Key>
typename WindowGrid<Key>::Glance WindowGrid<Key>::LookAt(std::span<const Key> keys,
                                                         std::uint64_t stride) {
  constexpr Glance kSort{};
  if (keys.size() < tuning_.least_counted || keys.size() < kGlance ||
      stride < tuning_.least_stride) {
    return kSort;
  }
  internal::TakeSample(keys, kGlance, sample_);
  if (std::all_of(sample_.begin(), sample_.end(), [&](Key key) { return key == sample_[0]; })) {
    return kSort;
  }
  const auto runs_in = [&](std::size_t size) {
    internal::TakeSample(keys, size, sample_);
    sort_(sample_);
    return internal::EstimateRuns<Key>(keys.size(), stride, sample_, tuning_.sort_cost,
                                       tuning_.vectors);
  };
  const std::size_t size = SampleSize(keys.size(), stride);
  auto runs = runs_in(std::min(size, kRunSample));
  if (runs.share > kManyRuns && !runs.sort_at_once) {
    if (keys.size() < tuning_.least_planned) return {true, true, runs};
    runs = runs_in(size);
  }
  return {runs.sort_at_once, true, runs};
}

template <class Key>
void WindowGrid<Key>::AddCells(std::span<Key> keys, int level, std::size_t depth,
                               Builder& builder) {
  if (keys.empty()) return;
  if (depth == kLayers) return AddBySort(keys, level, builder);
  const Glance glance = LookAt(keys, builder.reach());
  if (glance.sort) return AddBySort(keys, level, builder);
  const auto [min, max] = internal::RangeOf(std::span<const Key>(keys));
  AddPlanned({keys.size(), min, max, level, builder.reach(), 0, tuning_.vectors}, keys,
             glance.runs.share, depth, builder);
}

template <class Key>
void WindowGrid<Key>::AddPlanned(const GridTask<Key>& task, std::span<Key> keys, double runs,
                                 std::size_t depth, Builder& builder) {
  Layer& layer = layers_[depth];
  auto& plan = layer.plan;
  plan.left = 0;
  internal::TakeSample(std::span<const Key>(keys), SampleSize(keys.size(), builder.reach()),
                       sample_);
  if (runs > kManyRuns || !internal::PlanEven<Key>(task, sample_, plan)) {
    if (keys.size() < tuning_.least_planned) return AddBySort(keys, task.level, builder);
    sort_(sample_);
    internal::PlanGrid<Key>(task, sample_, tuning_.sort_cost, plan);
  }
  switch (plan.way) {
    case internal::GridWay::kSort:
      return AddBySort(keys, task.level, builder);
    case internal::GridWay::kSplit:
      return AddSplit(keys, task.level, depth, builder);
    case internal::GridWay::kEven: {
      const int fine = plan.blocks.front().level;
      const auto base = static_cast<Key>(task.min >> fine);
      const Key group = Key{1} << (task.level - fine);
      return AddCounted(keys, task.level, EvenCells<Key>{fine, base, tuning_.vectors},
                        static_cast<std::size_t>(base & (group - 1)), layer, builder);
    }
    case internal::GridWay::kBlocks:
      if (plan.log_blocks) {
        return AddCounted(
            keys, task.level,
            LogCells<Key>{plan.block_level, plan.block_base, plan.shapes.data(), true}, 0, layer,
            builder);
      }
      return AddCounted(
          keys, task.level,
          BlockCells<Key>{plan.block_level, plan.block_base, plan.shapes.data(), plan.few_blocks},
          0, layer, builder);
  }
}

template <class Key>
void WindowGrid<Key>::AddBySort(std::span<Key> keys, int level, Builder& builder) {
  if (keys.size() < builder.count()) path_ = DigestPath::kRefined;
  sorted_ += keys.size();
  sort_(keys);
  builder.AddSorted(keys, level);
}

template <class Key>
void WindowGrid<Key>::AddSplit(std::span<Key> keys, int level, std::size_t depth,
                               Builder& builder) {
  const Key low = layers_[depth].plan.split_low, high = layers_[depth].plan.split_high;
  path_ = DigestPath::kCounted;
  const std::size_t inner = internal::PartitionRange(keys, low, high);
  const auto outside = keys.subspan(inner);
  sort_(outside);
  work_ += internal::kSplitCost * static_cast<double>(keys.size());
  sorted_ += outside.size();
  const auto below = static_cast<std::size_t>(
      std::lower_bound(outside.begin(), outside.end(), low) - outside.begin());
  builder.AddSorted(outside.first(below), level);
  const bool heavy = low >> level == high >> level && inner > builder.reach();
  AddCells(keys.first(inner), heavy ? internal::RefinedLevel(level, inner, builder.reach()) : level,
           depth + 1, builder);
  builder.AddSorted(outside.subspan(below), level);
}

template <class Key>
template <class Cells>
bool WindowGrid<Key>::CountAll(std::span<const Key> keys, Cells cells, std::uint64_t stride,
                               Layer& layer) const {
  layer.cells.assign(layer.plan.cells, Cell{0, 0});
  const bool clustered = AreClustered(keys, cells.level);
  const auto count = [&](std::span<const Key> part) {
    internal::CountKeys<Key>(part, cells, clustered, layer.cells.data());
  };
  if (!tuning_.watch) {
    count(keys);
    return true;
  }
  const std::size_t first = keys.size() / 8 * kWatchEighths;
  count(keys.first(first));
  const std::size_t piled = PiledUp(layer, stride);
  const double expected = layer.plan.left * static_cast<double>(first);
  if (static_cast<double>(piled) > expected + kPiledUp * static_cast<double>(first)) return false;
  count(keys.subspan(first));
  return true;
}

/// Those of level 0 hold one key each, which may come as often as it likes.
template <class Key>
std::size_t WindowGrid<Key>::PiledUp(const Layer& layer, std::uint64_t stride) const {
  std::size_t piled = 0, begin = 0, end = 0;
  const auto add = [&] {
    const auto cells = std::span<const Cell>(layer.cells).subspan(begin, end - begin);
    piled += tuning_.vectors ? internal::HeavyInVectors(cells, stride)
                             : internal::HeavyKeys(cells, stride);
  };
  for (const auto& block : layer.plan.blocks) {
    if (block.level == 0) {
      add();
      begin = block.first + block.cells;
    }
    end = block.first + block.cells;
  }
  add();
  return piled;
}

template <class Key>
template <class Cells>
void WindowGrid<Key>::AddCounted(std::span<Key> keys, int level, Cells cells, std::size_t skip,
                                 Layer& layer, Builder& builder) {
  constexpr bool kEven = std::is_same_v<Cells, EvenCells<Key>>;
  work_ += (kEven ? internal::kEvenCost : internal::kBlocksCost) * static_cast<double>(keys.size());
  work_ += internal::kCellCost * static_cast<double>(layer.plan.cells);
  if (!CountAll<Cells>(keys, cells, builder.reach(), layer)) {
    return AddBySort(keys, level, builder);
  }
  if (path_ == DigestPath::kSorted) path_ = DigestPath::kCounted;
  const BlockRange<Key> blocks{layer.plan.blocks, layer.cells, skip, level};
  bool copied = false;
  std::size_t next = 0;  // the first copied key that has not been given to the builder
  const auto copy_undivided = [&] {
    layer.wanted.assign(layer.cells.size(), 0);
    const std::size_t wanted =
        internal::MarkUndivided(blocks, builder.reach(), layer.wanted.data());
    layer.copied.resize(wanted + 1);  // CopyWanted writes behind the last
    internal::CopyWanted<Key>(keys, cells, layer.wanted.data(), layer.copied.data());
    layer.copied.resize(wanted);
    missed_ |=
        !kEven && static_cast<double>(wanted) > layer.plan.left * static_cast<double>(keys.size());
    sort_(layer.copied);
    work_ += (kEven ? internal::kCopyCost : internal::kCopyBlocksCost) *
             static_cast<double>(keys.size());
    sorted_ += wanted;
    copied = true;
    path_ = DigestPath::kRefined;
  };
  const auto undivided = [&](std::size_t count, int divided) {
    if (!copied) copy_undivided();
    builder.AddSorted(std::span<const Key>(layer.copied).subspan(next, count), divided);
    next += count;
  };
  internal::AddLeaves(blocks, builder, undivided);
}

template class WindowGrid<std::uint32_t>;
template class WindowGrid<std::uint64_t>;

}  // namespace tidemark
