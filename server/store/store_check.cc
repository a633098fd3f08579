#include "server/store/store_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/lost_records.h"
#include "server/store/planned_files.h"
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

// What a repair found and did, and up to which record the log can be used.
struct Repaired {
  RepairReport report;
  std::uint64_t kept = 0;
  bool log_damaged = false;
  std::optional<std::uint64_t> snapshot;  // the newest valid one
};

absl::Status RepairLog(FileSystem& files, const std::string& folder, std::uint64_t position,
                       Repaired& repaired) {
  RepairReport& report = repaired.report;
  std::uint64_t highest = 0;  // a number is not used again, nor is a name of a file set aside
  for (;;) {
    LogReading reading = ReadLogPrefix(files, folder, position, IgnoreEntry);
    highest = reading.end.highest_number = std::max(highest, reading.end.highest_number);
    repaired.kept = std::max(position, reading.end.last_sequence);
    if (reading.status.ok()) return absl::OkStatus();
    if (!absl::IsDataLoss(reading.status)) return reading.status;
    repaired.log_damaged = true;
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

absl::StatusOr<Repaired> Repair(FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<SnapshotInfo>> snapshots = CheckSnapshots(files, folder);
  if (!snapshots.ok()) return snapshots.status();
  for (const SnapshotInfo& info : *snapshots) {
    if (!info.status.ok() && !absl::IsDataLoss(info.status)) return info.status;
  }
  Repaired repaired;
  RepairReport& report = repaired.report;
  for (const SnapshotInfo& info : *snapshots) {
    if (info.status.ok()) continue;
    report.faults.push_back(Message(info.status));
    if (absl::Status status =
            SetAside(files, folder, SnapshotName(info.header.number), report.actions);
        !status.ok()) {
      return status;
    }
  }
  std::uint64_t position = 0;
  if (const SnapshotInfo* newest = NewestValid(*snapshots)) {
    repaired.snapshot = newest->header.number;
    position = newest->header.log_position;
  }
  const absl::Status status = RepairLog(files, folder, position, repaired);
  if (!status.ok()) return status;
  if (!report.actions.empty()) {
    if (absl::Status synced = files.SyncFolder(folder); !synced.ok()) return synced;
  }
  return repaired;
}

absl::StatusOr<bool> HasSegments(FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  return std::any_of(names->begin(), names->end(),
                     [](const std::string& name) { return SegmentNumber(name).has_value(); });
}

// What the repair does, without doing it, and what is lost then: a line each.
absl::StatusOr<RepairReport> PlanRepair(FileSystem& files, const std::string& folder) {
  PlannedFiles plan(files);
  absl::StatusOr<Repaired> planned = Repair(plan, folder);
  if (!planned.ok()) return planned.status();
  RepairReport& report = planned->report;
  if (report.faults.empty()) return report;
  const absl::StatusOr<bool> has_log = HasSegments(files, folder);
  if (!has_log.ok()) return has_log.status();
  if (planned->log_damaged) {
    const absl::StatusOr<LostRecords> lost = FindLostRecords(files, folder, planned->kept);
    if (!lost.ok()) return lost.status();
    report.lost.push_back(lost->Text());
  } else if (*has_log) {
    report.lost.push_back(absl::StrCat(
        "nothing: ",
        planned->snapshot
            ? absl::StrCat("snapshot ", *planned->snapshot, " and the log behind it have")
            : std::string("the log has"),
        " all that the damaged snapshot had"));
  } else if (planned->snapshot) {
    report.lost.push_back(
        absl::StrCat("all that came behind snapshot ", *planned->snapshot, ": there is no log"));
  } else {
    report.lost.push_back("all streams: no snapshot is whole, and there is no log");
  }
  return report;
}

std::vector<std::uint64_t> NumbersOf(const std::vector<SegmentCheck>& checks) {
  std::vector<std::uint64_t> numbers;
  for (const SegmentCheck& check : checks) numbers.push_back(check.number);
  return numbers;
}

bool Holds(const std::vector<std::uint64_t>& numbers, std::uint64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// A segment by itself, one that the log's reader did not come to. `limit`: what its successor says.
absl::StatusOr<SegmentCheck> CheckSegment(FileSystem& files, const std::string& folder,
                                          std::uint64_t number,
                                          std::optional<std::uint64_t> limit) {
  const std::string path = SegmentPath(folder, number);
  const absl::StatusOr<std::uint64_t> size = files.Size(path);
  if (!size.ok()) return size.status();
  const absl::StatusOr<std::string> bytes = files.Read(path, 0, *size);
  if (!bytes.ok()) return bytes.status();
  SegmentCheck check{.number = number, .file_bytes = *size};
  const absl::StatusOr<SegmentHeader> header = DecodeSegmentHeader(*bytes);
  if (!header.ok()) {
    check.status = absl::Status(header.status().code(),
                                absl::StrCat(path, ": offset 0: ", header.status().message()));
    return check;
  }
  const SegmentReading reading = ReadSegment(*bytes, *header, limit, IgnoreEntry);
  check.whole_bytes = reading.bytes;
  check.first_sequence = header->first_sequence;
  check.last_sequence = reading.last_sequence;
  if (!reading.status.ok()) {
    check.status =
        absl::Status(reading.status.code(), absl::StrCat(path, ": ", reading.status.message()));
  }
  return check;
}

// Every segment's file: those that were read, and the others by themselves.
absl::Status CheckFiles(FileSystem& files, const std::string& folder, const LogReading& reading,
                        StoreReport& report) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  std::vector<std::uint64_t> numbers;
  std::map<std::uint64_t, std::uint64_t> limits;  // by number: what the next segment says of it
  for (const std::string& name : *names) {
    const std::optional<std::uint64_t> number = SegmentNumber(name);
    if (!number) {
      if (!SnapshotNumber(name)) report.others.push_back(name);
      continue;
    }
    numbers.push_back(*number);
    const absl::StatusOr<std::string> head =
        files.Read(SegmentPath(folder, *number), 0, kFileHeaderBytes);
    if (!head.ok()) return head.status();
    const absl::StatusOr<SegmentHeader> header = DecodeSegmentHeader(*head);
    if (header.ok()) limits[header->previous_number] = header->previous_bytes;
  }
  std::vector<std::uint64_t> of_log = NumbersOf(reading.read);
  of_log.insert(of_log.end(), reading.unusable.begin(), reading.unusable.end());
  for (const std::uint64_t number : numbers) {
    SegmentReport& segment = report.segments.emplace_back();
    const auto read =
        std::find_if(reading.read.begin(), reading.read.end(),
                     [&](const SegmentCheck& check) { return check.number == number; });
    if (read != reading.read.end()) {
      segment = {*read, SegmentUse::kLog};
      continue;
    }
    const auto older = [&](const SegmentPlace& place) { return place.number == number; };
    if (Holds(of_log, number)) {
      segment.use = SegmentUse::kLog;
    } else if (std::any_of(reading.end.segments.begin(), reading.end.segments.end(), older)) {
      segment.use = SegmentUse::kOlder;
    }
    const auto limit = limits.find(number);
    absl::StatusOr<SegmentCheck> check = CheckSegment(
        files, folder, number,
        limit == limits.end() ? std::nullopt : std::optional<std::uint64_t>(limit->second));
    if (!check.ok()) return check.status();
    segment.check = *std::move(check);
    if (segment.use == SegmentUse::kOlder && !segment.check.status.ok()) {
      report.notes.push_back(absl::StrCat(Message(segment.check.status),
                                          "; not needed: the newest snapshot covers it"));
    }
  }
  return absl::OkStatus();
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
  if (absl::Status checked = CheckFiles(files, folder, reading, report); !checked.ok()) {
    return checked;
  }
  if (report.ok()) return report;
  absl::StatusOr<RepairReport> plan = PlanRepair(files, folder);
  if (absl::IsFailedPrecondition(plan.status())) {  // of another version: nothing is damaged
    report.notes.push_back("a repair changes nothing: expected a program that reads that version");
    return report;
  }
  if (!plan.ok()) return plan.status();
  report.lost = std::move(plan->lost);
  report.actions = std::move(plan->actions);
  return report;
}

absl::StatusOr<RepairReport> RepairStore(FileSystem& files, const std::string& folder) {
  // First what is lost: it is in the files that then have other names.
  absl::StatusOr<RepairReport> plan = PlanRepair(files, folder);
  if (!plan.ok() || plan->faults.empty()) return plan;
  absl::StatusOr<Repaired> repaired = Repair(files, folder);
  if (!repaired.ok()) return repaired.status();
  repaired->report.lost = std::move(plan->lost);
  return std::move(repaired->report);
}

}  // namespace tidemark::store
