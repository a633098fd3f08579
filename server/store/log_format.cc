#include "server/store/log_format.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tidemark::store {
namespace {

constexpr std::string_view kSegmentMagic = "TMSTLOGS";
constexpr std::string_view kSnapshotMagic = "TMSTSNAP";
// The checksum is the header's last field, in every version.
constexpr std::size_t kFileChecksumAt = kFileHeaderBytes - 8;
constexpr std::size_t kRecordChecksumAt = kRecordHeaderBytes - 8;

constexpr std::size_t kBatchFixedBytes = 48;
constexpr std::size_t kPayloadBytes = 8;
constexpr std::size_t kTextLengthBytes = 4;
constexpr std::size_t kFromStateFixedBytes = 20;
constexpr std::size_t kSubscribedFixedBytes = 12;

constexpr std::string_view kSegmentPrefix = "log-";
constexpr std::string_view kSnapshotPrefix = "snapshot-";
constexpr std::size_t kNumberDigits = 20;  // of 2^64 - 1

void StoreU64(char* at, std::uint64_t number) {
  for (int i = 0; i < 8; ++i) at[i] = static_cast<char>(number >> (8 * i));
}

std::string NumberedName(std::string_view prefix, std::uint64_t number) {
  char digits[kNumberDigits + 1];
  std::snprintf(digits, sizeof digits, "%020llu", static_cast<unsigned long long>(number));
  return std::string(prefix).append(digits);
}

std::optional<std::uint64_t> NameNumber(std::string_view prefix, std::string_view name) {
  if (name.size() != prefix.size() + kNumberDigits || !name.starts_with(prefix)) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  for (const char digit : name.substr(prefix.size())) {
    const std::uint64_t value = static_cast<std::uint64_t>(digit) - '0';
    if (value > 9 || number > kNumberMax / 10) return std::nullopt;
    number = number * 10 + value;
  }
  if (number > kNumberMax) return std::nullopt;
  return number;
}

bool KnownKind(std::uint8_t kind) {
  switch (static_cast<RecordKind>(kind)) {
    case RecordKind::kStreamCreated:
    case RecordKind::kStreamDeleted:
    case RecordKind::kBatch:
    case RecordKind::kMark:
    case RecordKind::kStatePart:
    case RecordKind::kStreamFromState:
    case RecordKind::kSubscribed:
    case RecordKind::kUnsubscribed:
    case RecordKind::kSnapshotBlob:
    case RecordKind::kSnapshotEnd:
      return true;
  }
  return false;
}

enum SegmentFlags : std::uint32_t { kBehindGap = 1 };

std::string EncodeHeader(std::string_view magic, std::uint32_t flags,
                         const std::array<std::uint64_t, 5>& fields) {
  std::string out(magic);
  PutU32(out, kStoreVersion);
  PutU32(out, flags);
  for (const std::uint64_t field : fields) PutU64(out, field);
  PutU64(out, Checksum(out, 0));
  return out;
}

absl::Status CheckHeader(std::string_view magic, std::uint32_t flags, std::string_view bytes) {
  if (bytes.size() < kFileHeaderBytes) {
    return absl::DataLossError(
        absl::StrCat("the header of ", kFileHeaderBytes, " bytes is cut off after ", bytes.size()));
  }
  if (Checksum(bytes.substr(0, kFileChecksumAt), 0) != GetU64(bytes, kFileChecksumAt) ||
      !bytes.starts_with(magic)) {
    return absl::DataLossError("the header is damaged: its checksum does not fit");
  }
  const std::uint32_t version = GetU32(bytes, 8);
  if (version == 0 || version > kStoreVersion || (GetU32(bytes, 12) & ~flags) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the file is of version ", version, "; this program reads versions 1 to ", kStoreVersion));
  }
  return absl::OkStatus();
}

// Whether texts fill `bytes` exactly.
bool AreTexts(std::string_view bytes, std::uint32_t count) {
  for (; count > 0; --count) {
    if (bytes.size() < kTextLengthBytes) return false;
    const std::uint32_t length = GetU32(bytes, 0);
    bytes.remove_prefix(kTextLengthBytes);
    if (bytes.size() < length) return false;
    bytes.remove_prefix(length);
  }
  return bytes.empty();
}

bool Agrees(const Batch& batch) {
  const std::uint64_t payload_bytes =
      batch.payload_type == 0 ? 0 : std::uint64_t{batch.count} * kPayloadBytes;
  if (batch.payloads.size() != payload_bytes) return false;
  if (batch.value_bytes == 0) return AreTexts(batch.values, batch.count);
  return batch.values.size() == std::uint64_t{batch.count} * batch.value_bytes;
}

// What stands before payloads and values.
std::string BatchFixed(const Batch& batch) {
  std::string out;
  PutU64(out, batch.stream_id);
  PutU64(out, static_cast<std::uint64_t>(batch.recorded_time_us));
  PutU64(out, batch.producer.producer[0]);
  PutU64(out, batch.producer.producer[1]);
  PutU64(out, batch.producer.sequence);
  for (const std::uint8_t byte :
       {batch.value_type, batch.payload_type, batch.form, batch.value_bytes}) {
    out.push_back(static_cast<char>(byte));
  }
  PutU32(out, batch.count);
  return out;
}

std::optional<Batch> ReadBatch(std::string_view body) {
  if (body.size() < kBatchFixedBytes) return std::nullopt;
  Batch batch;
  batch.stream_id = GetU64(body, 0);
  batch.recorded_time_us = static_cast<std::int64_t>(GetU64(body, 8));
  batch.producer = {{GetU64(body, 16), GetU64(body, 24)}, GetU64(body, 32)};
  batch.value_type = static_cast<std::uint8_t>(body[40]);
  batch.payload_type = static_cast<std::uint8_t>(body[41]);
  batch.form = static_cast<std::uint8_t>(body[42]);
  batch.value_bytes = static_cast<std::uint8_t>(body[43]);
  batch.count = GetU32(body, 44);
  body.remove_prefix(kBatchFixedBytes);
  const std::uint64_t payload_bytes =
      batch.payload_type == 0 ? 0 : std::uint64_t{batch.count} * kPayloadBytes;
  if (payload_bytes > body.size()) return std::nullopt;
  batch.payloads = body.substr(0, payload_bytes);
  batch.values = body.substr(payload_bytes);
  if (!Agrees(batch)) return std::nullopt;
  return batch;
}

std::optional<StreamFromState> ReadStreamFromState(std::string_view body) {
  if (body.size() < kFromStateFixedBytes) return std::nullopt;
  StreamFromState made{.stream_id = GetU64(body, 0), .state_bytes = GetU64(body, 8)};
  const std::uint32_t definition_bytes = GetU32(body, 16);
  body.remove_prefix(kFromStateFixedBytes);
  if (definition_bytes > body.size()) return std::nullopt;
  made.definition = body.substr(0, definition_bytes);
  made.state = body.substr(definition_bytes);
  if (made.state.size() > made.state_bytes) return std::nullopt;
  return made;
}

}  // namespace

