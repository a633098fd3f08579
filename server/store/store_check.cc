#include "server/store/store_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
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

SnapshotCover CoverOf(const SnapshotInfo* newest) {
  if (newest == nullptr) return 0;
  return {newest->header.log_position, newest->header.log_reaches};
}

absl::Status SetAside(FileSystem& files, const std::string& folder, const std::string& name,
                      std::vector<std::string>& actions) {
  const std::string path = folder + "/" + name;
  // Numbers are given out again, and what an earlier repair set aside stays.
  std::string aside = path + kDamagedSuffix;
  for (int number = 2; files.Size(aside).ok(); ++number) {
    aside = absl::StrCat(path, ".", number, kDamagedSuffix);
  }
  if (absl::Status status = files.Rename(path, aside); !status.ok()) return status;
  actions.push_back(absl::StrCat(path, ": renamed to ", aside));
  return absl::OkStatus();
}

// A segment behind `end`, so that what lies behind it does not count any more. Where the snapshot
// reaches further, another one behind a gap: records that come must not have numbers of which the
// snapshot says that it has them.
absl::Status BeginAnew(FileSystem& files, const std::string& folder, const LogEnd& end,
                       std::uint64_t reaches, std::vector<std::string>& actions) {
  SegmentHeader header{.number = end.highest_number + 1,
                       .first_sequence = end.durable.sequence + 1,
                       .previous_number = end.durable.segment,
                       .previous_bytes = end.durable.bytes,
                       .log_id = end.log_id};
  // Of a log of which nothing is left: any number will do that the files of before have not.
  if (header.log_id == 0) header.log_id = Checksum(folder, header.number) | 1;
  const std::vector<std::string_view> records(end.tail.begin(), end.tail.end());
  const auto create = [&](std::span<const std::string_view> taken_over, std::uint64_t behind) {
    const absl::Status status = CreateSegment(files, folder, header, taken_over).status();
    if (!status.ok()) return status;
    actions.push_back(absl::StrCat(SegmentPath(folder, header.number),
                                   ": the log goes on here, behind record ", behind));
    return absl::OkStatus();
  };
  if (absl::Status status = create(records, end.last_sequence); !status.ok()) return status;
  if (reaches <= end.last_sequence) return absl::OkStatus();
  std::uint64_t bytes = kFileHeaderBytes;
  for (const std::string_view record : records) bytes += record.size();
  header = {.number = header.number + 1,
            .first_sequence = reaches + 1,
            .previous_number = header.number,
            .previous_bytes = bytes,
            .log_id = header.log_id,
            .behind_gap = true};
  return create({}, reaches);
}

// What a repair found and did, and up to which record the log can be used.
struct Repaired {
  RepairReport report;
  std::uint64_t kept = 0;
  bool log_damaged = false;
  std::optional<std::uint64_t> snapshot;  // the newest valid one
  SnapshotCover cover = 0;                // its
};

// A last segment of which no record is known to be synced: those in front of the damage have been
// taken over, and the segment is none of the log any more. A daemon would remove it, with what is
// behind the damage.
absl::Status SetAsideDamaged(FileSystem& files, const std::string& folder,
                             const LogReading& reading, std::vector<std::string>& actions) {
  if (reading.read.empty() || reading.read.back().status.ok()) return absl::OkStatus();
  const std::uint64_t damaged = reading.read.back().number;
  for (const SegmentPlace& place : reading.end.segments) {
    if (place.number == damaged) return absl::OkStatus();
  }
  return SetAside(files, folder, SegmentName(damaged), actions);
}

