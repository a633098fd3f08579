// What a quantile summary held at one moment, whatever its form: the parts that a QuantileView
// answers from.
#ifndef TIDEMARK_SUMMARIES_QUANTILE_SNAPSHOT_H_
#define TIDEMARK_SUMMARIES_QUANTILE_SNAPSHOT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "summaries/packed_samples.h"
#include "summaries/quantile_rule.h"
#include "summaries/rank_rule.h"
#include "summaries/ranked_samples.h"

namespace tidemark {

/// Samples of shape.count() values; see quantile_rule.h. Immutable, shared by summary and
/// snapshots.
template <class Key>
struct SampleBucket {
  BucketShape shape;
  std::shared_ptr<const Key[]> keys;  ///< shape.samples keys, ascending

  std::span<const Key> samples() const { return {keys.get(), shape.samples}; }
};

/// What a summary held at one moment, as parts that stand for disjoint sets of its values, in any
/// number of each kind. Copying it copies their pointers, O(log n) of them. Any thread may read
/// it.
template <class Key>
struct QuantileSnapshot {
  double epsilon = 0;
  std::uint64_t count = 0;  ///< of all parts together
  Key min = 0;              ///< the smallest value that the buckets stand for, if there are any
  std::vector<SampleBucket<Key>> buckets;
  std::vector<std::shared_ptr<const RankedSamples<Key>>> ranked{};  ///< none is null
  std::vector<std::shared_ptr<const PackedSamples<Key>>> packed{};  ///< none is null
  /// Parts that bound ranks as `ranked` do and are never answers: of the multiset from which their
  /// samples come only `count` values are covered, it is not known which. (So bounds of neighbours
  /// may be equal, and a sample may be none of the values covered.) None is null.
  std::vector<std::shared_ptr<const RankedSamples<Key>>> edges{};
  TailEnd end = TailEnd::kNone;  ///< at which end epsilon is in proportion to the distance
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_QUANTILE_SNAPSHOT_H_
