#include "summaries/grid_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "summaries/digest_rule.h"
#include "summaries/grid_kernels.h"

namespace tidemark::internal {
namespace {

constexpr double kFewLeft = 0.01;  // share of a sample that may be chance
constexpr double kClearly = 0.9;   // of the best cost so far: what is worth another way

constexpr double kMargin = 1.3;        // for what a sample may miss of how dense a block is
constexpr double kSomewhat = 1.05;     // for what it may miss of all keys in a block, or several
constexpr double kNearlyHeavy = 0.95;  // of the stride: about half of such cells are heavy

constexpr double kMaxGridCells =
    262144;                          // most are hardly touched; those that are stay in the cache
constexpr double kMaxBlocks = 1024;  // their shapes stay in the first cache
constexpr int kMaxBlockBits = 12;    // cells of one block: 2^12
constexpr int kMaxFewBits = 16;      // the same of few blocks, which are larger

constexpr std::size_t kSure = 5;  // keys of a sample in one light cell that are hardly chance
constexpr int kTogetherBits = 4;  // neighbours that are looked at together: 2^4 cells
constexpr std::size_t kNear = 4;  // blocks on either side that say how dense a block is
constexpr std::size_t kLargeTask = std::size_t{1} << 17;  // smaller ones are planned more coarsely

/// Calls visit(begin, end) for each stretch of sample[begin, end) that lies in one cell.
template <class Key, class Visit>
void ForEachStretch(std::span<const Key> sample, std::size_t begin, std::size_t end, int level,
                    Visit visit) {
  for (std::size_t at = begin; at < end;) {
    const Key cell = sample[at] >> level;
    std::size_t last = at + 1;
    while (last < end && sample[last] >> level == cell) ++last;
    visit(at, last);
    at = last;
  }
}

/// What sorting costs for each key. Where keys are equal it takes about as many passes as bits tell
/// them apart.
struct SortCosts {
  double all;        ///< all keys
  double runs;       ///< those in runs alone
  double run_share;  ///< of all keys
};
template <class Key>
SortCosts EstimateSort(std::size_t count, std::uint64_t stride, std::span<const Key> sample,
                       double sort_cost) {
  const double bits = std::log2(static_cast<double>(count));
  const double m = static_cast<double>(sample.size());
  const double least = static_cast<double>(stride) * m / static_cast<double>(count);
  double all = bits * m, runs = 0, run_keys = 0;
  ForEachStretch(sample, 0, sample.size(), 0, [&](std::size_t begin, std::size_t end) {
    if (end - begin == 1) return;
    const double times = static_cast<double>(end - begin);
    const double own = std::log2(m / times);
    all -= times * (bits - own);
    if (times <= least) return;
    runs += times * own;
    run_keys += times;
  });
  if (run_keys > 0) runs = runs / run_keys - std::log2(m / run_keys);
  return {0.1 + sort_cost * all / (m * bits), 0.1 + sort_cost * runs / bits, run_keys / m};
}

template <class Key>
double CellsOf(const GridTask<Key>& task, int level) {
  return static_cast<double>((task.max >> level) - (task.min >> level)) + 1;
}

template <class Key>
void SetEven(const GridTask<Key>& task, int level, double left, GridPlan<Key>& plan) {
  plan.way = GridWay::kEven;
  plan.left = left;
  plan.cells = static_cast<std::size_t>(CellsOf(task, level));
  constexpr int kAll = 8 * sizeof(Key);
  plan.blocks.assign(1, {0, static_cast<std::uint32_t>(plan.cells), level, kAll, 0});
}

template <class Key>
class Planner {
 public:
  Planner(const GridTask<Key>& task, std::span<const Key> sample, double sort_cost)
      : task_(task),
        sample_(sample),
        sort_cost_(sort_cost),
        scale_(static_cast<double>(task.count) / static_cast<double>(sample.size())),
        stride_(static_cast<double>(task.stride)),
        sort_(EstimateSort(task.count, task.stride, sample, sort_cost)) {}

