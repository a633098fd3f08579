#include "server/store/store_dump.h"

#include <optional>

#include "server/store/segment_file.h"
#include "server/store/store_check.h"

namespace tidemark::store {
namespace {

absl::Status DumpSegment(FileSystem& files, const std::string& folder, const SegmentCheck& segment,
                         StoreVisitor& visitor) {
  const std::string path = SegmentPath(folder, segment.number);
  const absl::StatusOr<std::string> bytes =
      files.Read(path, 0, segment.status.ok() ? segment.whole_bytes : segment.file_bytes);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<SegmentHeader> header = DecodeSegmentHeader(*bytes);
  if (!header.ok()) return absl::OkStatus();  // told as a fault
  std::uint64_t whole_to = kFileHeaderBytes;
  ScanRecords(
      *bytes, kFileHeaderBytes, header->log_id,
      [&](std::uint64_t offset, const RecordHeader& record, std::optional<std::string_view> body) {
        if (!body) return;
        const bool behind_damage = offset != whole_to;
        visitor.Record(segment.number, offset, record, *body, behind_damage);
        if (!behind_damage) whole_to += RecordBytes(record.body_bytes);
      });
  return absl::OkStatus();
}

}  // namespace

absl::Status DumpStore(FileSystem& files, const std::string& folder, StoreVisitor& visitor) {
  const absl::StatusOr<StoreReport> report = VerifyStore(files, folder);
  if (!report.ok()) return report.status();
  for (const SnapshotInfo& info : report->snapshots) {
    if (!info.status.ok()) continue;
    visitor.Snapshot(info);
    const auto blob = [&](std::string_view name, std::string_view bytes) {
      visitor.Blob(info, name, bytes);
      return absl::OkStatus();
    };
    const auto read = ReadSnapshot(files, folder, info.header.number, blob);
    if (!read.ok()) return read.status();
  }
  for (const SegmentReport& segment : report->segments) {
    if (segment.use == SegmentUse::kNone) continue;
    const absl::Status status = DumpSegment(files, folder, segment.check, visitor);
    if (!status.ok()) return status;
  }
  for (const std::string& note : report->notes) visitor.Note(note);
  for (const std::string& fault : report->faults) visitor.Fault(fault);
  return absl::OkStatus();
}

}  // namespace tidemark::store
