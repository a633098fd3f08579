// The framed TCP format: constants, encoders, incremental decoders. Bytes: docs/protocol.md.
//
//   connection   client: preamble(8) frame*              server: frame*
//   preamble     "TDMK" | u16 version = 1 | u16 0
//   frame        u32 length of what follows | u8 type | u8 value type | u16 0 | body
//
// All integers are little-endian. Frame and batch headers are multiples of 8 bytes, so that in a
// connection that carries 8-byte values every value lies at a multiple of 8 from its start.
//
// Thread: encoders are functions; a decoder belongs to one connection. Errors: decoders return
// them, nothing throws except std::bad_alloc.
#ifndef TIDEMARK_WIRE_FRAME_H_
#define TIDEMARK_WIRE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::wire {

inline constexpr std::array<char, 4> kMagic = {'T', 'D', 'M', 'K'};
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kPreambleBytes = 8;
/// length, type, value type, reserved.
inline constexpr std::size_t kHeaderBytes = 8;
/// The length field itself, which `length` does not count.
inline constexpr std::size_t kLengthBytes = 4;
/// Header and id.
inline constexpr std::size_t kProducerBytes = 24;
inline constexpr std::size_t kProducerIdBytes = 16;
/// Header, handle, reserved, batch id: where the values of a BATCH begin.
inline constexpr std::size_t kBatchHeaderBytes = 24;
static_assert(kPreambleBytes % 8 == 0 && kBatchHeaderBytes % 8 == 0, "keeps values 8-aligned");
/// Where the name of an OPEN begins.
inline constexpr std::size_t kOpenHeaderBytes = 12;
inline constexpr std::size_t kOpenedBytes = 16;
inline constexpr std::size_t kAckBytes = 32;
/// Where the message of an ERROR begins.
inline constexpr std::size_t kErrorHeaderBytes = 32;
/// Longest message of an ERROR that a server sends; decoders accept up to the frame limit.
inline constexpr std::size_t kErrorMessageBytesMax = 1024;
/// Largest frame that is accepted by default: 4 MiB of values and their header.
inline constexpr std::size_t kFrameBytesMaxDefault = (std::size_t{4} << 20) + kBatchHeaderBytes;

enum class FrameType : std::uint8_t {
  kOpen = 1,
  kBatch = 2,
  kProducer = 3,        ///< whose batches the SEQUENCED_BATCHes behind it are; not answered
  kSequencedBatch = 4,  ///< a BATCH whose id is its producer's number for it
  kOpened = 129,
  kAck = 130,
  kError = 131,
};

/// Values on the wire; the numbers of tidemark.v1.ValueType. kDefault: the server's default when it
/// opens a stream, the stream's own type in a batch.
enum class WireType : std::uint8_t {
  kDefault = 0,
  kFloat64 = 1,
  kFloat32 = 2,
  kInt64 = 3,
  kUint64 = 4,
  kUint32 = 5,
  kIpv4 = 6,
  kString = 7,
  kIpv6 = 8,  ///< 16 bytes in network order
};
/// "float64", ...; "unknown" for a number that names no type.
std::string_view WireTypeName(std::uint8_t type);
/// Bytes of one packed value; 0 for strings and unknown types.
std::size_t WireTypeBytes(std::uint8_t type);

/// What travels beside each value; the numbers of tidemark.v1.PayloadType.
enum class WirePayload : std::uint8_t {
  kNone = 0,
  kWeight = 1,  ///< uint64
  kY = 2,       ///< float64
};
inline constexpr std::size_t kPayloadBytes = 8;

/// The type byte of a frame: the value's type in its low half, the payload's in its high half.
struct WireElement {
  constexpr WireElement(WireType value_in = WireType::kDefault,  // NOLINT: a type without payload
                        WirePayload payload_in = WirePayload::kNone)
      : value(value_in), payload(payload_in) {}
  WireType value;
  WirePayload payload;
  constexpr std::uint8_t byte() const {
    return static_cast<std::uint8_t>(static_cast<unsigned>(payload) << 4 |
                                     static_cast<unsigned>(value));
  }
  friend constexpr bool operator==(const WireElement&, const WireElement&) = default;
};
/// nullopt for a byte that names no type or no payload.
std::optional<WireElement> ParseWireElement(std::uint8_t byte);
/// "float64", "ipv4 with weights", ...
std::string WireElementName(WireElement element);

/// Flags of an ERROR.
inline constexpr std::uint32_t kErrorFatal = 1;     ///< the connection is closed after it
inline constexpr std::uint32_t kErrorForBatch = 2;  ///< answers the BATCH batch_id
inline constexpr std::uint32_t kErrorForOpen = 4;   ///< answers the OPEN of handle

/// What a client sends. `payload`: the name of an OPEN, the values of a batch, the id of a
/// PRODUCER; it points into the bytes that were decoded.
struct ClientFrame {
  FrameType type = FrameType::kBatch;
  std::uint8_t value_type = 0;
  std::uint32_t handle = 0;
  std::uint64_t batch_id = 0;
  std::span<const std::byte> payload;
  std::uint64_t offset = 0;  ///< of the frame's first byte in the connection

  std::string_view name() const {
    return {reinterpret_cast<const char*>(payload.data()), payload.size()};
  }
  std::string_view producer() const { return name(); }
};