std::uint64_t Checksum(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void PutU32(std::string& out, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

void PutU64(std::string& out, std::uint64_t number) {
  char bytes[8];
  StoreU64(bytes, number);
  out.append(bytes, sizeof bytes);
}

std::uint32_t GetU32(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 4; i > 0; --i) {
    number = number << 8 | static_cast<std::uint8_t>(bytes[at + i - 1]);
  }
  return number;
}

std::uint64_t GetU64(std::string_view bytes, std::size_t at) {
  return std::uint64_t{GetU32(bytes, at + 4)} << 32 | GetU32(bytes, at);
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  return EncodeHeader(kSegmentMagic, header.behind_gap ? std::uint32_t{kBehindGap} : 0,
                      {header.number, header.first_sequence, header.previous_number,
                       header.previous_bytes, header.log_id});
}

absl::StatusOr<SegmentHeader> DecodeSegmentHeader(std::string_view bytes) {
  if (absl::Status status = CheckHeader(kSegmentMagic, kBehindGap, bytes); !status.ok())
    return status;
  const SegmentHeader header{.number = GetU64(bytes, 16),
                             .first_sequence = GetU64(bytes, 24),
                             .previous_number = GetU64(bytes, 32),
                             .previous_bytes = GetU64(bytes, 40),
                             .log_id = GetU64(bytes, 48),
                             .behind_gap = GetU32(bytes, 12) == kBehindGap};
  const bool any_previous = header.previous_number != 0;
  if (header.number == 0 || header.first_sequence == 0 || header.log_id == 0 ||
      header.number > kNumberMax || header.first_sequence > kNumberMax ||
      header.previous_number >= header.number ||
      (any_previous ? header.previous_bytes < kFileHeaderBytes : header.previous_bytes != 0)) {
    return absl::DataLossError("the header contradicts itself, though its checksum fits");
  }
  return header;
}

std::string EncodeSnapshotHeader(const SnapshotHeader& header) {
  return EncodeHeader(kSnapshotMagic, 0, {header.number, header.log_position, 0, 0, 0});
}

absl::StatusOr<SnapshotHeader> DecodeSnapshotHeader(std::string_view bytes) {
  if (absl::Status status = CheckHeader(kSnapshotMagic, 0, bytes); !status.ok()) return status;
  const SnapshotHeader header{.number = GetU64(bytes, 16), .log_position = GetU64(bytes, 24)};
  if (header.number > kNumberMax || header.log_position >= kNumberMax) {
    return absl::DataLossError("the header's numbers cannot be, though its checksum fits");
  }
  return header;
}

UnnumberedRecord MakeRecord(RecordKind kind, std::uint64_t log_id,
                            std::initializer_list<std::string_view> parts) {
  std::size_t body_bytes = 0;
  for (const std::string_view part : parts) body_bytes += part.size();
  UnnumberedRecord record;
  record.bytes.reserve(RecordBytes(body_bytes));
  record.bytes.resize(kRecordHeaderBytes);
  for (const std::string_view part : parts) record.bytes.append(part);
  record.bytes.resize(RecordBytes(body_bytes));
  record.header.kind = kind;
  record.header.body_bytes = static_cast<std::uint32_t>(body_bytes);
  record.header.body_checksum =
      Checksum(std::string_view(record.bytes).substr(kRecordHeaderBytes), log_id);
  return record;
}

void NumberRecord(UnnumberedRecord& record, std::uint64_t log_id) {
  char* const at = record.bytes.data();
  const RecordHeader& header = record.header;
  StoreU64(at, header.body_checksum);
  StoreU64(at + 8, header.body_bytes | std::uint64_t{static_cast<std::uint8_t>(header.kind)} << 32);
  StoreU64(at + 16, header.sequence);
  StoreU64(at + 24, header.durable_sequence);
  StoreU64(at + kRecordChecksumAt, Checksum({at, kRecordChecksumAt}, log_id));
}

std::optional<RecordHeader> DecodeRecordHeader(std::string_view bytes, std::uint64_t log_id) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const std::uint64_t about = GetU64(bytes, 8);
  const auto kind = static_cast<std::uint8_t>(about >> 32);
  // What random bytes fail at first, before anything is summed.
  if (about >> 40 != 0 || !KnownKind(kind) || GetU32(bytes, 8) > kBodyBytesMax) {
    return std::nullopt;
  }
  if (Checksum(bytes.substr(0, kRecordChecksumAt), log_id) != GetU64(bytes, kRecordChecksumAt)) {
    return std::nullopt;
  }
  const RecordHeader header{.body_checksum = GetU64(bytes, 0),
                            .body_bytes = GetU32(bytes, 8),
                            .kind = static_cast<RecordKind>(kind),
                            .sequence = GetU64(bytes, 16),
                            .durable_sequence = GetU64(bytes, 24)};
  if (std::max(header.sequence, header.durable_sequence) >= kNumberMax) return std::nullopt;
  return header;
}

