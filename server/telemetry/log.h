// Structured logs on stderr: one line for each event, as text or as a JSON object.
//
// A message is a constant of the program; whatever comes from outside goes into a field, and is
// never a format string. One event stays one line whatever its fields hold: control characters are
// escaped, bytes that are not UTF-8 become U+FFFD.
#ifndef TIDEMARK_SERVER_TELEMETRY_LOG_H_
#define TIDEMARK_SERVER_TELEMETRY_LOG_H_

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace tidemark::server {

enum class LogLevel { kDebug, kInfo, kWarn, kError };
enum class LogFormat { kText, kJson };

/// "debug", "info", "warn", "error"; nullopt for any other word.
std::optional<LogLevel> ParseLogLevel(std::string_view name);
/// "text", "json", and "auto": text if stderr is a terminal, JSON otherwise.
std::optional<LogFormat> ParseLogFormat(std::string_view name);

/// `key` names what the value is, with its unit last (`waited_ms`); not time, level or message.
struct LogField {
  std::string_view key;
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view> value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, std::floating_point auto v)
      : key(k), value(static_cast<double>(v)) {}
  LogField(std::string_view k, std::signed_integral auto v)
      : key(k), value(static_cast<std::int64_t>(v)) {}
  LogField(std::string_view k, std::unsigned_integral auto v)
      : key(k), value(static_cast<std::uint64_t>(v)) {}
};

/// Sets what is logged from now on, and how; before the first call: info and above, as text.
/// Thread: any, though main() calls it before it starts others.
void SetUpLog(LogLevel least, LogFormat format);

/// Writes one line, unless `level` is below the least level. The fields' text need not outlive the
/// call. Thread: any; lines of several threads do not mix. Errors: none; a line that stderr does
/// not take is lost.
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

/// The line that Log writes, without the newline at its end.
///   text  2026-03-01T12:00:00.000123Z info  listening protocol=grpc address=127.0.0.1:7070
///   json  {"time":"2026-03-01T12:00:00.000123Z","level":"info","message":"listening", ...}
/// In text, a value that holds a blank, a quote, "=" or an escaped character is quoted. A number
/// that JSON cannot hold (NaN, infinity) is written as text.
std::string FormatLogLine(LogFormat format, std::chrono::system_clock::time_point time,
                          LogLevel level, std::string_view message,
                          std::initializer_list<LogField> fields);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_TELEMETRY_LOG_H_
