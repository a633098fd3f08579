#include "wire/frame.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace tidemark::wire {
namespace {

constexpr std::size_t kTypeOffset = 4;
constexpr std::size_t kReservedOffset = 6;
constexpr std::size_t kBodyOffset = 8;
constexpr std::uint8_t kTypeNumberMax = 8;

template <typename T>
T Load(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i)));
  }
  return value;
}

template <typename T>
void Store(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  }
  out.append(bytes, sizeof(T));
}

void AppendHeader(std::string& out, std::size_t frame_bytes, FrameType type,
                  std::uint8_t value_type) {
  assert(frame_bytes - kLengthBytes <= std::numeric_limits<std::uint32_t>::max());
  Store(out, static_cast<std::uint32_t>(frame_bytes - kLengthBytes));
  Store(out, static_cast<std::uint8_t>(type));
  Store(out, value_type);
  Store(out, std::uint16_t{0});
}

// Bytes of a frame before its variable part.
std::size_t FixedBytes(FrameType type) {
  switch (type) {
    case FrameType::kOpen:
      return kOpenHeaderBytes;
    case FrameType::kBatch:
    case FrameType::kSequencedBatch:
      return kBatchHeaderBytes;
    case FrameType::kProducer:
      return kProducerBytes;
    case FrameType::kOpened:
      return kOpenedBytes;
    case FrameType::kAck:
      return kAckBytes;
    case FrameType::kError:
      return kErrorHeaderBytes;
  }
  return 0;
}

const char* FrameName(FrameType type) {
  switch (type) {
    case FrameType::kOpen:
      return "OPEN";
    case FrameType::kBatch:
      return "BATCH";
    case FrameType::kProducer:
      return "PRODUCER";
    case FrameType::kSequencedBatch:
      return "SEQUENCED_BATCH";
    case FrameType::kOpened:
      return "OPENED";
    case FrameType::kAck:
      return "ACK";
    case FrameType::kError:
      return "ERROR";
  }
  return "?";
}

struct HeaderCheck {
  DecodeResult result = DecodeResult::kFrame;
  std::size_t needed = 0;
  std::size_t frame_bytes = 0;
  FrameType type = FrameType::kBatch;
  FrameError error;
};