std::optional<std::string_view> RecordBody(std::string_view record, const RecordHeader& header,
                                           std::uint64_t log_id) {
  const std::size_t bytes = RecordBytes(header.body_bytes);
  if (record.size() < bytes) return std::nullopt;
  const std::string_view padded = record.substr(kRecordHeaderBytes, bytes - kRecordHeaderBytes);
  if (Checksum(padded, log_id) != header.body_checksum) return std::nullopt;
  return padded.substr(0, header.body_bytes);
}

void AppendTexts(std::span<const std::string_view> texts, std::string& out) {
  for (const std::string_view text : texts) {
    PutU32(out, static_cast<std::uint32_t>(text.size()));
    out.append(text);
  }
}

std::vector<std::string_view> BatchTexts(const Batch& batch) {
  std::vector<std::string_view> texts;
  texts.reserve(batch.count);
  for (std::string_view rest = batch.values; !rest.empty();) {
    const std::uint32_t length = GetU32(rest, 0);
    texts.push_back(rest.substr(kTextLengthBytes, length));
    rest.remove_prefix(kTextLengthBytes + length);
  }
  return texts;
}

RecordKind KindOf(const LogEntry& entry) {
  // In the order of the variant.
  constexpr std::array kKinds = {RecordKind::kStreamCreated,   RecordKind::kStreamDeleted,
                                 RecordKind::kBatch,           RecordKind::kStatePart,
                                 RecordKind::kStreamFromState, RecordKind::kSubscribed,
                                 RecordKind::kUnsubscribed};
  static_assert(kKinds.size() == std::variant_size_v<LogEntry>);
  return kKinds[entry.index()];
}

