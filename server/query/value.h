// Values as queries see them, and the keys behind them.
#ifndef TIDEMARK_SERVER_QUERY_VALUE_H_
#define TIDEMARK_SERVER_QUERY_VALUE_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "server/window/ingest_sink.h"
#include "summaries/hierarchy.h"

namespace tidemark::server {

struct Ipv4 {
  std::uint32_t address = 0;
  friend bool operator==(const Ipv4&, const Ipv4&) = default;
};

struct Ipv6 {
  Key128 address = 0;
  friend bool operator==(const Ipv6&, const Ipv6&) = default;
};

/// One value of any type of stream.
using Value = std::variant<double, float, std::int64_t, std::uint64_t, std::uint32_t, Ipv4,
                           std::string, Ipv6>;

/// The value behind a key of a numeric or address stream.
template <class Key>
Value DecodeValue(ValueType type, Key key);
extern template Value DecodeValue(ValueType type, std::uint32_t key);
extern template Value DecodeValue(ValueType type, std::uint64_t key);
template <>
inline Value DecodeValue(ValueType /*type*/, Key128 key) {
  return Ipv6{key};
}

/// Where a value stands among the keys of a stream whose values have ranks, or are strings. A
/// number of another kind than the stream's is rounded down to the stream's: the largest value of
/// the stream's type at or below it.
struct KeyPosition {
  std::uint64_t key = 0;
  bool exact = true;       ///< the value itself has this key
  bool below_all = false;  ///< every value of the type is above it; key is 0 then
};

/// Errors: INVALID_ARGUMENT for NaN and for a kind that cannot be compared with the stream's
/// values.
absl::StatusOr<KeyPosition> PositionOf(ValueType type, const Value& value);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_QUERY_VALUE_H_
