// How a segment comes to be: whole under its name, or not at all.
#ifndef TIDEMARK_SERVER_STORE_SEGMENT_FILE_H_
#define TIDEMARK_SERVER_STORE_SEGMENT_FILE_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/store/file_system.h"
#include "server/store/log_format.h"

namespace tidemark::store {

/// A segment's path.
std::string SegmentPath(const std::string& folder, std::uint64_t number);

/// Creates the segment with its header and these records, synced before it gets its name, which is
/// synced, too. So a segment that supersedes another never does before it holds what it takes over.
/// Errors: OUT_OF_RANGE for numbers above kNumberMax, which nobody would read again; the file
/// system's; the file is then removed if that is possible, and if it is not it holds what it would
/// have held.
absl::StatusOr<std::unique_ptr<WritableFile>> CreateSegment(
    FileSystem& files, const std::string& folder, const SegmentHeader& header,
    std::span<const std::string_view> records);

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_SEGMENT_FILE_H_
