// Sums of a stream's own values: what correlated sums (summaries/correlated_sums.h) are fed where y
// is x.
//
// Nothing travels beside the keys: the y of a sorted window are read back from its keys, so that
// the sort carries no payload. Integers are summed exactly, floats as the doubles that they are.
#ifndef TIDEMARK_SERVER_SUMMARIZE_VALUE_SUMS_H_
#define TIDEMARK_SERVER_SUMMARIZE_VALUE_SUMS_H_

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "summaries/correlated_sums.h"

namespace tidemark::server {

using SummedValues =
    std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::uint64_t>>;

/// The values of keys, in their order. 32 bits: kFloat64 reads them as float32, kUint64 as uint32.
/// REQUIRES: the keys stand for values of that type (kInt64 has keys of 64 bits alone).
template <class Key>
SummedValues ValuesOf(SumType type, std::span<const Key> keys);

extern template SummedValues ValuesOf(SumType, std::span<const std::uint32_t>);
extern template SummedValues ValuesOf(SumType, std::span<const std::uint64_t>);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_VALUE_SUMS_H_
