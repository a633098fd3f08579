#include <array>
#include <utility>

#include "server/window/ingest_sink.h"

namespace tidemark::server {
namespace {

constexpr std::array<std::pair<ValueType, std::string_view>, 8> kNames = {{
    {ValueType::kFloat64, "float64"},
    {ValueType::kFloat32, "float32"},
    {ValueType::kInt64, "int64"},
    {ValueType::kUint64, "uint64"},
    {ValueType::kUint32, "uint32"},
    {ValueType::kIpv4, "ipv4"},
    {ValueType::kString, "string"},
    {ValueType::kIpv6, "ipv6"},
}};

}  // namespace

std::string_view ValueTypeName(ValueType type) {
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return "unknown";
}

std::string ElementTypeName(ElementType type) {
  std::string name(ValueTypeName(type.value));
  switch (type.payload) {
    case PayloadType::kNone:
      break;
    case PayloadType::kWeight:
      return name + " with weights";
    case PayloadType::kY:
      return name + " with y";
  }
  return name;
}

std::optional<ValueType> ParseValueType(std::string_view name) {
  for (const auto& [type, known] : kNames) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::optional<ValueType> ValueTypeFromNumber(std::uint32_t number) {
  for (const auto& [type, name] : kNames) {
    if (static_cast<std::uint32_t>(type) == number) return type;
  }
  return std::nullopt;
}

}  // namespace tidemark::server
