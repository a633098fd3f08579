// Quantiles in a form to hand on: small, self-contained, simple to read in any language.
//
// Guarantee: a view of what was imported proves, for every rank, what the exporting stream
// promised: epsilon * n, or epsilon times the distance from one end; not the tighter bounds that
// the exporting side could prove at the time. Imported parts can be viewed together: their bounds
// add up (rank_rule.h), so that the promise holds of the union.
//
// Layout, little-endian:
//   0  8  frame: magic "TMQE", version 1, key bits, 0 (byte_io.h)
//   8  8  epsilon, IEEE 754 double
//  16  1  layout: 0 even ranks, 1 rank bounds at the upper end, 2 at the lower end
//  17  8  n
//      even ranks:
//  25  4  m, number of keys (0 if n = 0); kExportKeysMax at most is written
//  29  8  h
//  37     m * key bytes, ascending: of the positions that key i takes in sorted order, from 1, one
//         lies within h of t_i = 1 + floor(i * (n - 1) / (m - 1)) (t_0 = 1; key 0 is the minimum,
//         the last key the maximum)
//      rank bounds:
//  25     entries (packed_samples.h)
//   -4 4  CRC-32C of all bytes before
//
// Why even ranks need no bounds. Let every answer be known within h and the targets be at most s
// apart: then between neighbours the bounds differ by s + 2h at most, and
// s = 2 * floor(eps * n) + 1 - 2h keeps the promise. A summary that answers within eps/2
// (CompactQuantiles) needs 1 / eps + 1 keys: at epsilon = 0.1 % and 32 bits 4,045 bytes, whatever
// the order of the stream.
#ifndef TIDEMARK_SUMMARIES_QUANTILE_EXPORT_H_
#define TIDEMARK_SUMMARIES_QUANTILE_EXPORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "summaries/quantile_snapshot.h"
#include "summaries/quantile_view.h"

namespace tidemark {

/// As many keys an export of even ranks may have: enough for epsilon = 6e-8 over any n where
/// answers are known within epsilon / 2. One that was imported is known no better than it was
/// exported.
inline constexpr std::uint64_t kExportKeysMax = std::uint64_t{1} << 24;

/// All that the view covers, its open window too.
/// Errors: throws std::logic_error if the view has unseen values, std::invalid_argument if it does
/// not keep its own epsilon, std::length_error if even ranks would take more than kExportKeysMax.
template <class Key>
std::string ExportQuantiles(const QuantileView<Key>& view);

/// Errors: throws std::invalid_argument, naming what is wrong, for any bytes that are not a whole,
/// undamaged export of this key width, or prove less than their epsilon.
template <class Key>
QuantileSnapshot<Key> ImportQuantiles(std::string_view bytes);

extern template std::string ExportQuantiles(const QuantileView<std::uint32_t>&);
extern template std::string ExportQuantiles(const QuantileView<std::uint64_t>&);
extern template QuantileSnapshot<std::uint32_t> ImportQuantiles(std::string_view);
extern template QuantileSnapshot<std::uint64_t> ImportQuantiles(std::string_view);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_QUANTILE_EXPORT_H_
