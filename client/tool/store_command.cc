#include "client/tool/store_command.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tool/arguments.h"
#include "client/tool/store_json.h"
#include "client/tool/text.h"
#include "server/store/file_system.h"
#include "server/store/folder_lock.h"
#include "server/store/store_check.h"
#include "server/store/store_dump.h"

namespace tidemark::tool {
namespace {

// Its value. Errors: InputError.
template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) throw InputError(Printable(std::string(result.status().message())));
  return *std::move(result);
}

// The folder in which the daemon keeps its store.
std::string StoreFolder(const std::string& data_dir) {
  const std::string folder = data_dir + "/store";
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return folder;
  if (error && error != std::errc::no_such_file_or_directory) {
    throw InputError("cannot look at " + Printable(folder) + ": " + error.message());
  }
  throw InputError("there is no store in " + Printable(data_dir) +
                   ": expected the data folder of a daemon with --durability log or snapshot, "
                   "which has a folder \"store\"");
}

std::string Range(std::uint64_t first, std::uint64_t last) {
  if (last < first) return "no record";
  if (first == last) return "record " + std::to_string(first);
  return "records " + std::to_string(first) + " to " + std::to_string(last);
}

std::string SnapshotHolds(const store::SnapshotInfo& snapshot) {
  if (!snapshot.status.ok()) return "";
  std::string holds = std::to_string(snapshot.blobs == 0 ? 0 : snapshot.blobs - 1) + " streams";
  if (snapshot.header.log_position != 0) {
    holds += ", up to record " + std::to_string(snapshot.header.log_position);
  }
  return holds;
}

// `last`: of the log.
std::string SegmentState(const store::SegmentReport& segment, bool last) {
  if (segment.use == store::SegmentUse::kNone) return "not part of the log any more";
  const bool older = segment.use == store::SegmentUse::kOlder;
  if (!segment.check.status.ok()) {
    const std::string from =
        segment.check.whole_bytes == 0
            ? "damaged"
            : "damaged from offset " + std::to_string(segment.check.whole_bytes) + " on";
    return older ? from + ", covered by a snapshot" : from;
  }
  if (segment.check.whole_bytes < segment.check.file_bytes) {
    return "whole up to offset " + std::to_string(segment.check.whole_bytes) +
           (last ? ", then a write that was cut off" : ", what is behind it counts for nothing");
  }
  return older ? "whole, covered by a snapshot" : "whole";
}

std::string Lines(const std::string& heading, const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += heading + Printable(line) + "\n";
  return out;
}

std::string ToText(const store::StoreReport& report) {
  Table table({"file", "bytes", "holds", "state"}, {false, true, false, false});
  for (const store::SnapshotInfo& snapshot : report.snapshots) {
    table.Add({store::SnapshotName(snapshot.header.number), std::to_string(snapshot.bytes),
               SnapshotHolds(snapshot), snapshot.status.ok() ? "whole" : "damaged"});
  }
  for (const store::SegmentReport& segment : report.segments) {
    const store::SegmentCheck& check = segment.check;
    table.Add({store::SegmentName(check.number), std::to_string(check.file_bytes),
               check.whole_bytes == 0 ? "" : Range(check.first_sequence, check.last_sequence),
               SegmentState(segment, &segment == &report.segments.back())});
  }
  for (const std::string& name : report.others) {
    table.Add({Printable(name), "", "", "not used"});
  }
  std::string out = table.ToString();
  out += Lines("note: ", report.notes);
  out += Lines("damaged: ", report.faults);
  out += Lines("lost: ", report.lost);
  out += Lines("a repair: ", report.actions);
  if (report.ok()) {
    out += "whole: a daemon starts from it" +
           (report.last_sequence == 0
                ? std::string()
                : ", with all records of the log up to " + std::to_string(report.last_sequence)) +
           "\n";
  }
  return out;
}

class DumpLines final : public store::StoreVisitor {
 public:
  DumpLines(bool values, std::ostream& out) : values_(values), out_(out) {}
  bool damaged() const { return damaged_; }