// Checks length, type and reserved field as far as `bytes` reaches.
HeaderCheck CheckHeader(std::span<const std::byte> bytes, std::uint64_t offset, bool from_client,
                        std::size_t frame_bytes_max) {
  HeaderCheck check;
  const auto fail = [&check](FrameError::Kind kind, std::uint64_t at, std::string message) {
    check.result = DecodeResult::kError;
    check.error = {kind, at, std::move(message)};
    return std::move(check);
  };
  const auto at_byte = [](std::uint64_t at) { return " at byte " + std::to_string(at); };
  if (bytes.size() < kLengthBytes) {
    check.result = DecodeResult::kNeedMore;
    check.needed = kHeaderBytes;
    return check;
  }
  const std::size_t frame_bytes = std::size_t{Load<std::uint32_t>(bytes, 0)} + kLengthBytes;
  if (frame_bytes > frame_bytes_max) {
    return fail(FrameError::Kind::kTooLarge, offset,
                "frame length " + std::to_string(frame_bytes - kLengthBytes) + at_byte(offset) +
                    " is too large; expected at most " +
                    std::to_string(frame_bytes_max - kLengthBytes));
  }
  if (frame_bytes < kHeaderBytes) {
    return fail(FrameError::Kind::kTooShort, offset,
                "frame length " + std::to_string(frame_bytes - kLengthBytes) + at_byte(offset) +
                    " is too short; expected at least " +
                    std::to_string(kHeaderBytes - kLengthBytes));
  }
  if (bytes.size() > kTypeOffset) {
    const auto type = static_cast<std::uint8_t>(bytes[kTypeOffset]);
    const bool known = from_client ? (type >= 1 && type <= 4) : (type >= 129 && type <= 131);
    if (!known) {
      return fail(FrameError::Kind::kUnknownType, offset + kTypeOffset,
                  "unknown frame type " + std::to_string(type) + at_byte(offset + kTypeOffset) +
                      (from_client ? "; expected 1 (OPEN) to 4 (SEQUENCED_BATCH)"
                                   : "; expected 129 (OPENED), 130 (ACK) or 131 (ERROR)"));
    }
    check.type = static_cast<FrameType>(type);
    const std::size_t least = FixedBytes(check.type);
    const bool fixed = check.type == FrameType::kOpened || check.type == FrameType::kAck ||
                       check.type == FrameType::kProducer;
    if (frame_bytes < least) {
      return fail(FrameError::Kind::kTooShort, offset,
                  "frame length " + std::to_string(frame_bytes - kLengthBytes) + " of " +
                      FrameName(check.type) + at_byte(offset) +
                      " is too short; expected at least " + std::to_string(least - kLengthBytes));
    }
    if (fixed && frame_bytes != least) {
      return fail(FrameError::Kind::kTooLarge, offset,
                  "frame length " + std::to_string(frame_bytes - kLengthBytes) + " of " +
                      FrameName(check.type) + at_byte(offset) + " is wrong; expected " +
                      std::to_string(least - kLengthBytes));
    }
  }
  if (bytes.size() < kHeaderBytes) {
    check.result = DecodeResult::kNeedMore;
    check.needed = kHeaderBytes;
    return check;
  }
  if (const auto reserved = Load<std::uint16_t>(bytes, kReservedOffset); reserved != 0) {
    return fail(FrameError::Kind::kReserved, offset + kReservedOffset,
                "reserved field" + at_byte(offset + kReservedOffset) + " is " +
                    std::to_string(reserved) + "; expected 0");
  }
  const bool batch = check.type == FrameType::kBatch || check.type == FrameType::kSequencedBatch;
  if (batch && bytes.size() >= kBodyOffset + 8) {
    if (const auto reserved = Load<std::uint32_t>(bytes, kBodyOffset + 4); reserved != 0) {
      return fail(FrameError::Kind::kReserved, offset + kBodyOffset + 4,
                  "reserved field" + at_byte(offset + kBodyOffset + 4) + " of " +
                      FrameName(check.type) + " is " + std::to_string(reserved) + "; expected 0");
    }
  }
  check.frame_bytes = frame_bytes;
  if (bytes.size() < frame_bytes) {
    check.result = DecodeResult::kNeedMore;
    check.needed = frame_bytes;
  }
  return check;
}

std::string Hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace

std::string_view WireTypeName(std::uint8_t type) {
  static constexpr std::array<std::string_view, kTypeNumberMax + 1> kNames = {
      "default", "float64", "float32", "int64", "uint64", "uint32", "ipv4", "string", "ipv6"};
  return type < kNames.size() ? kNames[type] : "unknown";
}

std::size_t WireTypeBytes(std::uint8_t type) {
  switch (static_cast<WireType>(type)) {
    case WireType::kFloat64:
    case WireType::kInt64:
    case WireType::kUint64:
      return 8;
    case WireType::kFloat32:
    case WireType::kUint32:
    case WireType::kIpv4:
      return 4;
    case WireType::kIpv6:
      return 16;
    case WireType::kDefault:
    case WireType::kString:
      return 0;
  }
  return 0;
}

std::optional<WireElement> ParseWireElement(std::uint8_t byte) {
  const unsigned type = byte & 15U;
  const unsigned payload = byte >> 4;
  if (type > kTypeNumberMax || payload > static_cast<unsigned>(WirePayload::kY)) {
    return std::nullopt;
  }
  return WireElement(static_cast<WireType>(type), static_cast<WirePayload>(payload));
}

std::string WireElementName(WireElement element) {
  std::string name(WireTypeName(static_cast<std::uint8_t>(element.value)));
  if (element.payload == WirePayload::kWeight) name += " with weights";
  if (element.payload == WirePayload::kY) name += " with y";
  return name;
}

