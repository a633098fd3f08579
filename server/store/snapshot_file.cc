#include "server/store/snapshot_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tidemark::store {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kNameBytesMax = std::size_t{64} << 10;
// A larger blob is several records: half of the largest body leaves room for its name.
constexpr std::size_t kPartBytes = kBodyBytesMax / 2;
static_assert(kPartBytes + kNameBytesMax + 8 <= kBodyBytesMax);
constexpr std::size_t kBlobFixedBytes = 8;  // u32 bytes of the name, u32 flags

enum BlobFlags : std::uint32_t { kWhole = 0, kContinues = 1 };

absl::Status Damage(const std::string& path, std::uint64_t offset, std::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": offset ", offset, ": ", std::string(what),
                                          "; the snapshot is of no use"));
}

// Reads one snapshot's records in order.
class SnapshotReader {
 public:
  SnapshotReader(FileSystem& files, std::string path, std::uint64_t number)
      : files_(files), path_(std::move(path)), number_(number) {}

  absl::StatusOr<SnapshotHeader> Read(const BlobVisitor& visit) {
    const absl::StatusOr<std::uint64_t> size = files_.Size(path_);
    if (!size.ok()) return size.status();
    size_ = *size;
    const absl::StatusOr<std::string> bytes = files_.Read(path_, 0, kFileHeaderBytes);
    if (!bytes.ok()) return bytes.status();
    const absl::StatusOr<SnapshotHeader> header = DecodeSnapshotHeader(*bytes);
    if (!header.ok()) {
      return absl::Status(header.status().code(),
                          absl::StrCat(path_, ": offset 0: ", header.status().message()));
    }
    if (header->number != number_) {
      return Damage(path_, 0, absl::StrCat("the header is that of snapshot ", header->number));
    }
    at_ = kFileHeaderBytes;
    for (;;) {
      absl::StatusOr<bool> more = ReadBlob(visit);
      if (!more.ok()) return more.status();
      if (*more) continue;
      SnapshotHeader whole = *header;
      whole.log_reaches = std::max(whole.log_position, log_reaches_);
      return whole;
    }
  }

 private:
  // False at the end.
  absl::StatusOr<bool> ReadBlob(const BlobVisitor& visit) {
    std::string name;
    std::string blob;
    for (bool first = true;; first = false) {
      const std::uint64_t offset = at_;
      RecordKind kind{};
      const absl::StatusOr<std::string> body = ReadRecord(kind);
      if (!body.ok()) return body.status();
      if (kind == RecordKind::kSnapshotEnd && first) {
        // The first snapshots had nothing in it.
        if ((!body->empty() && body->size() != sizeof log_reaches_) || at_ != size_) {
          return Damage(path_, at_, "there is more behind the end");
        }
        if (!body->empty()) log_reaches_ = GetU64(*body, 0);
        if (log_reaches_ >= kNumberMax) {
          return Damage(path_, offset, "it holds effects of a record that cannot be");
        }
        return false;
      }
      const std::string_view view = *body;
      if (kind != RecordKind::kSnapshotBlob || view.size() < kBlobFixedBytes ||
          GetU32(view, 0) > view.size() - kBlobFixedBytes || GetU32(view, 4) > kContinues ||
          (!first && view.substr(kBlobFixedBytes, GetU32(view, 0)) != name)) {
        return Damage(path_, offset, "the record is none of a snapshot");
      }
      name = view.substr(kBlobFixedBytes, GetU32(view, 0));
      blob.append(view.substr(kBlobFixedBytes + name.size()));
      if (GetU32(view, 4) == kWhole) break;
    }
    if (absl::Status status = visit(name, blob); !status.ok()) return status;
    return true;
  }

  absl::StatusOr<std::string> ReadRecord(RecordKind& kind) {
    const absl::StatusOr<std::string> head = files_.Read(path_, at_, kRecordHeaderBytes);
    if (!head.ok()) return head.status();
    const auto header = DecodeRecordHeader(*head, number_);
    if (!header || header->sequence != records_ + 1 || header->durable_sequence != 0) {
      return Damage(path_, at_,
                    head->size() < kRecordHeaderBytes ? "the file is cut off"
                                                      : "the header of a record is damaged");
    }
    const std::size_t bytes = RecordBytes(header->body_bytes);
    if (bytes > size_ - at_) return Damage(path_, at_, "the file is cut off");
    absl::StatusOr<std::string> record = files_.Read(path_, at_, bytes);
    if (!record.ok()) return record.status();
    if (!RecordBody(*record, *header, number_)) {
      return Damage(path_, at_, "a record is damaged: its checksum does not fit");
    }
    kind = header->kind;
    at_ += bytes;
    ++records_;
    record->erase(0, kRecordHeaderBytes);
    record->resize(header->body_bytes);
    return record;
  }

  FileSystem& files_;
  const std::string path_;
  const std::uint64_t number_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t log_reaches_ = 0;
};