absl::StatusOr<UnnumberedRecord> EncodeEntry(const LogEntry& entry, std::uint64_t log_id) {
  std::string fixed;
  std::string_view payloads;
  std::string_view rest;
  if (const auto* created = std::get_if<StreamCreated>(&entry)) {
    PutU64(fixed, created->stream_id);
    rest = created->definition;
  } else if (const auto* deleted = std::get_if<StreamDeleted>(&entry)) {
    PutU64(fixed, deleted->stream_id);
  } else if (const auto* part = std::get_if<StatePart>(&entry)) {
    rest = part->bytes;
  } else if (const auto* made = std::get_if<StreamFromState>(&entry)) {
    if (made->state.size() > made->state_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("the last ", made->state.size(),
                                                     " bytes of a state of ", made->state_bytes));
    }
    PutU64(fixed, made->stream_id);
    PutU64(fixed, made->state_bytes);
    PutU32(fixed, static_cast<std::uint32_t>(made->definition.size()));
    payloads = made->definition;
    rest = made->state;
  } else if (const auto* subscribed = std::get_if<Subscribed>(&entry)) {
    PutU64(fixed, subscribed->stream_id);
    PutU32(fixed, static_cast<std::uint32_t>(subscribed->name.size()));
    payloads = subscribed->name;
    rest = subscribed->request;
  } else if (const auto* unsubscribed = std::get_if<Unsubscribed>(&entry)) {
    PutU64(fixed, unsubscribed->stream_id);
    rest = unsubscribed->name;
  } else {
    const auto& batch = std::get<Batch>(entry);
    if (!Agrees(batch)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a batch of ", batch.count, " values has ", batch.values.size(),
                       " bytes of values and ", batch.payloads.size(), " of payloads; expected ",
                       batch.value_bytes == 0 ? std::string("whole texts")
                                              : absl::StrCat(batch.value_bytes, " for each value"),
                       " and ", batch.payload_type == 0 ? 0 : kPayloadBytes, " for each payload"));
    }
    fixed = BatchFixed(batch);
    payloads = batch.payloads;
    rest = batch.values;
  }
  const std::size_t bytes = fixed.size() + payloads.size() + rest.size();
  if (bytes > kBodyBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a record of ", bytes,
                                                   " bytes is too large for the log; expected at "
                                                   "most ",
                                                   kBodyBytesMax));
  }
  return MakeRecord(KindOf(entry), log_id, {fixed, payloads, rest});
}

absl::StatusOr<LogEntry> DecodeEntry(RecordKind kind, std::string_view body) {
  switch (kind) {
    case RecordKind::kStreamCreated:
      if (body.size() >= 8) return StreamCreated{GetU64(body, 0), body.substr(8)};
      break;
    case RecordKind::kStreamDeleted:
      if (body.size() == 8) return StreamDeleted{GetU64(body, 0)};
      break;
    case RecordKind::kBatch:
      if (const std::optional<Batch> batch = ReadBatch(body)) return *batch;
      break;
    case RecordKind::kStatePart:
      if (!body.empty()) return StatePart{body};
      break;
    case RecordKind::kStreamFromState:
      if (const auto made = ReadStreamFromState(body)) return *made;
      break;
    case RecordKind::kSubscribed:
      if (body.size() >= kSubscribedFixedBytes &&
          GetU32(body, 8) <= body.size() - kSubscribedFixedBytes) {
        const std::string_view rest = body.substr(kSubscribedFixedBytes);
        return Subscribed{GetU64(body, 0), rest.substr(0, GetU32(body, 8)),
                          rest.substr(GetU32(body, 8))};
      }
      break;
    case RecordKind::kUnsubscribed:
      if (body.size() >= 8) return Unsubscribed{GetU64(body, 0), body.substr(8)};
      break;
    default:
      break;
  }
  return absl::DataLossError(
      absl::StrCat("a body of ", body.size(), " bytes is none of kind ", static_cast<int>(kind)));
}

std::string SegmentName(std::uint64_t number) { return NumberedName(kSegmentPrefix, number); }
std::string SnapshotName(std::uint64_t number) { return NumberedName(kSnapshotPrefix, number); }
std::optional<std::uint64_t> SegmentNumber(std::string_view name) {
  return NameNumber(kSegmentPrefix, name);
}
std::optional<std::uint64_t> SnapshotNumber(std::string_view name) {
  return NameNumber(kSnapshotPrefix, name);
}

}  // namespace tidemark::store
