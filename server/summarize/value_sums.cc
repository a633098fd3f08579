#include "server/summarize/value_sums.h"

#include <algorithm>
#include <cassert>

#include "summaries/key_codec.h"

namespace tidemark::server {
namespace {

template <class Value, class Key>
std::vector<Value> Mapped(std::span<const Key> keys, auto value_of) {
  std::vector<Value> values(keys.size());
  std::transform(keys.begin(), keys.end(), values.begin(), value_of);
  return values;
}

}  // namespace

template <class Key>
SummedValues ValuesOf(SumType type, std::span<const Key> keys) {
  if (type == SumType::kUint64) return std::vector<std::uint64_t>(keys.begin(), keys.end());
  if constexpr (sizeof(Key) == sizeof(std::uint32_t)) {
    assert(type == SumType::kFloat64);
    return Mapped<double>(keys, [](Key key) { return double{DecodeFloat32(key)}; });
  } else {
    if (type == SumType::kInt64) return Mapped<std::int64_t>(keys, DecodeInt64);
    return Mapped<double>(keys, DecodeFloat64);
  }
}

template SummedValues ValuesOf(SumType, std::span<const std::uint32_t>);
template SummedValues ValuesOf(SumType, std::span<const std::uint64_t>);

}  // namespace tidemark::server
