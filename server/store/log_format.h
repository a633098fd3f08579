// The bytes of the log: segments, their headers, the records in them. docs/store_format.md is the
// page for people; this is the only code that knows it.
//
// A record is a header of 40 bytes, a body, and zeros to a multiple of 8. The header has a checksum
// of its own, so that (1) records after a damaged one are found by looking at 40 bytes at each
// multiple of 8, whatever the bodies hold, and (2) a body is summed before the log's lock is taken.
// Checksums are XXH3 of 64 bits, seeded with the log's id: bytes that look like a record because a
// producer sent them as values are none, unless it guessed 64 bits.
//
// Thread: free functions, any. All numbers little-endian, whatever the machine.
#ifndef TIDEMARK_SERVER_STORE_LOG_FORMAT_H_
#define TIDEMARK_SERVER_STORE_LOG_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace tidemark::store {

inline constexpr std::uint32_t kStoreVersion = 2;
inline constexpr std::size_t kFileHeaderBytes = 64;
inline constexpr std::size_t kRecordHeaderBytes = 40;
inline constexpr std::size_t kRecordAlignment = 8;
static_assert(kFileHeaderBytes % kRecordAlignment == 0);
static_assert(kRecordHeaderBytes % kRecordAlignment == 0);
/// Largest body: a message of gRPC or framed TCP is 4 MiB by default; sixteen times that.
inline constexpr std::size_t kBodyBytesMax = std::size_t{64} << 20;

/// Largest number of a file, and of the record that a segment begins with; those that there are
/// have lower ones, so that a segment can begin behind each. A record each nanosecond takes 146
/// years to get there.
inline constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 62;

/// What a segment says of itself.
struct SegmentHeader {
  std::uint64_t number = 0;           ///< 1, 2, ...; also in the file's name
  std::uint64_t first_sequence = 0;   ///< of the first record that it holds, or would
  std::uint64_t previous_number = 0;  ///< the segment before it, a lower number; 0: there is none
  /// How many bytes of the segment before count: those whose sync was seen to succeed. What lies
  /// behind them is in this segment again.
  std::uint64_t previous_bytes = 0;
  std::uint64_t log_id = 0;  ///< the same in all segments of a log; not 0
  /// Records between the segment before and this one were lost, and a repair said so. Their
  /// numbers are not given out again: a snapshot may hold what they did.
  bool behind_gap = false;
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};
std::string EncodeSegmentHeader(const SegmentHeader& header);
/// Errors: DATA_LOSS if it is short, its checksum does not fit or its numbers cannot be,
/// FAILED_PRECONDITION for a version above kStoreVersion.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view bytes);

/// What a snapshot file says of itself. Its header has the length and the fields of a segment's.
struct SnapshotHeader {
  std::uint64_t number = 0;        ///< 1, 2, ...; also in the file's name
  std::uint64_t log_position = 0;  ///< the last record whose effects it holds; 0: none
  /// The last record of which it holds any effect, `log_position` or later: in the file's end.
  std::uint64_t log_reaches = 0;
  friend bool operator==(const SnapshotHeader&, const SnapshotHeader&) = default;
};
std::string EncodeSnapshotHeader(const SnapshotHeader& header);
/// Errors: as DecodeSegmentHeader.
absl::StatusOr<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes);

enum class RecordKind : std::uint8_t {
  kStreamCreated = 1,
  kStreamDeleted = 2,
  kBatch = 3,
  kMark = 4,  ///< says what is durable and nothing else; has its predecessor's sequence
  kStatePart = 5,
  kStreamFromState = 6,
  kSubscribed = 7,
  kUnsubscribed = 8,
  kSnapshotBlob = 16,  ///< in snapshot files
  kSnapshotEnd = 17,   ///< in snapshot files
};

