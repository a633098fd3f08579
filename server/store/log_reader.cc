#include "server/store/log_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/segment_file.h"

namespace tidemark::store {
namespace {

absl::Status Named(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

std::string Records(std::uint64_t first, std::uint64_t last) {
  return first == last ? absl::StrCat("record ", first, " is")
                       : absl::StrCat("records ", first, " to ", last, " are");
}

// The first whole record header behind `from` that may follow the record `expected`.
std::optional<RecordHeader> FindHeader(std::string_view bytes, std::uint64_t from,
                                       std::uint64_t expected, std::uint64_t log_id,
                                       bool synced_expected) {
  for (std::uint64_t at = from; at + kRecordHeaderBytes <= bytes.size(); at += kRecordAlignment) {
    const auto header = DecodeRecordHeader(bytes.substr(at, kRecordHeaderBytes), log_id);
    if (!header || header->sequence < expected) continue;
    if (!synced_expected || header->durable_sequence >= expected) return header;
  }
  return std::nullopt;
}

// Where the whole record `sequence` begins, from `from` on.
std::optional<std::uint64_t> FindRecord(std::string_view bytes, std::uint64_t from,
                                        std::uint64_t sequence, std::uint64_t log_id) {
  for (std::uint64_t at = from; at + kRecordHeaderBytes <= bytes.size(); at += kRecordAlignment) {
    const std::string_view rest = bytes.substr(at);
    const auto header = DecodeRecordHeader(rest, log_id);
    if (header && header->sequence == sequence && header->kind != RecordKind::kMark &&
        RecordBody(rest, *header, log_id)) {
      return at;
    }
  }
  return std::nullopt;
}

absl::Status Damaged(std::string_view bytes, std::uint64_t at, std::uint64_t expected,
                     std::uint64_t log_id) {
  const auto next = FindHeader(bytes, at + kRecordAlignment, expected + 1, log_id, false);
  const std::string lost =
      next ? absl::StrCat(Records(expected, std::max(expected, next->sequence - 1)),
                          " lost, and those from ", next->sequence, " on follow a gap")
           : absl::StrCat("it and all after it in this file are lost");
  return absl::DataLossError(
      absl::StrCat("offset ", at, ": record ", expected, " is damaged; ", lost));
}

}  // namespace

SegmentReading ReadSegment(std::string_view bytes, const SegmentHeader& header,
                           std::optional<std::uint64_t> limit, const LogVisitor& visit,
                           std::uint64_t covered) {
  SegmentReading result;
  result.last_sequence = header.first_sequence - 1;
  result.bytes = result.whole_from = kFileHeaderBytes;
  const std::string_view counted = bytes.substr(0, limit.value_or(bytes.size()));
  while (result.bytes < counted.size()) {
    const std::uint64_t expected = result.last_sequence + 1;
    const std::string_view rest = counted.substr(result.bytes);
    const auto record = DecodeRecordHeader(rest, header.log_id);
    const bool mark = record && record->kind == RecordKind::kMark;
    const auto body = record && record->sequence == expected - (mark ? 1 : 0)
                          ? RecordBody(rest, *record, header.log_id)
                          : std::nullopt;
    if (!body && expected <= covered) {
      if (const auto next = FindRecord(counted, result.bytes, covered + 1, header.log_id)) {
        result.bytes = result.whole_from = *next;
        result.last_sequence = covered;
        continue;
      }
      if (!FindHeader(counted, result.bytes, covered + 1, header.log_id, false)) {
        result.bytes = result.whole_from = counted.size();
        result.last_sequence = covered;
        continue;
      }
    }
    if (!body) {
      if (limit || FindHeader(bytes, result.bytes, expected, header.log_id, true)) {
        result.status = Damaged(counted, result.bytes, expected, header.log_id);
      }
      return result;
    }
    if (!mark) {
      const auto entry = DecodeEntry(record->kind, *body);
      result.status =
          entry.ok()
              ? visit(record->sequence, *entry)
              : absl::DataLossError(absl::StrCat("offset ", result.bytes, ": record ", expected,
                                                 " is not understood: ", entry.status().message()));
      if (!result.status.ok()) return result;
      result.last_sequence = expected;
    }
    result.durable_sequence = std::max(result.durable_sequence, record->durable_sequence);
    result.bytes += RecordBytes(body->size());
  }
  if (limit && result.bytes != *limit) {
    result.status = absl::DataLossError(absl::StrCat(
        "the file ends after ", bytes.size(), " bytes, ", *limit, " were synced; record ",
        result.last_sequence + 1, " and those up to the next file are lost"));
  }
  return result;
}

void ScanRecords(std::string_view bytes, std::uint64_t from, std::uint64_t log_id,
                 const RecordVisitor& visit) {
  for (std::uint64_t at = from; at + kRecordHeaderBytes <= bytes.size();) {
    const std::string_view rest = bytes.substr(at);
    const auto header = DecodeRecordHeader(rest, log_id);
    const auto body = header ? RecordBody(rest, *header, log_id) : std::nullopt;
    if (header) visit(at, *header, body);
    at += body ? RecordBytes(header->body_bytes) : kRecordAlignment;
  }
}

namespace {

struct Segment {
  std::uint64_t number = 0;
  std::uint64_t file_bytes = 0;
  absl::StatusOr<SegmentHeader> header;
};

absl::StatusOr<std::vector<Segment>> ListSegments(FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  std::vector<Segment> segments;
  for (const std::string& name : *names) {
    const std::optional<std::uint64_t> number = SegmentNumber(name);
    if (!number) continue;
    const std::string path = folder + "/" + name;
    const absl::StatusOr<std::uint64_t> size = files.Size(path);
    if (!size.ok()) return size.status();
    const absl::StatusOr<std::string> bytes = files.Read(path, 0, kFileHeaderBytes);
    if (!bytes.ok()) return bytes.status();
    Segment segment{*number, *size, DecodeSegmentHeader(*bytes)};
    if (segment.header.ok() && segment.header->number != *number) {
      segment.header = absl::DataLossError(
          absl::StrCat("the header says that this is segment ", segment.header->number));
    }
    segments.push_back(std::move(segment));
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.number < b.number; });
  return segments;
}

class Reader {
 public:
  Reader(FileSystem& files, const std::string& folder, SnapshotCover cover, const LogVisitor& visit)
      : files_(files),
        folder_(folder),
        after_(cover.all),
        reaches_(std::max(cover.all, cover.reaches)),
        visit_(visit) {}

