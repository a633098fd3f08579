// The digest of a window for a summary that knows ranks in proportion to their distance from the
// upper end: every key near the end, and then ever fewer.
//
// Guarantee: a WindowDigest whose entries, as a part, are within the given limit (rank_rule.h). A
// function of the window's multiset. Entries: about 1/(2f) * (1 + ln(f * n)) of n keys, at
// epsilon = 0.5 %, windows of 2^18: 7,555.
#ifndef TIDEMARK_SUMMARIES_TAIL_DIGEST_H_
#define TIDEMARK_SUMMARIES_TAIL_DIGEST_H_

#include <cstdint>
#include <span>

#include "summaries/rank_rule.h"
#include "summaries/window_digest.h"

namespace tidemark {

/// `end`: kUpper or kLower. `limit`: for sorted.size() values.
template <class Key>
WindowDigest<Key> TailDigestSorted(std::span<const Key> sorted, const GapLimit& limit, TailEnd end);

extern template WindowDigest<std::uint32_t> TailDigestSorted(std::span<const std::uint32_t>,
                                                             const GapLimit&, TailEnd);
extern template WindowDigest<std::uint64_t> TailDigestSorted(std::span<const std::uint64_t>,
                                                             const GapLimit&, TailEnd);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_TAIL_DIGEST_H_
