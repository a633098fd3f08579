// Values as callers of the client library see them, and their one text form: the one that the
// `tidemark` command reads, prints and puts into JSON.
//
// Text form. float64 and float32: the shortest decimal that reads back as the same number ("89.4",
// "-inf"), without exponent for 1e-5 <= |v| < 1e17. Integers: decimal. ipv4: dotted ("10.0.0.1").
// ipv6: RFC 5952 ("2001:db8::1", "::ffff:10.0.0.1"). string: itself. Formatting and parsing do not
// look at the locale.
#ifndef TIDEMARK_CLIENT_VALUE_H_
#define TIDEMARK_CLIENT_VALUE_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tidemark::client {

/// What the values of a stream are. The numbers are those of tidemark.v1.ValueType.
enum class ValueType : std::uint8_t {
  kUnspecified = 0,  ///< the daemon's configured default
  kFloat64 = 1,
  kFloat32 = 2,
  kInt64 = 3,
  kUint64 = 4,
  kUint32 = 5,
  kIpv4 = 6,
  kString = 7,
  kIpv6 = 8,
};

/// "float64", ..., "ipv6"; "unspecified" for kUnspecified.
std::string_view TypeName(ValueType type);
/// The type of that name; nullopt for an unknown one, and for "unspecified".
std::optional<ValueType> ParseTypeName(std::string_view name);
/// "float64, float32, ...": for messages.
std::string_view TypeNames();
/// Bytes of one value in packed form: 16, 8, 4, or 0 for strings.
std::size_t PackedBytes(ValueType type);

/// What travels beside each value of a stream. The numbers are those of tidemark.v1.PayloadType.
enum class PayloadType : std::uint8_t {
  kNone = 0,
  kWeight = 1,  ///< what the value counts for: uint64
  kY = 2,       ///< the y of a pair (x, y): double
};

/// An address as a number: a.b.c.d is a * 2^24 + b * 2^16 + c * 2^8 + d. Ordered as addresses.
struct Ipv4 {
  std::uint32_t address = 0;
  friend auto operator<=>(const Ipv4&, const Ipv4&) = default;
};
static_assert(sizeof(Ipv4) == 4, "an array of addresses is their packed form");

/// An address in network order. Ordered as addresses.
struct Ipv6 {
  std::array<std::uint8_t, 16> bytes{};
  friend auto operator<=>(const Ipv6&, const Ipv6&) = default;
};
static_assert(sizeof(Ipv6) == 16, "an array of addresses is their packed form");
using Address = std::variant<Ipv4, Ipv6>;

/// One value of any type.
struct Value {
  /// Alternatives in the order of ValueType, so that the index says the type.
  using Kind = std::variant<double, float, std::int64_t, std::uint64_t, std::uint32_t, Ipv4,
                            std::string, Ipv6>;
  Kind kind;

  ValueType type() const { return static_cast<ValueType>(kind.index() + 1); }
  friend bool operator==(const Value&, const Value&) = default;
};

/// The text form; see above.
std::string FormatValue(const Value& value);
/// "10.1.0.0/16", "2001:db8::/32".
std::string FormatPrefix(const Address& address, std::uint32_t length);
/// Appends the text form of one number to `out`.
void AppendText(double value, std::string* out);
void AppendText(float value, std::string* out);
void AppendText(Ipv4 value, std::string* out);
void AppendText(const Ipv6& value, std::string* out);

/// Reads one value from exactly `text`: no space around it. Numbers may begin with '+'; floating
/// point takes "inf", "infinity" and "nan" in any case. An ipv6 address may be written in any way
/// of RFC 4291, without zone and brackets; "10.0.0.1" is none ("::ffff:10.0.0.1" is). False, with
/// `value` unchanged, if the text is no such value or lies outside the type's range.
bool ParseText(std::string_view text, double* value);
bool ParseText(std::string_view text, float* value);
bool ParseText(std::string_view text, std::int64_t* value);
bool ParseText(std::string_view text, std::uint64_t* value);
bool ParseText(std::string_view text, std::uint32_t* value);
bool ParseText(std::string_view text, Ipv4* value);
bool ParseText(std::string_view text, Ipv6* value);
/// The same for a type known at run time; a string is taken as it is. nullopt where the above say
/// false, and for kUnspecified.
std::optional<Value> ParseValue(ValueType type, std::string_view text);

/// Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms), which strings must be.
bool IsUtf8(std::string_view text);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_VALUE_H_