  void Make(GridPlan<Key>& plan) {
    plan.way = GridWay::kSort;
    double best = kClearly * sort_.all;
    const auto is_better = [&](double cost) {
      if (cost >= best) return false;
      best = kClearly * cost;
      return true;
    };
    const int even = EvenLevel();
    if (best > kEvenCost && CellsOf(task_, even) <= kMaxGridCells) {
      const double told = even == task_.level ? plan.left : 0;
      const double left = told > 0 ? told : HeavyShare(even);
      if (is_better(Cost(kEvenCost, CellsOf(task_, even), left, kCopyCost))) {
        SetEven(task_, even, left, plan);
      }
    }
    if (task_.vectors) {
      const auto few = [&](double cells, double left) {
        return Cost(kFewBlocksCost, cells, left, kCopyFewBlocksCost);
      };
      if (best > few(0, 0) && FindBlocks(CutEvenly(kFewBlocks), kMaxFewBits, 0)) {
        if (is_better(few(static_cast<double>(cells_), stuck_share_))) SetBlocks(true, plan);
      }
      const auto logs = [&](double cells, double left) {
        return Cost(kLogBlocksCost, cells, left, kCopyFewBlocksCost);
      };
      if (best > logs(0, 0) && FindBlocks(CutByMagnitude(), kMaxFewBits, 0)) {
        if (is_better(logs(static_cast<double>(cells_), stuck_share_))) SetLogBlocks(plan);
      }
    }
    if (best > Cost(kBlocksCost, 0, LeastStuck(), kCopyBlocksCost) &&
        FindBlocks(CutEvenly(MostBlocks()), kMaxBlockBits, kNear)) {
      const auto cells = static_cast<double>(cells_);
      if (is_better(Cost(kBlocksCost, cells, stuck_share_, kCopyBlocksCost))) {
        SetBlocks(false, plan);
      }
    }
    const double split = SplitCost();
    if (best > split && task_.count >= kLargeTask && FindSplit(plan) && is_better(split)) {
      plan.way = GridWay::kSplit;
    }
  }

 private:
  static constexpr std::size_t kEdge = 64;  // a split leaves at most one key in so many outside

  /// For each key. `left`: share of keys that are left to be copied and sorted.
  double Cost(double count, double cells, double left, double copy) const {
    double cost = count + kCellCost * cells / static_cast<double>(task_.count);
    if (left <= kFewLeft) return cost;
    const double runs = std::min(left, sort_.run_share);
    return cost + copy + runs * sort_.runs + (left - runs) * sort_cost_;
  }

  /// Blocks within. A sample that shows less than two keys of each stride will miss heavy cells.
  double SplitCost() const {
    constexpr double kMissed = 0.3;  // of the keys lie in such cells
    const double strides = static_cast<double>(task_.count) / stride_;
    const double cells = std::min(kMaxGridCells, static_cast<double>(kCellsPerStride) * strides);
    const double outside = 2.0 / static_cast<double>(kEdge) * sort_cost_;
    const bool misses = 2 * strides > static_cast<double>(sample_.size());
    const double missed = kCopyBlocksCost + kMissed * sort_cost_;
    return kSplitCost + outside + kBlocksCost + (misses ? missed : 0) +
           kCellCost * cells / static_cast<double>(task_.count);
  }

  double Keys(std::size_t begin, std::size_t end) const {
    return static_cast<double>(end - begin) * scale_;
  }
  /// At least as many as a heavy cell has.
  std::uint64_t HeavyKeys(double keys) const {
    return std::max(static_cast<std::uint64_t>(keys), task_.stride + 1);
  }

  /// Where cells of `level` have `each` keys, spread evenly: the level that they are divided down
  /// to.
  int Divided(int level, double each) const {
    while (level > 0 && each > kNearlyHeavy * stride_) {
      const int refined = RefinedLevel(level, HeavyKeys(each), task_.stride);
      each /= static_cast<double>(std::uint64_t{1} << (level - refined));
      level = refined;
    }
    return level;
  }

  /// The same for all keys, spread evenly from the least to the greatest.
  int EvenLevel() const {
    constexpr double kUneven = 1.2;
    const double keys = kUneven * static_cast<double>(task_.count);
    int level = task_.level;
    for (;;) {
      const double each = keys / CellsOf(task_, level);
      if (level == 0 || each <= kNearlyHeavy * stride_) break;
      level = RefinedLevel(level, HeavyKeys(each), task_.stride);
    }
    return std::min(level, CellLevel(task_.min, task_.max, task_.count, task_.stride));
  }

