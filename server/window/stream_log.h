// What streams tell a log before they take something in, so that it can be done again after a
// crash: the side of it that streams see.
//
// A batch is told under its stream's lock, after everything that may refuse it and before anything
// changes. So the order of a stream's records is that in which it takes batches, which is all that
// the bytes of its summaries depend on; and what the log refuses leaves no trace in the stream.
#ifndef TIDEMARK_SERVER_WINDOW_STREAM_LOG_H_
#define TIDEMARK_SERVER_WINDOW_STREAM_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/window/ingest_sink.h"

namespace tidemark::server {

struct StreamSettings;

/// Which Append took a batch. The numbers are those of the log (docs/store_format.md).
enum class BatchForm : std::uint8_t {
  kPacked = 1,   ///< AppendPacked, AppendPairs
  kNumbers = 2,  ///< AppendNumbers
  kTexts = 3,    ///< AppendStrings, AppendStringPairs
};

/// A batch as it came, values that are refused one by one included. Views into the caller's bytes.
struct LoggedBatch {
  std::uint64_t stream_id = 0;
  ElementType element = ValueType::kFloat64;
  BatchForm form = BatchForm::kPacked;
  BatchStamp stamp = RecordedTime{0};
  std::size_t count = 0;                    ///< values
  std::span<const std::byte> values;        ///< packed; kNumbers: doubles; kTexts: none
  std::span<const std::string_view> texts;  ///< kTexts
  std::span<const std::byte> payloads;
};

/// A stream that the log knows now.
struct LoggedStream {
  std::uint64_t id = 0;
  std::uint64_t sequence = 0;  ///< of its record
};

/// A stream's image as records that only wait for their place in the log.
class PreparedState {
 public:
  virtual ~PreparedState() = default;
};

/// Thread: every method from any. Lifetime: outlives the streams' use.
/// Errors of those that log something, after which nothing is logged: UNAVAILABLE, to be tried
/// again, while the disk fails or the log is as far behind as it may be; INVALID_ARGUMENT for what
/// is too large.
class StreamLog {
 public:
  virtual ~StreamLog() = default;

  /// Before the stream has any batch.
  virtual absl::StatusOr<LoggedStream> Created(std::string_view name,
                                               const StreamSettings& settings) = 0;
  /// The same for a stream that begins with a state: `image` is what Stream::Image gave. Prepare
  /// logs nothing, and is where the time goes: callers have no lock then. Its error is
  /// INVALID_ARGUMENT. A state is logged once at most.
  virtual absl::StatusOr<std::unique_ptr<PreparedState>> Prepare(std::string_view image) = 0;
  virtual absl::StatusOr<LoggedStream> CreatedFrom(std::string_view name,
                                                   const StreamSettings& settings,
                                                   std::unique_ptr<PreparedState> state) = 0;
  /// After its last batch.
  virtual absl::Status Deleted(std::uint64_t stream_id) = 0;
  /// The record's sequence number, of these three.
  virtual absl::StatusOr<std::uint64_t> Batch(const LoggedBatch& batch) = 0;
  virtual absl::StatusOr<std::uint64_t> Subscribed(std::uint64_t stream_id, std::string_view name,
                                                   std::string_view request) = 0;
  virtual absl::StatusOr<std::uint64_t> Unsubscribed(std::uint64_t stream_id,
                                                     std::string_view name) = 0;

  /// Whether it refuses everything for now.
  virtual bool failing() const { return false; }
  /// Whether it has so much to write that sources should wait. Not while it fails: then they are
  /// told so.
  virtual bool behind() const { return false; }
  /// Calls `resume` once, when it has caught up, fails, or ends; from the log's thread or at once
  /// from this one.
  virtual void WhenCaughtUp(std::function<void()> resume) { resume(); }
  /// Of the last record.
  virtual std::uint64_t last_sequence() const = 0;
  /// See IngestSink::WhenDurable.
  virtual void WhenDurable(std::uint64_t sequence, IngestSink::Durable done) = 0;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_LOG_H_