  LogReading Read() {
    absl::StatusOr<std::vector<Segment>> segments = ListSegments(files_, folder_);
    if (!segments.ok()) return {segments.status(), {}, {}, false, {}};
    segments_ = *std::move(segments);
    if (!segments_.empty()) end_.highest_number = segments_.back().number;
    end_.durable.sequence = end_.last_sequence = after_;
    absl::Status status = FindChain();
    // Of a chain with a fault nothing is read: what follows the snapshot is not there.
    if (status.ok()) status = ReadChain();
    // What is not in a chain with a fault may be in the one before it.
    if (status.ok() || reached_) NoteAbandoned();
    if (!status.ok() && !read_.empty()) read_.back().status = status;
    return {status, std::move(end_), std::move(unusable_), reached_, std::move(read_)};
  }

 private:
  const Segment* Find(std::uint64_t number) const {
    const auto at = std::lower_bound(
        segments_.begin(), segments_.end(), number,
        [](const Segment& segment, std::uint64_t n) { return segment.number < n; });
    return at != segments_.end() && at->number == number ? &*at : nullptr;
  }

  // Nothing is lost in a file of another version.
  absl::Status BadHeader(const Segment& segment, const std::string& lost) const {
    const absl::Status& status = segment.header.status();
    const std::string message =
        absl::StrCat(SegmentPath(folder_, segment.number), ": offset 0: ", status.message());
    return absl::Status(status.code(),
                        absl::IsDataLoss(status) ? absl::StrCat(message, "; ", lost) : message);
  }

