#include "server/durability/definition.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "server/store/log_format.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

constexpr std::uint8_t kVersion = 1;

// Bits of the byte of flags.
constexpr std::uint8_t kFrequencies = 1;
constexpr std::uint8_t kSums = 2;
constexpr std::uint8_t kRootLast = 4;

void PutU8(std::string& out, std::uint8_t number) { out.push_back(static_cast<char>(number)); }
void PutDouble(std::string& out, double number) {
  store::PutU64(out, std::bit_cast<std::uint64_t>(number));
}

// Takes numbers from the front. Once there are too few bytes all numbers are 0.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t U8() {
    const std::string_view at = Take(1);
    return at.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(at[0]);
  }
  std::uint32_t U32() {
    const std::string_view at = Take(4);
    return at.empty() ? 0 : store::GetU32(at, 0);
  }
  std::uint64_t U64() {
    const std::string_view at = Take(8);
    return at.empty() ? 0 : store::GetU64(at, 0);
  }
  double Double() { return std::bit_cast<double>(U64()); }
  std::string_view Take(std::size_t bytes) {
    if (short_ || rest_.size() < bytes) {
      short_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  /// All bytes were taken, and no more.
  bool AtEnd() const { return !short_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool short_ = false;
};

}  // namespace

std::string EncodeDefinition(std::string_view name, const StreamSettings& settings) {
  std::string out;
  PutU8(out, kVersion);
  PutU8(out, static_cast<std::uint8_t>(settings.type));
  PutU8(out, static_cast<std::uint8_t>(settings.payload));
  PutU8(out, static_cast<std::uint8_t>(settings.quantile_form));
  PutU8(out, static_cast<std::uint8_t>((settings.frequencies ? kFrequencies : 0) |
                                       (settings.sums ? kSums : 0) |
                                       (settings.hierarchy.root_last ? kRootLast : 0)));
  PutU8(out, static_cast<std::uint8_t>(settings.hierarchy.separator));
  PutU8(out, static_cast<std::uint8_t>(settings.hierarchy.depth));
  PutU8(out, static_cast<std::uint8_t>(settings.hierarchy.prefix_lengths.size()));
  PutDouble(out, settings.quantile_epsilon);
  PutDouble(out, settings.frequency_epsilon);
  PutDouble(out, settings.tail_epsilon);
  store::PutU64(out, settings.sliding.values_max);
  store::PutU64(out, static_cast<std::uint64_t>(settings.sliding.time_max_us));
  PutDouble(out, settings.sliding.epsilon);
  for (const int length : settings.hierarchy.prefix_lengths) {
    PutU8(out, static_cast<std::uint8_t>(length));
  }
  store::PutU32(out, static_cast<std::uint32_t>(name.size()));
  out.append(name);
  return out;
}

absl::StatusOr<Definition> DecodeDefinition(std::string_view bytes) {
  Reader reader(bytes);
  if (const std::uint8_t version = reader.U8(); version > kVersion) {
    return absl::FailedPreconditionError(
        Concat("a stream's definition of version ", version, "; expected at most ", kVersion));
  }
  Definition definition;
  StreamSettings& settings = definition.settings;
  const std::optional<ValueType> type = ValueTypeFromNumber(reader.U8());
  const std::uint8_t payload = reader.U8();
  const std::uint8_t form = reader.U8();
  const std::uint8_t flags = reader.U8();
  settings.hierarchy.separator = static_cast<char>(reader.U8());
  settings.hierarchy.depth = reader.U8();
  const std::uint8_t lengths = reader.U8();
  settings.quantile_epsilon = reader.Double();
  settings.frequency_epsilon = reader.Double();
  settings.tail_epsilon = reader.Double();
  settings.sliding.values_max = reader.U64();
  settings.sliding.time_max_us = static_cast<std::int64_t>(reader.U64());
  settings.sliding.epsilon = reader.Double();
  for (int i = 0; i < lengths; ++i) settings.hierarchy.prefix_lengths.push_back(reader.U8());
  definition.name = reader.Take(reader.U32());
  const bool known = type && payload <= static_cast<std::uint8_t>(PayloadType::kY) &&
                     form >= static_cast<std::uint8_t>(QuantileKind::kHistogram) &&
                     form <= static_cast<std::uint8_t>(QuantileKind::kTail) &&
                     flags <= (kFrequencies | kSums | kRootLast) && bytes[0] == kVersion;
  if (!reader.AtEnd() || !known) {
    return absl::DataLossError(
        Concat("a stream's definition of ", bytes.size(), " bytes contradicts itself"));
  }
  settings.type = *type;
  settings.payload = static_cast<PayloadType>(payload);
  settings.quantile_form = static_cast<QuantileKind>(form);
  settings.frequencies = (flags & kFrequencies) != 0;
  settings.sums = (flags & kSums) != 0;
  settings.hierarchy.root_last = (flags & kRootLast) != 0;
  return definition;
}

}  // namespace tidemark::server
