// What the ingest protocols hand their batches to: the pipeline behind, seen from its front.
//
// Flow control: Append never blocks and always takes the batch in. A source asks saturated() after
// each batch; while it is true it stops reading and has itself called back by WhenReady. A source
// may so overshoot the limit by one batch, which bounds the whole by limit + sources x largest
// batch. UDP, which cannot be slowed, counts what it drops instead.
#ifndef TIDEMARK_SERVER_WINDOW_INGEST_SINK_H_
#define TIDEMARK_SERVER_WINDOW_INGEST_SINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tidemark::server {

/// What the values of a stream are. The numbers are those of tidemark.v1.ValueType and of the
/// framed TCP protocol.
enum class ValueType : std::uint8_t {
  kFloat64 = 1,
  kFloat32 = 2,
  kInt64 = 3,
  kUint64 = 4,
  kUint32 = 5,
  kIpv4 = 6,
  kString = 7,
  kIpv6 = 8,
};

/// Whether values of this type have an order that anybody asks for: strings and addresses of 128
/// bits have counts and nothing else.
constexpr bool HasRanks(ValueType type) {
  return type != ValueType::kString && type != ValueType::kIpv6;
}

/// Bytes of one packed value; 0 for strings.
constexpr std::size_t PackedBytes(ValueType type) {
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
    case ValueType::kString:
      return 0;
  }
  return 0;
}

/// What travels beside each value of a stream. The numbers are those of tidemark.v1.PayloadType.
enum class PayloadType : std::uint8_t {
  kNone = 0,
  kWeight = 1,  ///< uint64: what the value counts for, such as the bytes of a flow
  kY = 2,       ///< float64: the y of a pair (x, y), to be summed where x lies in a range
};
/// Bytes of one packed payload of either type.
inline constexpr std::size_t kPayloadBytes = 8;

/// A value and what travels beside it.
struct ElementType {
  constexpr ElementType(ValueType value_in, PayloadType payload_in = PayloadType::kNone)  // NOLINT
      : value(value_in), payload(payload_in) {}
  ValueType value;
  PayloadType payload;
  friend constexpr bool operator==(const ElementType&, const ElementType&) = default;
};
/// "float64", "ipv4 with weights", "float64 with y".
std::string ElementTypeName(ElementType type);

/// "float64", "ipv4", ...; and back (nullopt for an unknown name).
std::string_view ValueTypeName(ValueType type);
std::optional<ValueType> ParseValueType(std::string_view name);
/// From the number used on the wire; nullopt for a number that names no type.
std::optional<ValueType> ValueTypeFromNumber(std::uint32_t number);

/// Microseconds since 1970 at which a batch was taken in. Passed in, never read inside: a replay
/// with the recorded times makes the same windows.
using RecordedTime = std::int64_t;

/// Which batch of whom one is, so that it is recognised when it is sent again (producers.h). A
/// producer numbers its batches to each stream from 1. Number 0: nobody said.
struct ProducerBatch {
  std::array<std::uint64_t, 2> producer{};  ///< 128 bits that nobody else has
  std::uint64_t number = 0;

  constexpr bool numbered() const { return number != 0; }
  friend constexpr bool operator==(const ProducerBatch&, const ProducerBatch&) = default;
};
/// The id of 16 bytes, as both protocols carry it. REQUIRES: 16 bytes.
inline std::array<std::uint64_t, 2> ProducerId(std::string_view bytes) {
  std::array<std::uint64_t, 2> id{};
  for (std::size_t i = 0; i < 2 * sizeof(std::uint64_t); ++i) {
    id[i / 8] |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * (i % 8));
  }
  return id;
}

/// When a batch was taken in, and whose it is.
struct BatchStamp {
  constexpr BatchStamp(RecordedTime time_in, ProducerBatch from_in = {})  // NOLINT: a time alone
      : time(time_in), from(from_in) {}
  RecordedTime time;
  ProducerBatch from;
};

class Stream;
/// A stream stays usable while a handle to it lives; after its deletion Append answers NOT_FOUND.
using StreamHandle = std::shared_ptr<Stream>;

struct AppendResult {
  absl::Status status;         ///< not OK: nothing was taken in; refusal.h has the reason
  std::uint64_t accepted = 0;  ///< values that are part of n from now on
  std::uint64_t refused = 0;   ///< NaN, and pairs whose y is not finite
  /// What an acknowledgement waits for (IngestSink::WhenDurable); 0: for nothing, there is no log.
  std::uint64_t log_sequence = 0;
  /// Taken in before, and not again: the counts are those of then.
  bool duplicate = false;
};