  /// Share of keys in cells that are too heavy to be divided into cells of `least`: single ones,
  /// and neighbours where it is plain only together.
  double HeavyShare(int least) const {
    const std::size_t heavy = HeavyWithin(0, sample_.size(), task_.level, least);
    return static_cast<double>(heavy) / static_cast<double>(sample_.size());
  }
  std::size_t HeavyWithin(std::size_t begin, std::size_t end, int level, int least) const {
    std::size_t heavy = 0;
    const int together = std::min<int>(level + kTogetherBits, 8 * sizeof(Key) - 1);
    ForEachStretch(sample_, begin, end, together, [&](std::size_t first, std::size_t last) {
      const double each = Keys(first, last) / static_cast<double>(1u << (together - level));
      const Key span = (sample_[last - 1] >> level) - (sample_[first] >> level);
      const bool even = span >= Key{1} << (together - level) >> 1;
      if (even && last - first >= 2 * kSure && each > kNearlyHeavy * stride_) {
        if (Divided(level, each) < least) heavy += last - first;
        return;
      }
      const auto sure = kSure + (last - first) / 8;  // twice what its neighbours have, and more
      if (level == 0 || last - first < sure) return;
      ForEachStretch(sample_, first, last, level, [&](std::size_t from, std::size_t to) {
        if (to - from < sure || Keys(from, to) <= 1.9 * stride_) return;
        const int refined = RefinedLevel(level, HeavyKeys(Keys(from, to)), task_.stride);
        heavy += refined < least ? to - from : HeavyWithin(from, to, refined, least);
      });
    });
    return heavy;
  }

  double MostBlocks() const { return task_.count < kLargeTask ? kMaxBlocks / 2 : kMaxBlocks; }

  int BlockLevel(double most) const {
    int level = task_.level;
    while (CellsOf(task_, level) > most) ++level;
    return level;
  }

  /// Share of keys that no blocks part.
  double LeastStuck() const {
    const int least = std::max(0, BlockLevel(MostBlocks()) - kMaxBlockBits);
    std::size_t stuck = 0;
    ForEachStretch(sample_, 0, sample_.size(), least, [&](std::size_t begin, std::size_t end) {
      if (end - begin >= kSure && Keys(begin, end) > 1.9 * stride_) stuck += end - begin;
    });
    return static_cast<double>(stuck) / static_cast<double>(sample_.size());
  }

  /// A cell of some level that is to be divided.
  struct Extent {
    Key least;  // key in it
    int level;
  };
  using Extents = std::vector<Extent>;

  /// At most so many blocks of one level.
  const Extents& CutEvenly(double most) {
    const int level = BlockLevel(most);
    extents_.clear();
    for (Key number = task_.min >> level;; ++number) {
      extents_.push_back({static_cast<Key>(number << level), level});
      if (number == task_.max >> level) return extents_;
    }
  }

  /// The blocks of LogCells, counted from the longest prefix that all keys have.
  const Extents& CutByMagnitude() {
    const Key base = MagnitudeBase();
    extents_.clear();
    for (Key distance = 0; distance <= static_cast<Key>(task_.max - base);) {
      const int order = static_cast<int>(std::bit_width(distance));
      const int level = distance == 0 ? 1 : std::max(0, order - LogCells<Key>::kParts);
      const auto last = static_cast<Key>(distance + ((Key{1} << level) - 1));
      const auto least = static_cast<Key>(base + distance);
      if (static_cast<Key>(base + last) >= task_.min) extents_.push_back({least, level});
      if (last == static_cast<Key>(~Key{0})) break;
      distance = static_cast<Key>(last + 1);
    }
    return extents_;
  }
  Key MagnitudeBase() const {
    const int differ = static_cast<int>(std::bit_width(static_cast<Key>(task_.min ^ task_.max)));
    if (differ == 8 * sizeof(Key)) return 0;
    return static_cast<Key>(task_.min >> differ << differ);
  }