  absl::Status FindChain() {
    if (segments_.empty()) {
      if (after_ == 0) return absl::OkStatus();
      return absl::DataLossError(absl::StrCat(folder_,
                                              ": there is no log, but there was one up to "
                                              "record ",
                                              after_, "; later records are lost"));
    }
    const Segment& last = segments_.back();
    if (!last.header.ok()) {
      unusable_ = {last.number};
      return BadHeader(last, "the records of this file are lost");
    }
    chain_ = {&last};
    end_.log_id = last.header->log_id;
    if (absl::Status status = FollowChain(); !status.ok()) {
      for (const Segment* segment : chain_) unusable_.push_back(segment->number);
      chain_.clear();
      return status;
    }
    std::reverse(chain_.begin(), chain_.end());
    FindOlder();
    return absl::OkStatus();
  }

  // From the last segment back to the one that holds the first record to be read.
  absl::Status FollowChain() {
    while (chain_.back()->header->first_sequence > after_ + 1) {
      const SegmentHeader& header = *chain_.back()->header;
      const Segment* previous =
          header.previous_number < header.number ? Find(header.previous_number) : nullptr;
      const std::string lost = absl::StrCat(
          "records ", after_ + 1, " to ", header.first_sequence - 1, " are lost, or some of them");
      if (previous == nullptr) {
        return absl::DataLossError(absl::StrCat(SegmentPath(folder_, header.previous_number),
                                                ": the segment is missing; ", lost));
      }
      if (!previous->header.ok()) {
        return BadHeader(*previous, lost);
      }
      if (previous->header->log_id != header.log_id ||
          previous->header->first_sequence > header.first_sequence) {
        return absl::DataLossError(absl::StrCat(SegmentPath(folder_, previous->number),
                                                ": the segment is of another log; ", lost));
      }
      chain_.push_back(previous);
    }
    return absl::OkStatus();
  }

  // Segments from before `after_` that are still there, for an older snapshot's sake.
  void FindOlder() {
    const SegmentHeader* at = &*chain_.front()->header;
    while (at->previous_number < at->number) {
      const Segment* previous = Find(at->previous_number);
      if (previous == nullptr || !previous->header.ok() || previous->header->log_id != at->log_id) {
        break;
      }
      at = &*previous->header;
      end_.segments.push_back({at->number, at->first_sequence});
    }
    std::reverse(end_.segments.begin(), end_.segments.end());
  }

  absl::Status ReadChain() {
    for (std::size_t i = 0; i < chain_.size(); ++i) {
      const bool last = i + 1 == chain_.size();
      const SegmentHeader& header = *chain_[i]->header;
      const auto limit = last ? std::nullopt : std::optional(chain_[i + 1]->header->previous_bytes);
      const std::string path = SegmentPath(folder_, header.number);
      const absl::StatusOr<std::string> bytes = files_.Read(path, 0, chain_[i]->file_bytes);
      if (!bytes.ok()) return bytes.status();
      const auto visit_new = [&](std::uint64_t sequence, const LogEntry& entry) {
        return sequence > after_ ? visit_(sequence, entry) : absl::OkStatus();
      };
      const SegmentReading reading = ReadSegment(*bytes, header, limit, visit_new, after_);
      if (reading.whole_from != kFileHeaderBytes) {
        end_.notes.push_back(absl::StrCat(path, ": damaged before offset ", reading.whole_from,
                                          "; not needed: the snapshot covers it"));
      }
      TakePrefix(*bytes, header, reading, last);
      read_.push_back({.number = header.number,
                       .file_bytes = bytes->size(),
                       .whole_bytes = reading.bytes,
                       .first_sequence = header.first_sequence,
                       .last_sequence = reading.last_sequence});
      reached_ = true;
      if (!reading.status.ok()) {
        AddUnusable(i + 1);
        return Named(reading.status, path);
      }
      const std::uint64_t next =
          last ? reading.last_sequence + 1 : chain_[i + 1]->header->first_sequence;
      const bool gap = !last && chain_[i + 1]->header->behind_gap;
      if (gap && reading.last_sequence + 1 < next) {
        end_.notes.push_back(absl::StrCat(path, ": behind record ", reading.last_sequence,
                                          " the log goes on with ", next,
                                          "; a repair told of what is between"));
      } else if (reading.last_sequence + 1 != next) {
        AddUnusable(i + 1);
        return absl::DataLossError(
            absl::StrCat(path, ": offset ", reading.bytes, ": record ", reading.last_sequence,
                         " is the last, but the next file begins with ", next));
      }
      if (last && reading.bytes < bytes->size()) {
        end_.notes.push_back(absl::StrCat(path, ": ", bytes->size() - reading.bytes,
                                          " bytes from offset ", reading.bytes,
                                          " are a record that was cut off; ignored"));
      }
    }
    if (!chain_.empty() && end_.last_sequence < after_) {
      AddUnusable(0);
      return absl::DataLossError(absl::StrCat(folder_, ": the log ends with record ",
                                              end_.last_sequence, ", but there was one up to ",
                                              after_, "; later records are lost"));
    }
    if (end_.last_sequence < reaches_) {
      return absl::DataLossError(absl::StrCat(
          folder_, ": the log ends with record ", end_.last_sequence,
          ", but the snapshot holds what came up to ", reaches_, "; later records are lost"));
    }
    return absl::OkStatus();
  }