/// Thread: every method from any thread. Lifetime: outlives every ingest source.
class IngestSink {
 public:
  virtual ~IngestSink() = default;

  /// Finds the stream, or creates it with configured defaults and `type` (nullopt: the configured
  /// default type). Errors: INVALID_ARGUMENT for a bad name (empty, too long, not UTF-8, control
  /// characters), FAILED_PRECONDITION if it exists with another type than `type`,
  /// RESOURCE_EXHAUSTED at the configured number of streams, or where memory is short.
  virtual absl::StatusOr<StreamHandle> Open(std::string_view name,
                                            std::optional<ElementType> type) = 0;

  virtual ElementType TypeOf(const StreamHandle& stream) const = 0;
  /// The name that it was opened by. Valid while a handle to the stream lives.
  virtual std::string_view NameOf(const StreamHandle& stream) const = 0;

  // Of all that append: a batch whose stamp has a number is taken in once, however often it comes;
  // FAILED_PRECONDITION if it cannot be known whether it was (producers.h); RESOURCE_EXHAUSTED
  // where memory is too short for a small or quiet stream, without a trace: it may come again.

  /// Packed values of the stream's own type, little-endian, an IPv6 address in network order; need
  /// not be aligned.
  /// Errors: INVALID_ARGUMENT if the size is no multiple of the value's, NOT_FOUND if deleted.
  virtual AppendResult AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                                    const BatchStamp& stamp) = 0;

  /// The same for a stream with payloads: `payloads` holds kPayloadBytes, packed little-endian, for
  /// each value. A pair with a NaN, or with a y that is not finite, is refused alone.
  /// Errors also: INVALID_ARGUMENT if there are not as many payloads as values, FAILED_PRECONDITION
  /// for a stream without payloads.
  virtual AppendResult AppendPairs(const StreamHandle& stream, std::span<const std::byte> values,
                                   std::span<const std::byte> payloads,
                                   const BatchStamp& stamp) = 0;

  /// Numbers read from text (StatsD, CSV). Floating streams take them rounded to their precision;
  /// integer streams take whole numbers in range, and the whole batch is refused with
  /// INVALID_ARGUMENT otherwise; FAILED_PRECONDITION for strings and addresses.
  virtual AppendResult AppendNumbers(const StreamHandle& stream, std::span<const double> values,
                                     const BatchStamp& stamp) = 0;

  /// Items of a string stream. Errors: FAILED_PRECONDITION for other streams, INVALID_ARGUMENT for
  /// an item that is longer than the limit or not UTF-8, RESOURCE_EXHAUSTED when the string streams
  /// together hold as much text as they may (the whole batch is then refused, without a trace).
  virtual AppendResult AppendStrings(const StreamHandle& stream,
                                     std::span<const std::string_view> values,
                                     const BatchStamp& stamp) = 0;

  /// The same for a string stream with payloads, as in AppendPairs.
  virtual AppendResult AppendStringPairs(const StreamHandle& stream,
                                         std::span<const std::string_view> values,
                                         std::span<const std::byte> payloads,
                                         const BatchStamp& stamp) = 0;

  /// Told of a batch of so many values that was meant for the stream and that nobody tries again
  /// here: after a failed Append, or instead of one. Its answers say so.
  virtual void CountRefused(const StreamHandle& /*stream*/, std::uint64_t /*values*/) {}

  /// Streams deleted so far: who keeps handles lets go of them when it changes.
  virtual std::uint64_t deletions() const { return 0; }
  /// The stages behind, or the log, are full: stop reading until WhenReady calls back.
  virtual bool saturated() const = 0;
  /// Calls `resume` once, from a thread of the pipeline or at once from this one, when there is
  /// room again, or when the pipeline shuts down. `resume` must be cheap: post to your own
  /// executor.
  virtual void WhenReady(std::function<void()> resume) = 0;

  /// Told up to which record all survives a crash from now on. Not OK (UNAVAILABLE): the log's disk
  /// fails, and what lies behind `durable` is in doubt: it is part of n, and durable only if the
  /// disk recovers before the process ends.
  using Durable = std::function<void(std::uint64_t durable, const absl::Status& status)>;
  /// Calls `done` once, when `durable` is at least `sequence` or the disk fails; from the log's
  /// thread or at once from this one, so that no lock may be held here that `done` takes. `done`
  /// must be cheap: post to your own executor. Without a log everything is as durable as it will
  /// be.
  virtual void WhenDurable(std::uint64_t sequence, Durable done) {
    done(sequence, absl::OkStatus());
  }
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_INGEST_SINK_H_