  /// Whether blocks of these extents can be cut into up to 2^bits cells each; and sets blocks_,
  /// cells_ and stuck_share_.
  bool FindBlocks(const Extents& extents, int bits, std::size_t near) {
    starts_.clear();
    blocks_.clear();
    cells_ = 0;
    std::size_t at = 0;
    for (const auto& [least, level] : extents) {
      starts_.push_back(at);
      while (at < sample_.size() && sample_[at] >> level == least >> level) ++at;
    }
    starts_.push_back(at);
    std::size_t stuck = 0;
    for (std::size_t block = 0; block < extents.size(); ++block) {
      const auto& [least, block_level] = extents[block];
      const int level = LevelWithin(block, std::max(0, block_level - bits), near, stuck);
      const std::size_t cells = std::size_t{1} << (block_level - level);
      blocks_.push_back({static_cast<std::uint32_t>(cells_), static_cast<std::uint32_t>(cells),
                         level, block_level, least >> block_level});
      cells_ += cells;
      if (static_cast<double>(cells_) > kMaxGridCells) return false;
    }
    stuck_share_ = static_cast<double>(stuck) / static_cast<double>(sample_.size());
    return true;
  }

  /// The level of the cells that a block is divided into, or the block's if it is within a cell
  /// that is not divided so far: cells above it are divided as the sample says.
  int TopLevel(const Extent& block) const {
    int level = task_.level;
    while (level > block.level) {
      const auto cell = static_cast<Key>(block.least >> level);
      const auto [from, to] =
          std::equal_range(sample_.begin(), sample_.end(), static_cast<Key>(cell << level),
                           [level](Key a, Key b) { return a >> level < b >> level; });
      const double keys = static_cast<double>(to - from) * scale_;
      if (keys <= kNearlyHeavy * stride_) return block.level;
      level = RefinedLevel(level, HeavyKeys(kSomewhat * keys), task_.stride);
    }
    return level;
  }

  /// The level of a block's cells. How dense it is where its keys are spread evenly is told from
  /// all of its sample, with its neighbours' if that is little.
  int LevelWithin(std::size_t block, int least, std::size_t near, std::size_t& stuck) const {
    const std::size_t from = block < near ? 0 : block - near;
    const std::size_t to = std::min(starts_.size() - 1, block + near + 1);
    const std::size_t begin = starts_[block], end = starts_[block + 1];
    const int block_level = extents_[block].level, top = TopLevel(extents_[block]);
    const double about =
        static_cast<double>(starts_[to] - starts_[from]) / static_cast<double>(to - from);
    const double own = static_cast<double>(end - begin);
    const double dense = Densest(begin, end, top, block_level);
    const double each = std::max({near > 0 ? about : own + std::sqrt(own), own, dense}) /
                        static_cast<double>(std::uint64_t{1} << (block_level - top));
    int needed = top;
    const double keys = kMargin * each * scale_ * static_cast<double>(1 << task_.finer);
    if (keys > 0.8 * stride_) needed = RefinedLevel(top, HeavyKeys(keys), task_.stride);
    std::size_t runs = 0;
    needed = std::min(needed, NeededLevel(begin, end, top, least, each, stuck, runs));
    if (runs == 0) return std::max(needed, least);
    // In cells of level 0 runs need not be copied.
    if (least == 0 && Keys(0, runs) > 2 * std::ldexp(1, block_level)) return 0;
    stuck += runs;
    return std::max(needed, least);
  }

  /// How much of the sample a block would have if it were as dense everywhere as where it is
  /// densest beyond chance.
  double Densest(std::size_t begin, std::size_t end, int top, int block_level) const {
    double densest = 0;
    for (int level = top + 2; level < block_level; level += 2) {
      const auto parts = static_cast<double>(std::uint64_t{1} << (block_level - level));
      ForEachStretch(sample_, begin, end, level, [&](std::size_t from, std::size_t to) {
        densest = std::max(densest, Surely(to - from) * parts);
      });
    }
    return densest;
  }

  /// At least so many of a sample are expected where `seen` are.
  static double Surely(std::size_t seen) {
    const double count = static_cast<double>(seen);
    return std::max(0.0, count - 2.5 * std::sqrt(count));
  }