/// What a server sends; members that a type does not carry are 0. `message` points into the bytes
/// that were decoded.
struct ServerFrame {
  FrameType type = FrameType::kAck;
  std::uint8_t value_type = 0;
  std::uint32_t handle = 0;
  std::uint64_t batch_id = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::int32_t code = 0;  ///< a google.rpc.Code
  std::uint32_t flags = 0;
  std::string_view message;
};

/// Why bytes are no frames. After one of these the connection cannot go on.
struct FrameError {
  enum class Kind { kBadPreamble, kBadVersion, kTooLarge, kTooShort, kUnknownType, kReserved };
  Kind kind = Kind::kBadPreamble;
  std::uint64_t offset = 0;  ///< of the offending byte in the connection
  std::string message;       ///< what was wrong, where, what was expected
};

enum class DecodeResult {
  kFrame,     ///< a frame was decoded
  kNeedMore,  ///< `needed` bytes from the start of the input are required to go on
  kError,     ///< error() says why; every later call returns the same
};

/// Decodes what a client sends. The caller owns the buffer: it passes all bytes that it has not
/// consumed yet, and drops `consumed` of them after each call.
///
/// Guarantee: the frames found do not depend on how the bytes were cut into calls. A wrong byte is
/// reported as soon as its field is complete, so an oversized frame is refused after 4 bytes.
class ClientFrameDecoder {
 public:
  explicit ClientFrameDecoder(std::size_t frame_bytes_max = kFrameBytesMaxDefault);

  /// On kFrame `frame` is set and `consumed` bytes are its own (and the preamble's, before the
  /// first). On kNeedMore `consumed` may be the preamble's 8 or 0, and `needed` counts from the
  /// first byte after those.
  DecodeResult Next(std::span<const std::byte> bytes, ClientFrame& frame, std::size_t& consumed,
                    std::size_t& needed);

  const FrameError& error() const { return error_; }
  /// Bytes consumed so far.
  std::uint64_t offset() const { return offset_; }
  bool preamble_seen() const { return preamble_seen_; }

 private:
  DecodeResult Fail(FrameError::Kind kind, std::uint64_t offset, std::string message);
  DecodeResult CheckPreamble(std::span<const std::byte> bytes);

  std::size_t frame_bytes_max_;
  std::uint64_t offset_ = 0;
  bool preamble_seen_ = false;
  bool failed_ = false;
  FrameError error_;
};

/// Decodes what a server sends; the same contract, without a preamble.
class ServerFrameDecoder {
 public:
  explicit ServerFrameDecoder(std::size_t frame_bytes_max = kFrameBytesMaxDefault);
  DecodeResult Next(std::span<const std::byte> bytes, ServerFrame& frame, std::size_t& consumed,
                    std::size_t& needed);
  const FrameError& error() const { return error_; }

 private:
  DecodeResult Fail(FrameError::Kind kind, std::uint64_t offset, std::string message);

  std::size_t frame_bytes_max_;
  std::uint64_t offset_ = 0;
  bool failed_ = false;
  FrameError error_;
};

/// The items of a string batch: u32 length and that many bytes, repeated. Appends views into
/// `bytes` to `items`; on failure returns false, says why in `error`, and leaves `items` as it was.
bool DecodeStrings(std::span<const std::byte> bytes, std::vector<std::string_view>& items,
                   std::string& error);

/// The two parts of a batch with payloads: all payloads, then all values. For strings a u64 before
/// them says how many items there are.
struct PairParts {
  std::span<const std::byte> payloads;  ///< kPayloadBytes for each value
  std::span<const std::byte> values;
};
/// REQUIRES: `type` names a value type. On failure returns false and says why in `error`.
bool SplitPairs(std::span<const std::byte> bytes, WireType type, PairParts& parts,
                std::string& error);

// Encoders append to `out`.
void AppendPreamble(std::string& out);
void AppendOpen(std::string& out, std::uint32_t handle, WireElement type, std::string_view name);
/// REQUIRES: id has kProducerIdBytes, not all of them 0.
void AppendProducer(std::string& out, std::string_view id);
/// Everything of a BATCH, or of a SEQUENCED_BATCH, but its values, of which payload_bytes follow.
/// REQUIRES: payload_bytes <= 2^32 - 1 - kBatchHeaderBytes.
void AppendBatchHeader(std::string& out, std::uint32_t handle, std::uint64_t batch_id,
                       WireElement type, std::size_t payload_bytes,
                       FrameType frame = FrameType::kBatch);
void AppendBatch(std::string& out, std::uint32_t handle, std::uint64_t batch_id, WireElement type,
                 std::span<const std::byte> values);
/// One item of a string batch's payload.
void AppendString(std::string& out, std::string_view item);
void AppendOpened(std::string& out, std::uint32_t handle, WireElement type);
void AppendAck(std::string& out, std::uint64_t batch_id, std::uint64_t accepted,
               std::uint64_t refused);
/// Cuts the message to kErrorMessageBytesMax.
void AppendError(std::string& out, std::int32_t code, std::uint32_t flags, std::uint32_t handle,
                 std::uint64_t batch_id, std::string_view message);

}  // namespace tidemark::wire

#endif  // TIDEMARK_WIRE_FRAME_H_