  void AddUnusable(std::size_t from) {
    for (std::size_t i = from; i < chain_.size(); ++i) unusable_.push_back(chain_[i]->number);
  }

  // Of a segment with a successor, all is durable. Of the last, what its records say is, but not
  // the marks behind that; if they say nothing, not even its header may be, but what the header
  // says of its predecessor is true.
  void TakePrefix(std::string_view bytes, const SegmentHeader& header,
                  const SegmentReading& reading, bool last) {
    end_.last_sequence = reading.last_sequence;
    end_.durable = {header.previous_number, header.previous_bytes, header.first_sequence - 1};
    // One that is damaged before its first record is not needed either: what is behind cannot be
    // used.
    const bool nothing =
        !reading.status.ok() && reading.last_sequence < header.first_sequence && !header.behind_gap;
    if (!last && !nothing) end_.durable = {header.number, reading.bytes, reading.last_sequence};
    // A repair made it, with its name, and what is behind needs it.
    if (header.behind_gap && last) {
      end_.durable = {header.number, kFileHeaderBytes, header.first_sequence - 1};
    }
    // What the snapshot covers was durable.
    if (reading.whole_from != kFileHeaderBytes && last) {
      end_.durable = {header.number, reading.whole_from, after_};
    }
    for (std::uint64_t at = reading.whole_from; last && at < reading.bytes;) {
      const auto record = DecodeRecordHeader(bytes.substr(at), header.log_id);
      const std::size_t length = RecordBytes(record->body_bytes);
      if (record->kind != RecordKind::kMark) {
        if (record->sequence <= reading.durable_sequence) {
          end_.durable = {header.number, at + length, record->sequence};
        } else {
          end_.tail.emplace_back(bytes.substr(at, length));
        }
      }
      at += length;
    }
    if (end_.durable.segment == header.number) {
      end_.segments.push_back({header.number, header.first_sequence});
    }
  }

  void NoteAbandoned() {
    for (const Segment& segment : segments_) {
      const auto same = [&](const SegmentPlace& place) { return place.number == segment.number; };
      if (std::any_of(end_.segments.begin(), end_.segments.end(), same)) continue;
      end_.abandoned.push_back(segment.number);
      const bool read = std::find(chain_.begin(), chain_.end(), &segment) != chain_.end();
      if (!read) {
        end_.notes.push_back(
            absl::StrCat(SegmentPath(folder_, segment.number),
                         ": the segment is not part of the log any more; ignored"));
      }
    }
  }

  FileSystem& files_;
  const std::string& folder_;
  const std::uint64_t after_;
  const std::uint64_t reaches_;
  const LogVisitor& visit_;
  std::vector<Segment> segments_;
  std::vector<const Segment*> chain_;  // into segments_, ascending
  LogEnd end_;
  std::vector<std::uint64_t> unusable_;
  std::vector<SegmentCheck> read_;
  bool reached_ = false;
};

}  // namespace

LogReading ReadLogPrefix(FileSystem& files, const std::string& folder, SnapshotCover cover,
                         const LogVisitor& visit) {
  return Reader(files, folder, cover, visit).Read();
}

absl::StatusOr<LogEnd> ReadLog(FileSystem& files, const std::string& folder, SnapshotCover cover,
                               const LogVisitor& visit) {
  LogReading reading = ReadLogPrefix(files, folder, cover, visit);
  if (!reading.status.ok()) return reading.status;
  return std::move(reading.end);
}

}  // namespace tidemark::store