  /// The level that cells must have for sample[begin, end), all in cells of `level`, in each of
  /// which `usual` would be if they were spread evenly. What no level down to `least` can part is
  /// added to `stuck`, or to `runs`.
  int NeededLevel(std::size_t begin, std::size_t end, int level, int least, double usual,
                  std::size_t& stuck, std::size_t& runs) const {
    int needed = level;
    if (level == 0 || end - begin < kSure || Keys(begin, end) <= 1.9 * stride_) return needed;
    const double chance = static_cast<double>(kSure) + usual + 3 * std::sqrt(usual);
    ForEachStretch(sample_, begin, end, level, [&](std::size_t from, std::size_t to) {
      if (to - from < kSure || Keys(from, to) <= 1.9 * stride_) return;
      int refined = RefinedLevel(level, HeavyKeys(Keys(from, to)), task_.stride);
      if (refined < least || sample_[from] == sample_[to - 1]) {
        (sample_[from] == sample_[to - 1] ? runs : stuck) += to - from;
        return;
      }
      const bool stands_out = static_cast<double>(to - from) > chance;
      if (!stands_out && task_.finer == 0 && Surely(to - from) <= usual) return;
      const double each = static_cast<double>(to - from) /
                          static_cast<double>(std::uint64_t{1} << (level - refined));
      needed = std::min(needed, NeededLevel(from, to, refined, least, each, stuck, runs));
      // A bit more where it stands out: there may be more keys than the sample shows.
      if (stands_out) refined = std::max(refined - 1, least);
      needed = std::min(needed, refined);
    });
    return needed;
  }

  void SetBlocks(bool few, GridPlan<Key>& plan) {
    plan.block_level = blocks_.front().block_level;
    plan.block_base = static_cast<Key>(task_.min >> plan.block_level);
    plan.few_blocks = few;
    plan.log_blocks = false;
    plan.shapes.assign(std::max(blocks_.size(), kFewBlocks), 0);
    for (std::size_t i = 0; i < blocks_.size(); ++i) plan.shapes[i] = ShapeOf(i);
    TakeBlocks(plan);
  }
  void SetLogBlocks(GridPlan<Key>& plan) {
    plan.block_base = MagnitudeBase();
    plan.few_blocks = plan.log_blocks = true;
    plan.shapes.assign(kFewBlocks, 0);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const auto distance = static_cast<Key>(extents_[i].least - plan.block_base);
      plan.shapes[LogCells<Key>::BlockOf(distance)] = ShapeOf(i);
      if (starts_[i] <= sample_.size() / 2) plan.block_level = extents_[i].level;
    }
    TakeBlocks(plan);
  }
  void TakeBlocks(GridPlan<Key>& plan) {
    plan.way = GridWay::kBlocks;
    plan.left = stuck_share_;
    plan.cells = cells_;
    plan.blocks.swap(blocks_);
  }
  std::uint32_t ShapeOf(std::size_t block) const {
    const auto number = static_cast<std::uint32_t>(extents_[block].least >> blocks_[block].level);
    return BlockShape::Make(blocks_[block].first, number, blocks_[block].level);
  }

  /// Whether nearly all keys lie in an eighth of the cells, or less.
  bool FindSplit(GridPlan<Key>& plan) const {
    const std::size_t edge = sample_.size() / kEdge;
    const auto low = static_cast<Key>(sample_[edge] >> task_.level);
    const auto high = static_cast<Key>(sample_[sample_.size() - 1 - edge] >> task_.level);
    if ((static_cast<double>(high - low) + 1) * 8 > CellsOf(task_, task_.level)) return false;
    plan.split_low = static_cast<Key>(low << task_.level);
    plan.split_high = static_cast<Key>((high << task_.level) | ((Key{1} << task_.level) - 1));
    return true;
  }

  const GridTask<Key>& task_;
  const std::span<const Key> sample_;
  const double sort_cost_;
  const double scale_;  // keys that one of the sample stands for
  const double stride_;
  const SortCosts sort_;