absl::Status RepairLog(FileSystem& files, const std::string& folder, SnapshotCover cover,
                       Repaired& repaired) {
  const std::uint64_t position = cover.all;
  RepairReport& report = repaired.report;
  std::uint64_t highest = 0;  // a number of a file that is set aside here is not used again
  for (;;) {
    LogReading reading = ReadLogPrefix(files, folder, cover, IgnoreEntry);
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
    if (covers) {
      if (absl::Status status =
              BeginAnew(files, folder, reading.end, cover.reaches, report.actions);
          !status.ok()) {
        return status;
      }
      return SetAsideDamaged(files, folder, reading, report.actions);
    }
    if (reading.unusable.empty()) {  // no segment is left
      reading.end = {.log_id = reading.end.log_id,
                     .durable = {0, 0, position},
                     .last_sequence = position,
                     .highest_number = reading.end.highest_number};
      return BeginAnew(files, folder, reading.end, cover.reaches, report.actions);
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
  const SnapshotInfo* newest = NewestValid(*snapshots);
  if (newest != nullptr) repaired.snapshot = newest->header.number;
  repaired.cover = CoverOf(newest);
  const absl::Status status = RepairLog(files, folder, repaired.cover, repaired);
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
absl::StatusOr<Repaired> PlanRepair(FileSystem& files, const std::string& folder) {
  PlannedFiles plan(files);
  absl::StatusOr<Repaired> planned = Repair(plan, folder);
  if (!planned.ok()) return planned.status();
  RepairReport& report = planned->report;
  if (report.faults.empty()) return planned;
  const absl::StatusOr<bool> has_log = HasSegments(files, folder);
  if (!has_log.ok()) return has_log.status();
  if (planned->log_damaged) {
    const absl::StatusOr<LostRecords> lost =
        FindLostRecords(files, folder, planned->kept, planned->cover.reaches);
    if (!lost.ok()) return lost.status();
    report.lost.push_back(lost->Text());
  } else if (*has_log && planned->snapshot) {
    report.lost.push_back(absl::StrCat("nothing: snapshot ", *planned->snapshot,
                                       " and the log behind it have all that the damaged snapshot "
                                       "had"));
  } else if (*has_log) {
    report.lost.push_back(
        "what the damaged snapshots had of streams from before the log began; the log has the "
        "rest");
  } else if (planned->snapshot) {
    report.lost.push_back(
        absl::StrCat("all that came behind snapshot ", *planned->snapshot, ": there is no log"));
  } else {
    report.lost.push_back("all streams: no snapshot is whole, and there is no log");
  }
  return planned;
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
    // A log that could not be read as it is: what is left may be of it.
    if (!reading.reached && absl::IsDataLoss(reading.status)) segment.use = SegmentUse::kLog;
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
  const SnapshotCover cover = CoverOf(NewestValid(report.snapshots));
  report.log_position = cover.all;
  LogReading reading = ReadLogPrefix(files, folder, cover, IgnoreEntry);
  report.last_sequence = reading.end.last_sequence;
  report.records = report.last_sequence - std::min(report.last_sequence, report.log_position);
  report.notes = std::move(reading.end.notes);
  if (!reading.status.ok()) report.faults.push_back(Message(reading.status));
  if (absl::Status checked = CheckFiles(files, folder, reading, report); !checked.ok()) {
    return checked;
  }
  if (report.ok()) return report;
  absl::StatusOr<Repaired> plan = PlanRepair(files, folder);
  if (absl::IsFailedPrecondition(plan.status())) {  // of another version: nothing is damaged
    report.notes.push_back("a repair changes nothing: expected a program that reads that version");
    return report;
  }
  if (!plan.ok()) return plan.status();
  report.lost = std::move(plan->report.lost);
  report.actions = std::move(plan->report.actions);
  report.last_sequence = plan->kept;
  report.records = plan->kept - std::min(plan->kept, report.log_position);
  return report;
}

absl::StatusOr<RepairReport> RepairStore(FileSystem& files, const std::string& folder) {
  // First what is lost: it is in the files that then have other names.
  absl::StatusOr<Repaired> plan = PlanRepair(files, folder);
  if (!plan.ok()) return plan.status();
  if (plan->report.faults.empty()) return std::move(plan->report);
  absl::StatusOr<Repaired> repaired = Repair(files, folder);
  if (!repaired.ok()) return repaired.status();
  repaired->report.lost = std::move(plan->report.lost);
  return std::move(repaired->report);
}

}  // namespace tidemark::store