ClientFrameDecoder::ClientFrameDecoder(std::size_t frame_bytes_max)
    : frame_bytes_max_(frame_bytes_max) {}

DecodeResult ClientFrameDecoder::Fail(FrameError::Kind kind, std::uint64_t offset,
                                      std::string message) {
  failed_ = true;
  error_ = {kind, offset, std::move(message)};
  return DecodeResult::kError;
}

DecodeResult ClientFrameDecoder::CheckPreamble(std::span<const std::byte> bytes) {
  const std::size_t have = std::min(bytes.size(), kPreambleBytes);
  for (std::size_t i = 0; i < std::min(have, kMagic.size()); ++i) {
    if (static_cast<char>(bytes[i]) != kMagic[i]) {
      return Fail(FrameError::Kind::kBadPreamble, i,
                  "bad preamble at byte " + std::to_string(i) + ": the connection begins with " +
                      Hex(bytes.first(std::min(have, kMagic.size()))) +
                      "; expected 54 44 4d 4b (\"TDMK\")");
    }
  }
  if (have >= 6) {
    if (const auto version = Load<std::uint16_t>(bytes, 4); version != kVersion) {
      return Fail(FrameError::Kind::kBadVersion, 4,
                  "unknown protocol version " + std::to_string(version) + " at byte 4; expected " +
                      std::to_string(kVersion));
    }
  }
  if (have < kPreambleBytes) return DecodeResult::kNeedMore;
  if (const auto reserved = Load<std::uint16_t>(bytes, 6); reserved != 0) {
    return Fail(FrameError::Kind::kReserved, 6,
                "reserved field at byte 6 is " + std::to_string(reserved) + "; expected 0");
  }
  return DecodeResult::kFrame;
}

DecodeResult ClientFrameDecoder::Next(std::span<const std::byte> bytes, ClientFrame& frame,
                                      std::size_t& consumed, std::size_t& needed) {
  consumed = 0;
  needed = 0;
  if (failed_) return DecodeResult::kError;
  if (!preamble_seen_) {
    const DecodeResult preamble = CheckPreamble(bytes);
    if (preamble != DecodeResult::kFrame) {
      needed = kPreambleBytes;
      return preamble;
    }
    preamble_seen_ = true;
    consumed = kPreambleBytes;
    offset_ = kPreambleBytes;
    bytes = bytes.subspan(kPreambleBytes);
  }
  HeaderCheck check = CheckHeader(bytes, offset_, true, frame_bytes_max_);
  if (check.result == DecodeResult::kError) {
    return Fail(check.error.kind, check.error.offset, std::move(check.error.message));
  }
  needed = check.needed;
  if (check.result == DecodeResult::kNeedMore) return check.result;

  frame.type = check.type;
  frame.value_type = static_cast<std::uint8_t>(bytes[kTypeOffset + 1]);
  frame.handle = Load<std::uint32_t>(bytes, kBodyOffset);
  frame.offset = offset_;
  if (check.type == FrameType::kOpen) {
    frame.batch_id = 0;
    frame.payload = bytes.first(check.frame_bytes).subspan(kOpenHeaderBytes);
  } else if (check.type == FrameType::kProducer) {
    frame.handle = 0;
    frame.batch_id = 0;
    frame.payload = bytes.first(check.frame_bytes).subspan(kBodyOffset);
    if (std::all_of(frame.payload.begin(), frame.payload.end(),
                    [](std::byte byte) { return byte == std::byte{0}; })) {
      return Fail(FrameError::Kind::kReserved, offset_ + kBodyOffset,
                  "the id of PRODUCER at byte " + std::to_string(offset_ + kBodyOffset) +
                      " is 0; expected 16 random bytes");
    }
  } else {
    frame.batch_id = Load<std::uint64_t>(bytes, kBodyOffset + 8);
    frame.payload = bytes.first(check.frame_bytes).subspan(kBatchHeaderBytes);
  }
  consumed += check.frame_bytes;
  offset_ += check.frame_bytes;
  return DecodeResult::kFrame;
}

