#include "server/store/store_check.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/segment_file.h"

namespace tidemark::store {
namespace {

constexpr const char* kDamagedSuffix = ".damaged";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

absl::Status IgnoreEntry(std::uint64_t, const LogEntry&) { return absl::OkStatus(); }

// The newest valid snapshot; null if there is none.
const SnapshotInfo* NewestValid(const std::vector<SnapshotInfo>& snapshots) {
  const auto at = std::find_if(snapshots.begin(), snapshots.end(),
                               [](const SnapshotInfo& info) { return info.status.ok(); });
  return at == snapshots.end() ? nullptr : &*at;
}

std::string DescribeEntry(std::uint64_t sequence, const LogEntry& entry) {
  const std::string head = absl::StrCat("record ", sequence, ": ");
  if (const auto* created = std::get_if<StreamCreated>(&entry)) {
    return absl::StrCat(head, "stream ", created->stream_id, " created, definition of ",
                        created->definition.size(), " bytes");
  }
  if (const auto* deleted = std::get_if<StreamDeleted>(&entry)) {
    return absl::StrCat(head, "stream ", deleted->stream_id, " deleted");
  }
  if (const auto* part = std::get_if<StatePart>(&entry)) {
    return absl::StrCat(head, "part of a state of ", part->bytes.size(), " bytes");
  }
  if (const auto* made = std::get_if<StreamFromState>(&entry)) {
    return absl::StrCat(head, "stream ", made->stream_id, " created with a state of ",
                        made->state_bytes, " bytes, definition of ", made->definition.size(),
                        " bytes");
  }
  const auto& batch = std::get<Batch>(entry);
  std::string line = absl::StrCat(head, "batch of stream ", batch.stream_id, " at ",
                                  batch.recorded_time_us, " us: ", batch.count, " values, ",
                                  batch.payloads.size() + batch.values.size(), " bytes");
  if (batch.producer != ProducerSequence{}) {
    absl::StrAppend(&line, ", producer ", absl::Hex(batch.producer.producer[0], absl::kZeroPad16),
                    absl::Hex(batch.producer.producer[1], absl::kZeroPad16), " sequence ",
                    batch.producer.sequence);
  }
  return line;
}

absl::Status SetAside(FileSystem& files, const std::string& folder, const std::string& name,
                      std::vector<std::string>& actions) {
  const std::string path = folder + "/" + name;
  const std::string aside = path + kDamagedSuffix;
  if (absl::Status status = files.Rename(path, aside); !status.ok()) return status;
  actions.push_back(absl::StrCat(path, ": renamed to ", aside));
  return absl::OkStatus();
}

// A segment behind `end`, so that what lies behind it does not count any more.
absl::Status BeginAnew(FileSystem& files, const std::string& folder, const LogEnd& end,
                       std::vector<std::string>& actions) {
  SegmentHeader header{.number = end.highest_number + 1,
                       .first_sequence = end.durable.sequence + 1,
                       .previous_number = end.durable.segment,
                       .previous_bytes = end.durable.bytes,
                       .log_id = end.log_id};
  // Of a log of which nothing is left: any number will do that the files of before have not.
  if (header.log_id == 0) header.log_id = Checksum(folder, header.number) | 1;
  const std::vector<std::string_view> records(end.tail.begin(), end.tail.end());
  const auto file = CreateSegment(files, folder, header, records);
  if (!file.ok()) return file.status();
  actions.push_back(absl::StrCat(SegmentPath(folder, header.number),
                                 ": the log goes on here, behind record ", end.last_sequence));
  return absl::OkStatus();
}

absl::Status RepairLog(FileSystem& files, const std::string& folder, std::uint64_t position,
                       RepairReport& report) {
  std::uint64_t highest = 0;  // a number is not used again, nor is a name of a file set aside
  for (;;) {
    LogReading reading = ReadLogPrefix(files, folder, position, IgnoreEntry);
    highest = reading.end.highest_number = std::max(highest, reading.end.highest_number);
    if (reading.status.ok()) return absl::OkStatus();
    if (!absl::IsDataLoss(reading.status)) return reading.status;
    report.faults.push_back(Message(reading.status));
    const bool covers = reading.reached && reading.end.last_sequence >= position;
    if (reading.reached && !covers) {
      // What is left ends before the snapshot: none of it is wanted.
      reading.unusable.clear();
      for (const std::uint64_t number : reading.end.abandoned) reading.unusable.push_back(number);
      for (const SegmentPlace& place : reading.end.segments) {
        reading.unusable.push_back(place.number);
      }
      std::sort(reading.unusable.begin(), reading.unusable.end());
      reading.unusable.erase(std::unique(reading.unusable.begin(), reading.unusable.end()),
                             reading.unusable.end());
    }
    for (const std::uint64_t number : reading.unusable) {
      if (absl::Status status = SetAside(files, folder, SegmentName(number), report.actions);
          !status.ok()) {
        return status;
      }
    }
    if (covers) return BeginAnew(files, folder, reading.end, report.actions);
    if (reading.unusable.empty()) {  // no segment is left
      reading.end = {.log_id = reading.end.log_id,
                     .durable = {0, 0, position},
                     .last_sequence = position,
                     .highest_number = reading.end.highest_number};
      return BeginAnew(files, folder, reading.end, report.actions);
    }
  }
}

}  // namespace

absl::StatusOr<StoreReport> VerifyStore(FileSystem& files, const std::string& folder) {
  StoreReport report;
  absl::StatusOr<std::vector<SnapshotInfo>> snapshots = CheckSnapshots(files, folder);
  if (!snapshots.ok()) return snapshots.status();
  report.snapshots = *std::move(snapshots);
  for (const SnapshotInfo& info : report.snapshots) {
    if (!info.status.ok()) report.faults.push_back(Message(info.status));
  }
  if (const SnapshotInfo* newest = NewestValid(report.snapshots)) {
    report.log_position = newest->header.log_position;
  }
  LogReading reading = ReadLogPrefix(files, folder, report.log_position, IgnoreEntry);
  report.last_sequence = reading.end.last_sequence;
  report.records = report.last_sequence - std::min(report.last_sequence, report.log_position);
  report.notes = std::move(reading.end.notes);
  if (!reading.status.ok()) report.faults.push_back(Message(reading.status));
  return report;
}

absl::Status DumpStore(FileSystem& files, const std::string& folder,
                       const std::function<void(std::string_view line)>& print) {
  absl::StatusOr<std::vector<SnapshotInfo>> snapshots = CheckSnapshots(files, folder);
  if (!snapshots.ok()) return snapshots.status();
  for (const SnapshotInfo& info : *snapshots) {
    if (!info.status.ok()) {
      print(absl::StrCat("snapshot ", info.header.number, ": ", Message(info.status)));
      continue;
    }
    print(absl::StrCat("snapshot ", info.header.number, ": ", info.blobs, " blobs, ", info.bytes,
                       " bytes, up to record ", info.header.log_position));
    const auto blob = [&](std::string_view name, std::string_view bytes) {
      print(absl::StrCat("  blob \"", std::string(name), "\": ", bytes.size(), " bytes"));
      return absl::OkStatus();
    };
    const auto read = ReadSnapshot(files, folder, info.header.number, blob);
    if (!read.ok()) return read.status();
  }
  const SnapshotInfo* newest = NewestValid(*snapshots);
  const auto entry = [&](std::uint64_t sequence, const LogEntry& record) {
    print(DescribeEntry(sequence, record));
    return absl::OkStatus();
  };
  const LogReading reading =
      ReadLogPrefix(files, folder, newest == nullptr ? 0 : newest->header.log_position, entry);
  for (const std::string& note : reading.end.notes) print(note);
  if (!reading.status.ok()) print(Message(reading.status));
  return absl::OkStatus();
}

absl::StatusOr<RepairReport> RepairStore(FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = CheckSnapshots(files, folder);
  if (!snapshots.ok()) return snapshots.status();
  for (const SnapshotInfo& info : *snapshots) {
    if (!info.status.ok() && !absl::IsDataLoss(info.status)) return info.status;
  }
  RepairReport report;
  for (const SnapshotInfo& info : *snapshots) {
    if (info.status.ok()) continue;
    report.faults.push_back(Message(info.status));
    if (absl::Status status =
            SetAside(files, folder, SnapshotName(info.header.number), report.actions);
        !status.ok()) {
      return status;
    }
  }
  const SnapshotInfo* newest = NewestValid(*snapshots);
  const absl::Status status =
      RepairLog(files, folder, newest == nullptr ? 0 : newest->header.log_position, report);
  if (!status.ok()) return status;
  if (!report.actions.empty()) {
    if (absl::Status synced = files.SyncFolder(folder); !synced.ok()) return synced;
  }
  return report;
}

}  // namespace tidemark::store