// Numbers of the snapshots in a folder, the highest first.
absl::StatusOr<std::vector<std::uint64_t>> SnapshotNumbers(FileSystem& files,
                                                           const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : *names) {
    if (const auto number = SnapshotNumber(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

absl::Status IgnoreBlob(std::string_view, std::string_view) { return absl::OkStatus(); }

}  // namespace

std::string SnapshotWriter::Path() const { return folder_ + "/" + SnapshotName(header_.number); }

std::string SnapshotWriter::TemporaryPath() const { return Path().append(kTemporarySuffix); }

absl::StatusOr<SnapshotWriter> SnapshotWriter::Begin(FileSystem& files, const std::string& folder,
                                                     std::uint64_t number,
                                                     std::uint64_t log_position) {
  SnapshotWriter writer(files, folder, {.number = number, .log_position = log_position});
  const std::string path = writer.TemporaryPath();
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files.Create(path);
  if (absl::IsAlreadyExists(file.status())) {  // left by a writer that was interrupted
    if (absl::Status status = files.Remove(path); !status.ok()) return status;
    file = files.Create(path);
  }
  if (!file.ok()) return file.status();
  writer.file_ = *std::move(file);
  writer.buffer_ = EncodeSnapshotHeader(writer.header_);
  return writer;
}

SnapshotWriter::~SnapshotWriter() {
  if (!file_) return;
  file_.reset();
  static_cast<void>(files_->Remove(TemporaryPath()));
}

absl::Status SnapshotWriter::AddRecord(RecordKind kind,
                                       std::initializer_list<std::string_view> parts) {
  UnnumberedRecord record = MakeRecord(kind, header_.number, parts);
  record.header.sequence = ++records_;
  NumberRecord(record, header_.number);
  buffer_.append(record.bytes);
  return buffer_.size() < kBufferBytes ? absl::OkStatus() : FlushBuffer();
}

absl::Status SnapshotWriter::FlushBuffer() {
  if (absl::Status status = file_->Write(written_, buffer_); !status.ok()) return status;
  written_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status SnapshotWriter::Add(std::string_view name, std::string_view blob) {
  if (name.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a blob's name has ", name.size(),
                                                   " bytes; expected at most ", kNameBytesMax));
  }
  for (;;) {
    const std::string_view part = blob.substr(0, kPartBytes);
    blob.remove_prefix(part.size());
    std::string fixed;
    PutU32(fixed, static_cast<std::uint32_t>(name.size()));
    PutU32(fixed, blob.empty() ? kWhole : kContinues);
    if (absl::Status status = AddRecord(RecordKind::kSnapshotBlob, {fixed, name, part});
        !status.ok() || blob.empty()) {
      return status;
    }
  }
}

absl::Status SnapshotWriter::Finish(std::uint64_t log_reaches) {
  std::string reaches;
  PutU64(reaches, std::max(header_.log_position, log_reaches));
  absl::Status status = AddRecord(RecordKind::kSnapshotEnd, {reaches});
  if (status.ok()) status = FlushBuffer();
  if (status.ok()) status = file_->Sync();
  if (status.ok()) status = files_->Rename(TemporaryPath(), Path());
  if (!status.ok()) return status;
  file_.reset();
  return files_->SyncFolder(folder_);
}

absl::StatusOr<SnapshotHeader> ReadSnapshot(FileSystem& files, const std::string& folder,
                                            std::uint64_t number, const BlobVisitor& visit) {
  return SnapshotReader(files, folder + "/" + SnapshotName(number), number).Read(visit);
}

absl::StatusOr<std::vector<SnapshotInfo>> CheckSnapshots(FileSystem& files,
                                                         const std::string& folder) {
  const absl::StatusOr<std::vector<std::uint64_t>> numbers = SnapshotNumbers(files, folder);
  if (!numbers.ok()) return numbers.status();
  std::vector<SnapshotInfo> infos;
  for (const std::uint64_t number : *numbers) {
    SnapshotInfo info;
    info.header.number = number;
    info.bytes = files.Size(folder + "/" + SnapshotName(number)).value_or(0);
    const auto count = [&](std::string_view, std::string_view) {
      ++info.blobs;
      return absl::OkStatus();
    };
    const absl::StatusOr<SnapshotHeader> header = ReadSnapshot(files, folder, number, count);
    info.status = header.status();
    if (header.ok()) info.header = *header;
    infos.push_back(std::move(info));
  }
  return infos;
}

absl::StatusOr<ChosenSnapshot> NewestSnapshot(FileSystem& files, const std::string& folder) {
  const absl::StatusOr<std::vector<std::uint64_t>> numbers = SnapshotNumbers(files, folder);
  if (!numbers.ok()) return numbers.status();
  ChosenSnapshot chosen;
  if (numbers->empty()) return chosen;
  chosen.highest_number = numbers->front();
  absl::Status first_error;
  for (const std::uint64_t number : *numbers) {
    const absl::StatusOr<SnapshotHeader> header = ReadSnapshot(files, folder, number, IgnoreBlob);
    if (header.ok()) {
      chosen.header = *header;
      return chosen;
    }
    if (!absl::IsDataLoss(header.status())) return header.status();
    first_error.Update(header.status());
    chosen.notes.emplace_back(header.status().message());
  }
  return first_error;
}

absl::Status RemoveSnapshotsBefore(FileSystem& files, const std::string& folder,
                                   std::uint64_t number) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.status();
  absl::Status status;
  for (const std::string& name : *names) {
    std::string_view base = name;
    const bool temporary = base.ends_with(kTemporarySuffix);
    if (temporary) base.remove_suffix(kTemporarySuffix.size());
    const auto found = SnapshotNumber(base);
    if (found && (temporary || *found < number)) status.Update(files.Remove(folder + "/" + name));
  }
  return status;
}

}  // namespace tidemark::store