  Extents extents_;                  // of blocks
  std::vector<std::size_t> starts_;  // of each block in the sample, and its end
  std::vector<GridBlock> blocks_;
  std::size_t cells_ = 0;   // of all blocks
  double stuck_share_ = 0;  // of keys that they do not part
};

}  // namespace

template <class Key>
RunEstimate EstimateRuns(std::size_t count, std::uint64_t stride, std::span<const Key> sample,
                         double sort_cost, bool vectors) {
  const SortCosts sort = EstimateSort(count, stride, sample, sort_cost);
  if (sort.run_share == 0) return {0, sort.all, 0, false};
  // Runs of small numbers can have cells of their own (LogCells).
  const auto low_end = std::partition_point(sample.begin(), sample.end(), [&](Key key) {
    return static_cast<Key>(key - sample[0]) >> kMaxFewBits == 0;
  });
  const double low = vectors ? static_cast<double>(low_end - sample.begin()) : 0;
  const double copied = std::max(0.0, sort.run_share - low / static_cast<double>(sample.size()));
  const double least = kEvenCost + (copied > 0 ? kCopyCost + copied * sort.runs : 0);
  return {sort.run_share, sort.all, sort.runs, least > kClearly * sort.all};
}

template <class Key>
bool PlanEven(const GridTask<Key>& task, std::span<const Key> sample, GridPlan<Key>& plan) {
  constexpr std::size_t kTogether = std::size_t{1} << kTogetherBits;
  const double cells = CellsOf(task, task.level);
  if (cells > kMaxGridCells) return false;
  plan.counts.assign((static_cast<std::size_t>(cells) / kTogether + 1) * kTogether, 0);
  const auto base = static_cast<Key>(task.min >> task.level);
  for (const Key key : sample) {
    ++plan.counts[static_cast<std::size_t>(static_cast<Key>((key >> task.level) - base))];
  }
  const double scale = static_cast<double>(task.count) / static_cast<double>(sample.size());
  const double stride = static_cast<double>(task.stride);
  // Cells of so many keys on average hardly ever have more than the stride, by 3 deviations.
  const double usual = std::pow((std::sqrt(9 + 4 * stride) - 3) / 2, 2);
  const auto dense = static_cast<unsigned>(
      std::max<double>(2 * kSure, usual * static_cast<double>(kTogether) / scale));
  const auto single = static_cast<unsigned>(std::max<double>(kSure, 1.9 * stride / scale + 1));
  std::size_t heavy = 0;
  for (std::size_t at = 0; at < plan.counts.size(); at += kTogether) {
    unsigned sum = 0, most = 0;
    for (std::size_t i = 0; i < kTogether; ++i) {
      const unsigned count = plan.counts[at + i];
      sum += count;
      most = std::max(most, count);
    }
    if (sum >= dense) {
      heavy += sum;
    } else if (most >= single + sum / 8) {
      heavy += most;
    }
  }
  plan.left = static_cast<double>(heavy) / static_cast<double>(sample.size());
  if (plan.left > kFewLeft) return false;
  SetEven(task, task.level, plan.left, plan);
  return true;
}

template <class Key>
void PlanGrid(const GridTask<Key>& task, std::span<const Key> sample, double sort_cost,
              GridPlan<Key>& plan) {
  Planner<Key>(task, sample, sort_cost).Make(plan);
}

template RunEstimate EstimateRuns(std::size_t, std::uint64_t, std::span<const std::uint32_t>,
                                  double, bool);
template RunEstimate EstimateRuns(std::size_t, std::uint64_t, std::span<const std::uint64_t>,
                                  double, bool);
template bool PlanEven(const GridTask<std::uint32_t>&, std::span<const std::uint32_t>,
                       GridPlan<std::uint32_t>&);
template bool PlanEven(const GridTask<std::uint64_t>&, std::span<const std::uint64_t>,
                       GridPlan<std::uint64_t>&);
template void PlanGrid(const GridTask<std::uint32_t>&, std::span<const std::uint32_t>, double,
                       GridPlan<std::uint32_t>&);
template void PlanGrid(const GridTask<std::uint64_t>&, std::span<const std::uint64_t>, double,
                       GridPlan<std::uint64_t>&);

}  // namespace tidemark::internal
