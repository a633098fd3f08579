// A log segment and a snapshot file of any bytes, with their checksums as they came and made to
// fit: what is none is refused with a reason, and of a segment a prefix is read; records that are
// accepted are written again as the same bytes.
//
// The first byte: bit 0 snapshot, bit 1 make checksums fit, bit 2 the segment has a successor.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "server/store/log_reader.h"
#include "server/store/snapshot_file.h"
#include "server/store/store_check.h"
#include "server/store/store_dump.h"
#include "tests/support/fake_disk.h"

namespace {

using namespace tidemark::store;

const std::string kFolder = "/s";

void Require(bool property) {
  if (!property) std::abort();
}

void Put(tidemark::testing::FakeDisk& disk, const std::string& name, std::string_view bytes) {
  const auto file = disk.Create(kFolder + "/" + name);
  Require(file.ok() && (*file)->Write(0, bytes).ok());
}

void Replace(std::string& bytes, std::size_t at, std::uint64_t number) {
  std::string put;
  PutU64(put, number);
  bytes.replace(at, put.size(), put);
}

// Of the file's header, and of each record that fits in what is left.
void FixChecksums(std::string& bytes, bool snapshot) {
  if (bytes.size() < kFileHeaderBytes) return;
  bytes.replace(0, 16, (snapshot ? EncodeSnapshotHeader({}) : EncodeSegmentHeader({})), 0, 16);
  Replace(bytes, 16, 1);  // the number in the file's name
  if (!snapshot) {        // the first of its log
    Replace(bytes, 24, GetU64(bytes, 24) | 1);
    Replace(bytes, 32, 0);
    Replace(bytes, 40, 0);
    Replace(bytes, 48, GetU64(bytes, 48) | 1);
  }
  const std::string_view view = bytes;
  Replace(bytes, kFileHeaderBytes - 8, Checksum(view.substr(0, kFileHeaderBytes - 8), 0));
  const std::uint64_t seed = snapshot ? 1 : GetU64(bytes, 48);
  const std::uint64_t first = snapshot ? 1 : GetU64(bytes, 24);
  for (std::size_t at = kFileHeaderBytes, record = 0; at + kRecordHeaderBytes <= bytes.size();) {
    const std::size_t length = RecordBytes(GetU32(bytes, at + 8) % 512);
    if (length > bytes.size() - at) return;
    const std::uint64_t kind = GetU64(bytes, at + 8) & 0xFF00000000;
    Replace(bytes, at + 8, kind | GetU32(bytes, at + 8) % 512);
    // A bit of what came chooses between the number that is expected and the one that is there.
    if ((bytes[at + 12] & 0x20) == 0) Replace(bytes, at + 16, first + record++);
    bytes[at + 12] = static_cast<char>(bytes[at + 12] & 0x1F);
    const auto body = view.substr(at + kRecordHeaderBytes, length - kRecordHeaderBytes);
    Replace(bytes, at, Checksum(body, seed));
    Replace(bytes, at + 32, Checksum(view.substr(at, 32), seed));
    at += length;
  }
}

void CheckSegment(const std::string& bytes, bool successor) {
  const auto header = DecodeSegmentHeader(bytes);
  if (!header.ok()) return;
  std::uint64_t next = header->first_sequence;
  const auto visit = [&](std::uint64_t sequence, const LogEntry& entry) {
    Require(sequence == next++);
    const auto again = EncodeEntry(entry, header->log_id);
    Require(again.ok());
    const auto body = again->bytes.substr(kRecordHeaderBytes, again->header.body_bytes);
    Require(bytes.find(body) != std::string::npos);
    if (const auto* batch = std::get_if<Batch>(&entry);
        batch != nullptr && batch->value_bytes == 0) {
      Require(BatchTexts(*batch).size() == batch->count);
    }
    return absl::OkStatus();
  };
  const auto limit = successor ? std::optional<std::uint64_t>(bytes.size()) : std::nullopt;
  const SegmentReading reading = ReadSegment(bytes, *header, limit, visit);
  Require(reading.bytes <= bytes.size() && reading.last_sequence + 1 == next);
  Require(reading.status.ok() || reading.status.message().find("offset") != std::string::npos);
  Require(!successor || reading.bytes == bytes.size() || !reading.status.ok());
}

// Looks at all that it is given.
class CountingVisitor final : public StoreVisitor {
 public:
  void Snapshot(const SnapshotInfo& snapshot) override { Require(snapshot.status.ok()); }
  void Blob(const SnapshotInfo&, std::string_view name, std::string_view blob) override {
    Checksum(name, Checksum(blob, 0));
  }
  void Record(std::uint64_t, std::uint64_t, const RecordHeader& header, std::string_view body,
              bool /*behind_damage*/) override {
    Require(header.body_bytes == body.size());
    Checksum(body, 0);
  }
  void Note(std::string_view note) override { Require(!note.empty()); }
  void Fault(std::string_view fault) override { faults += fault.empty() ? 0 : 1; }
  std::size_t faults = 0;
};

void CheckStore(const std::string& bytes, bool snapshot) {
  tidemark::testing::FakeDisk disk;
  Put(disk, snapshot ? SnapshotName(1) : SegmentName(1), bytes);
  const auto before = VerifyStore(disk, kFolder);
  Require(before.ok());
  for (const std::string& fault : before->faults) Require(fault.find(kFolder) == 0);
  CountingVisitor visitor;
  Require(DumpStore(disk, kFolder, visitor).ok());
  Require(visitor.faults == before->faults.size());
  Require(before->lost.empty() || !before->ok());
  if (RepairStore(disk, kFolder).ok()) Require(VerifyStore(disk, kFolder)->ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool snapshot = (data[0] & 1) != 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 2) != 0) FixChecksums(bytes, snapshot);
  if (!snapshot) CheckSegment(bytes, (data[0] & 4) != 0);
  CheckStore(bytes, snapshot);
  return 0;
}