struct RecordHeader {
  std::uint64_t body_checksum = 0;  ///< of the body and its zeros
  std::uint32_t body_bytes = 0;
  RecordKind kind = RecordKind::kBatch;
  std::uint64_t sequence = 0;  ///< one more than the record before
  /// The last record that was known to be synced when this one was taken in. So a record that
  /// cannot be read, though a later one says it was synced, was damaged; another was cut off.
  std::uint64_t durable_sequence = 0;
};
/// Bytes of header, body and zeros together.
constexpr std::size_t RecordBytes(std::size_t body_bytes) {
  return kRecordHeaderBytes +
         (body_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

/// A record without sequence numbers: room for the header, the body, zeros.
struct UnnumberedRecord {
  std::string bytes;
  RecordHeader header;
};
/// The body is the parts one after the other. REQUIRES: together at most kBodyBytesMax.
UnnumberedRecord MakeRecord(RecordKind kind, std::uint64_t log_id,
                            std::initializer_list<std::string_view> parts);
/// Writes the header of `record`, whose sequence numbers are set, into its bytes.
void NumberRecord(UnnumberedRecord& record, std::uint64_t log_id);

/// The header at the beginning of `bytes`, if there is one whose checksum fits, whose kind is
/// known, whose numbers are below kNumberMax and whose body is no longer than kBodyBytesMax. Says
/// nothing of the body.
std::optional<RecordHeader> DecodeRecordHeader(std::string_view bytes, std::uint64_t log_id);
/// The body behind the header; nullopt if it is cut off or its checksum does not fit.
std::optional<std::string_view> RecordBody(std::string_view record, const RecordHeader& header,
                                           std::uint64_t log_id);

// What records say.

struct StreamCreated {
  std::uint64_t stream_id = 0;
  std::string_view definition;  ///< name and settings, as the caller writes them
};
struct StreamDeleted {
  std::uint64_t stream_id = 0;
};
/// Who sent a batch, and which of its batches it is; all zero: nobody said.
struct ProducerSequence {
  std::array<std::uint64_t, 2> producer{};
  std::uint64_t sequence = 0;
  friend auto operator<=>(const ProducerSequence&, const ProducerSequence&) = default;
};
/// A batch as a stream took it in: enough to take it in again with the same result.
struct Batch {
  std::uint64_t stream_id = 0;
  std::int64_t recorded_time_us = 0;
  ProducerSequence producer;
  std::uint8_t value_type = 0;    ///< for the caller
  std::uint8_t payload_type = 0;  ///< for the caller; other than 0: 8 bytes beside each value
  std::uint8_t form = 0;          ///< for the caller: which Append it went through
  std::uint8_t value_bytes = 0;   ///< 1 to 255 bytes a value; 0: texts, each after its length
  std::uint32_t count = 0;        ///< values
  std::string_view payloads;      ///< count * 8 bytes, or none
  std::string_view values;
};
/// A part of the state with which the next stream begins. The record behind it is another one of
/// the same state, or the stream's; otherwise the state was given up, or cut off.
struct StatePart {
  std::string_view bytes;
};
/// A stream that was created with a state: as StreamCreated, and what it holds.
struct StreamFromState {
  std::uint64_t stream_id = 0;
  std::uint64_t state_bytes = 0;  ///< with those of the parts in the records right before this one
  std::string_view definition;
  std::string_view state;  ///< the last of these bytes; all of them where there are no parts
};
/// A subscription is kept with a stream from now on, or is no more.
struct Subscribed {
  std::uint64_t stream_id = 0;
  std::string_view name;
  std::string_view request;  ///< as the caller writes it
};
struct Unsubscribed {
  std::uint64_t stream_id = 0;
  std::string_view name;
};
using LogEntry = std::variant<StreamCreated, StreamDeleted, Batch, StatePart, StreamFromState,
                              Subscribed, Unsubscribed>;

/// Adds texts in the form of Batch::values: u32 length and bytes, one after the other.
void AppendTexts(std::span<const std::string_view> texts, std::string& out);
/// And back. REQUIRES: a batch from DecodeEntry.
std::vector<std::string_view> BatchTexts(const Batch& batch);

RecordKind KindOf(const LogEntry& entry);
/// INVALID_ARGUMENT: parts that contradict one another, more than kBodyBytesMax.
absl::StatusOr<UnnumberedRecord> EncodeEntry(const LogEntry& entry, std::uint64_t log_id);
/// Views into `body`. DATA_LOSS for a body that is none of its kind: written by a program with
/// faults, as its checksum fits.
absl::StatusOr<LogEntry> DecodeEntry(RecordKind kind, std::string_view body);

/// "log-00000000000000000007", "snapshot-00000000000000000003"; and back: the number of such a
/// name, nullopt for another and for numbers above kNumberMax.
std::string SegmentName(std::uint64_t number);
std::string SnapshotName(std::uint64_t number);
std::optional<std::uint64_t> SegmentNumber(std::string_view name);
std::optional<std::uint64_t> SnapshotNumber(std::string_view name);

/// The checksum of all formats here.
std::uint64_t Checksum(std::string_view bytes, std::uint64_t seed);

void PutU32(std::string& out, std::uint32_t number);
void PutU64(std::string& out, std::uint64_t number);
/// REQUIRES: bytes long enough.
std::uint32_t GetU32(std::string_view bytes, std::size_t at);
std::uint64_t GetU64(std::string_view bytes, std::size_t at);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_LOG_FORMAT_H_
