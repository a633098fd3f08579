// Why a stream or a batch was refused: the `reason` of tidemark_ingest_refused_total, the same
// whichever protocol brought it.
//
// Most reasons follow from the code of the status. Those that share a code with another reason
// travel in the status itself, as a payload of one letter.
#ifndef TIDEMARK_SERVER_WINDOW_REFUSAL_H_
#define TIDEMARK_SERVER_WINDOW_REFUSAL_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace tidemark::server {

/// Reasons that a status carries; their values are the letters of the payload.
enum class Refusal : char {
  kBadFrame = 'f',      ///< the bytes of a message are malformed
  kBadName = 'n',       ///< found with the batch and not when its stream was opened
  kBadUtf8 = 'u',       ///< an item is not UTF-8
  kItemTooLarge = 'i',  ///< an item is longer than limits.max_item_bytes
  kTextLimit = 't',     ///< limits.max_text_bytes is reached
  kTypeMismatch = 'm',  ///< a batch contradicts itself or names no known type
  kMemoryLimit = 'y',   ///< limits.max_memory_bytes is reached
  kLog = 'l',           ///< the log's disk fails or is too far behind
  kProducer = 'p',      ///< it cannot be known whether the batch was taken in before
};

/// What was being done when it was refused.
enum class Attempt { kOpen, kBatch };

inline constexpr char kRefusalUrl[] = "tidemark.server.Refusal";

inline absl::Status WithRefusal(absl::Status status, Refusal refusal) {
  const char letter[] = {static_cast<char>(refusal), '\0'};
  status.SetPayload(kRefusalUrl, absl::Cord(letter));
  return status;
}

/// The reason, from the fixed set of Metrics::Refused. Never fails. REQUIRES: !status.ok().
inline std::string_view ReasonOf(const absl::Status& status, Attempt what) {
  if (const auto payload = status.GetPayload(kRefusalUrl)) {
    const std::string letter(*payload);
    switch (letter.empty() ? Refusal{} : static_cast<Refusal>(letter[0])) {
      case Refusal::kBadFrame:
        return "bad_frame";
      case Refusal::kBadName:
        return "bad_name";
      case Refusal::kBadUtf8:
        return "bad_utf8";
      case Refusal::kItemTooLarge:
        return "item_too_large";
      case Refusal::kTextLimit:
        return "text_limit";
      case Refusal::kMemoryLimit:
        return "memory_limit";
      case Refusal::kTypeMismatch:
        return "type_mismatch";
      case Refusal::kLog:
        return "log_unavailable";
      case Refusal::kProducer:
        return "unknown_producer";
    }
  }
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return "unknown_stream";
    case absl::StatusCode::kFailedPrecondition:
      return "type_mismatch";
    case absl::StatusCode::kResourceExhausted:
      return "stream_limit";
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "access";
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return "shutting_down";
    default:
      return what == Attempt::kOpen ? "bad_name" : "bad_value";
  }
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_REFUSAL_H_