ServerFrameDecoder::ServerFrameDecoder(std::size_t frame_bytes_max)
    : frame_bytes_max_(frame_bytes_max) {}

DecodeResult ServerFrameDecoder::Fail(FrameError::Kind kind, std::uint64_t offset,
                                      std::string message) {
  failed_ = true;
  error_ = {kind, offset, std::move(message)};
  return DecodeResult::kError;
}

DecodeResult ServerFrameDecoder::Next(std::span<const std::byte> bytes, ServerFrame& frame,
                                      std::size_t& consumed, std::size_t& needed) {
  consumed = 0;
  needed = 0;
  if (failed_) return DecodeResult::kError;
  HeaderCheck check = CheckHeader(bytes, offset_, false, frame_bytes_max_);
  if (check.result == DecodeResult::kError) {
    return Fail(check.error.kind, check.error.offset, std::move(check.error.message));
  }
  needed = check.needed;
  if (check.result == DecodeResult::kNeedMore) return check.result;

  frame = ServerFrame{};
  frame.type = check.type;
  frame.value_type = static_cast<std::uint8_t>(bytes[kTypeOffset + 1]);
  switch (check.type) {
    case FrameType::kOpened:
      frame.handle = Load<std::uint32_t>(bytes, kBodyOffset);
      break;
    case FrameType::kAck:
      frame.batch_id = Load<std::uint64_t>(bytes, kBodyOffset);
      frame.accepted = Load<std::uint64_t>(bytes, kBodyOffset + 8);
      frame.refused = Load<std::uint64_t>(bytes, kBodyOffset + 16);
      break;
    case FrameType::kError: {
      frame.code = static_cast<std::int32_t>(Load<std::uint32_t>(bytes, kBodyOffset));
      frame.flags = Load<std::uint32_t>(bytes, kBodyOffset + 4);
      frame.batch_id = Load<std::uint64_t>(bytes, kBodyOffset + 8);
      frame.handle = Load<std::uint32_t>(bytes, kBodyOffset + 16);
      const auto message = bytes.first(check.frame_bytes).subspan(kErrorHeaderBytes);
      frame.message = {reinterpret_cast<const char*>(message.data()), message.size()};
      break;
    }
    default:  // CheckHeader refused what a client sends
      break;
  }
  consumed = check.frame_bytes;
  offset_ += check.frame_bytes;
  return DecodeResult::kFrame;
}

bool DecodeStrings(std::span<const std::byte> bytes, std::vector<std::string_view>& items,
                   std::string& error) {
  const std::size_t before = items.size();
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t left = bytes.size() - at;
    const bool has_length = left >= sizeof(std::uint32_t);
    const std::size_t length = has_length ? Load<std::uint32_t>(bytes, at) : 0;
    if (!has_length || length > left - sizeof(std::uint32_t)) {
      error = "item " + std::to_string(items.size() - before) + " at byte " + std::to_string(at) +
              " of the values " +
              (has_length ? "claims " + std::to_string(length) + " bytes; " +
                                std::to_string(left - sizeof(std::uint32_t)) + " follow"
                          : "has " + std::to_string(left) + " bytes; expected a u32 length");
      items.resize(before);
      return false;
    }
    items.emplace_back(reinterpret_cast<const char*>(bytes.data()) + at + sizeof(std::uint32_t),
                       length);
    at += sizeof(std::uint32_t) + length;
  }
  return true;
}

