#include "server/store/store_dump.h"

#include "server/store/segment_file.h"
#include "server/store/store_check.h"

namespace tidemark::store {
namespace {

absl::Status DumpSegment(FileSystem& files, const std::string& folder, const SegmentCheck& segment,
                         StoreVisitor& visitor) {
  const std::string path = SegmentPath(folder, segment.number);
  const absl::StatusOr<std::string> bytes = files.Read(path, 0, segment.whole_bytes);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<SegmentHeader> header = DecodeSegmentHeader(*bytes);
  if (!header.ok()) return absl::OkStatus();  // told as a fault
  for (std::uint64_t at = kFileHeaderBytes; at < bytes->size();) {
    const std::string_view rest = std::string_view(*bytes).substr(at);
    const auto record = DecodeRecordHeader(rest, header->log_id);
    const auto body = record ? RecordBody(rest, *record, header->log_id) : std::nullopt;
    if (!body) break;  // changed since it was checked
    visitor.Record(segment.number, at, *record, *body);
    at += RecordBytes(record->body_bytes);
  }
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
