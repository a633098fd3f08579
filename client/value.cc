#include "client/value.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>

#include "client/answers.h"

namespace tidemark::client {
namespace {

constexpr std::array<std::string_view, 9> kTypeNames = {
    "unspecified", "float64", "float32", "int64", "uint64", "uint32", "ipv4", "string", "ipv6"};

template <typename Float>
void AppendFloat(Float value, std::string* out) {
  // to_chars alone takes the shorter of both notations, and so writes 100000 as 1e+05. The longest
  // fixed form in this range: sign, "0.0000", 17 digits; or sign and 17 digits.
  std::array<char, 64> text;
  const Float size = std::fabs(value);
  const bool fixed = size == 0 || (size >= Float{1e-5f} && size < Float{1e17f});
  const auto end =
      fixed ? std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed)
            : std::to_chars(text.data(), text.data() + text.size(), value);
  out->append(text.data(), end.ptr);
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* value) {
  // from_chars takes no '+'; after one it must not take a '-' either.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  *value = parsed;
  return true;
}

template <typename T>
std::optional<Value> ParseAs(std::string_view text) {
  T value{};
  if (!ParseText(text, &value)) return std::nullopt;
  return Value{value};
}

}  // namespace

std::string_view FormName(QuantileForm form) {
  switch (form) {
    case QuantileForm::kUnspecified:
      break;
    case QuantileForm::kHistogram:
      return "histogram";
    case QuantileForm::kCompact:
      return "compact";
    case QuantileForm::kTail:
      return "tail";
  }
  return "unspecified";
}

std::string_view TypeName(ValueType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypeNames.size() ? kTypeNames[index] : "unknown";
}

std::optional<ValueType> ParseTypeName(std::string_view name) {
  for (std::size_t i = 1; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) return static_cast<ValueType>(i);
  }
  return std::nullopt;
}

std::string_view TypeNames() {
  return "float64, float32, int64, uint64, uint32, ipv4, ipv6, string";
}

std::size_t PackedBytes(ValueType type) {
  switch (type) {
    case ValueType::kFloat64:
    case ValueType::kInt64:
    case ValueType::kUint64:
      return 8;
    case ValueType::kFloat32:
    case ValueType::kUint32:
    case ValueType::kIpv4:
      return 4;
    case ValueType::kIpv6:
      return 16;
    case ValueType::kUnspecified:
    case ValueType::kString:
      return 0;
  }
  return 0;
}

void AppendText(double value, std::string* out) { AppendFloat(value, out); }
void AppendText(float value, std::string* out) { AppendFloat(value, out); }
void AppendText(Ipv4 value, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (shift != 24) out->push_back('.');
    out->append(std::to_string((value.address >> shift) & 0xFFu));
  }
}

void AppendText(const Ipv6& value, std::string* out) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, value.bytes.data(), text.data(), text.size());
  // inet_ntop writes the last 32 bits of ::/96 dotted, as was once planned for such addresses (RFC
  // 4291 has given that up); RFC 5952 leaves that form to ::ffff:0:0/96.
  const std::string_view canonical = text.data();
  if (canonical.starts_with("::") && canonical.find('.') != std::string_view::npos &&
      !canonical.starts_with("::ffff:")) {
    const auto group = [&](std::size_t i) {
      std::array<char, 8> digits{};
      const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                     value.bytes[i] << 8 | value.bytes[i + 1], 16);
      return std::string(digits.data(), end.ptr);
    };
    *out += "::" + group(12) + ":" + group(14);
    return;
  }
  out->append(canonical);
}

std::string FormatPrefix(const Address& address, std::uint32_t length) {
  std::string text;
  std::visit([&](const auto& held) { AppendText(held, &text); }, address);
  return text + "/" + std::to_string(length);
}

std::string FormatValue(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return v;
        } else if constexpr (std::is_integral_v<T>) {
          return std::to_string(v);
        } else {
          std::string out;
          AppendText(v, &out);
          return out;
        }
      },
      value.kind);
}

bool ParseText(std::string_view text, double* value) { return ParseNumber(text, value); }
bool ParseText(std::string_view text, float* value) { return ParseNumber(text, value); }
bool ParseText(std::string_view text, std::int64_t* value) { return ParseNumber(text, value); }
bool ParseText(std::string_view text, std::uint64_t* value) { return ParseNumber(text, value); }
bool ParseText(std::string_view text, std::uint32_t* value) { return ParseNumber(text, value); }

bool ParseText(std::string_view text, Ipv4* value) {
  std::uint32_t address = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int part = 0; part < 4; ++part) {
    if (part > 0) {
      if (at == end || *at != '.') return false;
      ++at;
    }
    // At most three digits; a leading zero would be octal to some readers, so it is no address
    // here.
    std::uint32_t byte = 0;
    const char* const start = at;
    while (at != end && at - start < 3 && *at >= '0' && *at <= '9') {
      byte = byte * 10 + static_cast<std::uint32_t>(*at++ - '0');
    }
    if (at == start || byte > 255 || (*start == '0' && at - start > 1)) return false;
    address = (address << 8) | byte;
  }
  if (at != end) return false;
  value->address = address;
  return true;
}

bool ParseText(std::string_view text, Ipv6* value) {
  // inet_pton reads up to a zero byte, which a text may hold.
  std::array<char, INET6_ADDRSTRLEN> copy{};
  if (text.size() >= copy.size() || text.find('\0') != std::string_view::npos) return false;
  std::copy(text.begin(), text.end(), copy.begin());
  Ipv6 parsed;
  if (inet_pton(AF_INET6, copy.data(), parsed.bytes.data()) != 1) return false;
  *value = parsed;
  return true;
}

std::optional<Value> ParseValue(ValueType type, std::string_view text) {
  switch (type) {
    case ValueType::kFloat64:
      return ParseAs<double>(text);
    case ValueType::kFloat32:
      return ParseAs<float>(text);
    case ValueType::kInt64:
      return ParseAs<std::int64_t>(text);
    case ValueType::kUint64:
      return ParseAs<std::uint64_t>(text);
    case ValueType::kUint32:
      return ParseAs<std::uint32_t>(text);
    case ValueType::kIpv4:
      return ParseAs<Ipv4>(text);
    case ValueType::kIpv6:
      return ParseAs<Ipv6>(text);
    case ValueType::kString:
      return Value{std::string(text)};
    case ValueType::kUnspecified:
      return std::nullopt;
  }
  return std::nullopt;
}

bool IsUtf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t more = 0;
    // Range of the first continuation byte: narrower after E0, ED, F0 and F4.
    unsigned low = 0x80, high = 0xBF;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (text.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if (byte < low || byte > high) return false;
      low = 0x80;
      high = 0xBF;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace tidemark::client
