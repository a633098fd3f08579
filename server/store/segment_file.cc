#include "server/store/segment_file.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tidemark::store {
namespace {

absl::Status WriteStart(WritableFile& file, const SegmentHeader& header,
                        std::span<const std::string_view> records) {
  absl::Status status = file.Write(0, EncodeSegmentHeader(header));
  std::uint64_t bytes = kFileHeaderBytes;
  for (const std::string_view record : records) {
    if (!status.ok()) return status;
    status = file.Write(bytes, record);
    bytes += record.size();
  }
  return status.ok() ? file.Sync() : status;
}

}  // namespace

std::string SegmentPath(const std::string& folder, std::uint64_t number) {
  return folder + "/" + SegmentName(number);
}

absl::StatusOr<std::unique_ptr<WritableFile>> CreateSegment(
    FileSystem& files, const std::string& folder, const SegmentHeader& header,
    std::span<const std::string_view> records) {
  const std::string path = SegmentPath(folder, header.number);
  if (header.number > kNumberMax || header.first_sequence > kNumberMax) {
    return absl::OutOfRangeError(
        absl::StrCat(path, ": the numbers of its file and its first record, ",
                     header.first_sequence, ", are to be at most ", kNumberMax));
  }
  const std::string temporary = path + ".tmp";
  absl::StatusOr<std::unique_ptr<WritableFile>> file = files.Create(temporary);
  if (absl::IsAlreadyExists(file.status())) {  // left by a process that was interrupted
    if (absl::Status status = files.Remove(temporary); !status.ok()) return status;
    file = files.Create(temporary);
  }
  if (!file.ok()) return file.status();
  absl::Status status = WriteStart(**file, header, records);
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    static_cast<void>(files.Remove(temporary));
    return status;
  }
  status = files.SyncFolder(folder);
  if (status.ok()) return file;
  static_cast<void>(files.Remove(path));
  return status;
}

}  // namespace tidemark::store
