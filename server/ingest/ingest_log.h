// How ingest says something in the log without knowing the logger, and at most so often.
#ifndef TIDEMARK_SERVER_INGEST_INGEST_LOG_H_
#define TIDEMARK_SERVER_INGEST_INGEST_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/window/ingest_sink.h"

namespace tidemark::server {

enum class IngestLogLevel { kInfo, kWarning, kError };
/// One line without its end. Called from any ingest thread. Text from outside in it has been
/// escaped.
using LogFn = std::function<void(IngestLogLevel, std::string_view)>;

/// Passes on one message per interval and counts the others, so that a sender of nonsense cannot
/// fill the disk. Thread: any.
class LimitedLog {
 public:
  static constexpr RecordedTime kIntervalMicros = 1'000'000;

  explicit LimitedLog(LogFn log) : log_(std::move(log)) {}

  /// Whether a message at `now` would be passed on; if not it counts as suppressed, and the caller
  /// need not make its text.
  bool Admit(RecordedTime now) {
    if (!log_) return false;
    RecordedTime next = next_.load(std::memory_order_relaxed);
    // A clock that was set back far must not silence the log: a next time beyond one interval from
    // now cannot be ours.
    const bool due = now >= next || next > now + kIntervalMicros;
    if (due && next_.compare_exchange_strong(next, now + kIntervalMicros)) return true;
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  /// REQUIRES: Admit returned true for this message.
  void Write(IngestLogLevel level, std::string message) {
    if (const auto more = suppressed_.exchange(0, std::memory_order_relaxed); more > 0) {
      message += " (and " + std::to_string(more) + " like it since the last)";
    }
    log_(level, message);
  }

 private:
  const LogFn log_;
  std::atomic<RecordedTime> next_{INT64_MIN};
  std::atomic<std::uint64_t> suppressed_{0};
};

/// Text from outside, made fit for a log line: cut to `bytes_max`, control characters and bytes
/// above 126 as \xNN, quotes and backslashes escaped.
inline std::string Quotable(std::string_view text, std::size_t bytes_max = 80) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte > 126) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  if (text.size() > bytes_max) out += "...";
  return out;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_INGEST_LOG_H_