bool SplitPairs(std::span<const std::byte> bytes, WireType type, PairParts& parts,
                std::string& error) {
  parts = {};
  if (type == WireType::kString) {
    if (bytes.empty()) return true;
    if (bytes.size() < sizeof(std::uint64_t)) {
      error = "a batch of strings with payloads has " + std::to_string(bytes.size()) +
              " bytes; expected a u64 number of items first";
      return false;
    }
    const auto count = Load<std::uint64_t>(bytes, 0);
    bytes = bytes.subspan(sizeof(std::uint64_t));
    if (count > bytes.size() / kPayloadBytes) {
      error = "a batch claims " + std::to_string(count) + " items with payloads; " +
              std::to_string(bytes.size()) + " bytes follow";
      return false;
    }
    parts.payloads = bytes.first(static_cast<std::size_t>(count) * kPayloadBytes);
    parts.values = bytes.subspan(parts.payloads.size());
    return true;
  }
  const std::size_t each = WireTypeBytes(static_cast<std::uint8_t>(type)) + kPayloadBytes;
  if (bytes.size() % each != 0) {
    error = "a batch of " + std::to_string(bytes.size()) + " bytes is not a whole number of " +
            std::string(WireTypeName(static_cast<std::uint8_t>(type))) +
            " values with payloads, of " + std::to_string(each) + " bytes";
    return false;
  }
  parts.payloads = bytes.first(bytes.size() / each * kPayloadBytes);
  parts.values = bytes.subspan(parts.payloads.size());
  return true;
}

void AppendPreamble(std::string& out) {
  out.append(kMagic.data(), kMagic.size());
  Store(out, kVersion);
  Store(out, std::uint16_t{0});
}

void AppendOpen(std::string& out, std::uint32_t handle, WireElement type, std::string_view name) {
  AppendHeader(out, kOpenHeaderBytes + name.size(), FrameType::kOpen, type.byte());
  Store(out, handle);
  out.append(name);
}

void AppendProducer(std::string& out, std::string_view id) {
  assert(id.size() == kProducerIdBytes);
  AppendHeader(out, kProducerBytes, FrameType::kProducer, 0);
  out.append(id);
}

void AppendBatchHeader(std::string& out, std::uint32_t handle, std::uint64_t batch_id,
                       WireElement type, std::size_t payload_bytes, FrameType frame) {
  AppendHeader(out, kBatchHeaderBytes + payload_bytes, frame, type.byte());
  Store(out, handle);
  Store(out, std::uint32_t{0});
  Store(out, batch_id);
}

void AppendBatch(std::string& out, std::uint32_t handle, std::uint64_t batch_id, WireElement type,
                 std::span<const std::byte> values) {
  AppendBatchHeader(out, handle, batch_id, type, values.size());
  out.append(reinterpret_cast<const char*>(values.data()), values.size());
}

void AppendString(std::string& out, std::string_view item) {
  Store(out, static_cast<std::uint32_t>(item.size()));
  out.append(item);
}

void AppendOpened(std::string& out, std::uint32_t handle, WireElement type) {
  AppendHeader(out, kOpenedBytes, FrameType::kOpened, type.byte());
  Store(out, handle);
  Store(out, std::uint32_t{0});
}

void AppendAck(std::string& out, std::uint64_t batch_id, std::uint64_t accepted,
               std::uint64_t refused) {
  AppendHeader(out, kAckBytes, FrameType::kAck, 0);
  Store(out, batch_id);
  Store(out, accepted);
  Store(out, refused);
}

void AppendError(std::string& out, std::int32_t code, std::uint32_t flags, std::uint32_t handle,
                 std::uint64_t batch_id, std::string_view message) {
  if (message.size() > kErrorMessageBytesMax) {
    std::size_t end = kErrorMessageBytesMax;
    // Not in the middle of a UTF-8 character: step back over continuation bytes.
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;
    message = message.substr(0, end);
  }
  AppendHeader(out, kErrorHeaderBytes + message.size(), FrameType::kError, 0);
  Store(out, static_cast<std::uint32_t>(code));
  Store(out, flags);
  Store(out, batch_id);
  Store(out, handle);
  Store(out, std::uint32_t{0});
  out.append(message);
}

}  // namespace tidemark::wire