  void Snapshot(const store::SnapshotInfo& snapshot) override { Line(ToJson(snapshot)); }
  void Blob(const store::SnapshotInfo& snapshot, std::string_view name,
            std::string_view blob) override {
    Line(BlobToJson(snapshot, name, blob));
  }
  void Record(std::uint64_t segment, std::uint64_t offset, const store::RecordHeader& header,
              std::string_view body, bool behind_damage) override {
    Json record = RecordToJson(segment, offset, header, body, values_);
    if (behind_damage) record["behind_damage"] = true;
    Line(record);
  }
  void Note(std::string_view note) override {
    Line({{"kind", "note"}, {"message", std::string(note)}});
  }
  void Fault(std::string_view fault) override {
    damaged_ = true;
    Line({{"kind", "fault"}, {"message", std::string(fault)}});
  }

 private:
  void Line(const Json& json) { out_ << Dump(json) << "\n"; }

  const bool values_;
  std::ostream& out_;
  bool damaged_ = false;
};

}  // namespace

void AddStoreCommands(CLI::App& app, StoreOptions& options,
                      const std::function<void(StoreCommand)>& chosen) {
  CLI::App* store = app.add_subcommand(
      "store", "A daemon's data folder, while no daemon uses it: verify, dump, repair");
  store->require_subcommand(1)->fallthrough();
  const auto add = [&](const char* name, const char* description, StoreCommand run) {
    CLI::App* command = store->add_subcommand(name, description);
    command->fallthrough();
    command->callback([chosen, run] { chosen(run); });
    command->add_option("DATA_DIR", options.data_dir, "The daemon's data folder")
        ->required()
        ->option_text(" ");
    return command;
  };
  add("verify", "What of it is whole, what is damaged, and what is lost with that", RunStoreVerify);
  add("dump", "Snapshots and the log's records, a line of JSON each", RunStoreDump)
      ->add_flag("--values", options.values, "The values of batches, too");
  add("repair", "Make it one that a daemon starts from; damaged files are set aside",
      RunStoreRepair)
      ->add_flag("--yes", options.yes, "Do it (default: say what would be done)");
}

int RunStoreVerify(const StoreOptions& options, bool json, const Environment& environment) {
  const std::string folder = StoreFolder(options.data_dir);
  const store::FolderLock lock = Must(store::FolderLock::TakeToRead(options.data_dir));
  const store::StoreReport report = Must(store::VerifyStore(store::PosixFileSystem(), folder));
  environment.out << (json ? Dump(ToJson(report)) + "\n" : ToText(report));
  return report.ok() ? kDone : kRefused;
}

int RunStoreDump(const StoreOptions& options, bool, const Environment& environment) {
  const std::string folder = StoreFolder(options.data_dir);
  const store::FolderLock lock = Must(store::FolderLock::TakeToRead(options.data_dir));
  DumpLines lines(options.values, environment.out);
  const absl::Status dumped = store::DumpStore(store::PosixFileSystem(), folder, lines);
  if (!dumped.ok()) throw InputError(Printable(std::string(dumped.message())));
  return lines.damaged() ? kRefused : kDone;
}

int RunStoreRepair(const StoreOptions& options, bool json, const Environment& environment) {
  if (!options.yes) {
    const int status = RunStoreVerify(options, json, environment);
    if (status != kDone && !json) {
      environment.out << "nothing was changed; with --yes it is repaired\n";
    }
    return status;
  }
  const std::string folder = StoreFolder(options.data_dir);
  const store::FolderLock lock = Must(store::FolderLock::Take(options.data_dir));
  const store::RepairReport report = Must(store::RepairStore(store::PosixFileSystem(), folder));
  if (json) {
    environment.out << Dump({{"faults", report.faults},
                             {"lost", report.lost},
                             {"repaired", report.actions}})
                    << "\n";
    return kDone;
  }
  environment.out << Lines("damaged: ", report.faults) << Lines("lost: ", report.lost)
                  << Lines("repaired: ", report.actions)
                  << (report.faults.empty() ? "nothing is damaged, and nothing was changed\n"
                                            : "a daemon starts from it now\n");
  return kDone;
}

}  // namespace tidemark::tool
