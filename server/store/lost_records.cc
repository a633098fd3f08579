#include "server/store/lost_records.h"

#include <algorithm>
#include <unordered_set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/store/log_format.h"
#include "server/store/log_reader.h"

namespace tidemark::store {
namespace {

void Count(RecordKind kind, std::string_view body, LostRecords& lost) {
  const absl::StatusOr<LogEntry> entry = DecodeEntry(kind, body);
  if (!entry.ok()) return;
  ++lost.readable;
  if (std::holds_alternative<StreamCreated>(*entry)) ++lost.created;
  if (std::holds_alternative<StreamFromState>(*entry)) ++lost.created;
  if (std::holds_alternative<StreamDeleted>(*entry)) ++lost.deleted;
  if (const auto* batch = std::get_if<Batch>(&*entry)) {
    ++lost.batches;
    lost.values += batch->count;
  }
}

}  // namespace

absl::StatusOr<LostRecords> FindLostRecords(FileSystem& files, const std::string& folder,
                                            std::uint64_t kept, std::uint64_t reaches) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  std::vector<std::string> paths;
  std::uint64_t log_id = 0;  // that of the newest segment whose header can be read
  for (const std::string& name : *names) {
    if (!SegmentNumber(name)) continue;
    paths.push_back(folder + "/" + name);
    const absl::StatusOr<std::string> head = files.Read(paths.back(), 0, kFileHeaderBytes);
    if (!head.ok()) return head.status();
    if (const auto header = DecodeSegmentHeader(*head); header.ok()) log_id = header->log_id;
  }
  LostRecords lost{.kept = kept, .highest = std::max(kept, reaches)};
  if (log_id == 0) return lost;
  std::unordered_set<std::uint64_t> seen;
  for (const std::string& path : paths) {
    const absl::StatusOr<std::uint64_t> size = files.Size(path);
    if (!size.ok()) return size.status();
    const absl::StatusOr<std::string> bytes = files.Read(path, 0, *size);
    if (!bytes.ok()) return bytes.status();
    ScanRecords(
        *bytes, kFileHeaderBytes, log_id,
        [&](std::uint64_t, const RecordHeader& header, std::optional<std::string_view> body) {
          lost.highest = std::max({lost.highest, header.sequence, header.durable_sequence});
          if (header.kind == RecordKind::kMark || header.sequence <= kept || !body) return;
          if (seen.insert(header.sequence).second) Count(header.kind, *body, lost);
        });
  }
  return lost;
}

std::string LostRecords::Text() const {
  if (highest == kept) {
    return absl::StrCat("records of the log from ", kept + 1,
                        " on; how many there were is not known");
  }
  std::string text = highest == kept + 1
                         ? absl::StrCat("record ", highest, " of the log")
                         : absl::StrCat("records ", kept + 1, " to ", highest, " of the log");
  if (readable == 0) return text;
  absl::StrAppend(&text, "; of these ", readable, " can still be read (", batches, " batches of ",
                  values, " values");
  if (created != 0) absl::StrAppend(&text, ", ", created, " streams created");
  if (deleted != 0) absl::StrAppend(&text, ", ", deleted, " streams deleted");
  return text + "), but follow a gap";
}

}  // namespace tidemark::store
