#include "server/telemetry/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

namespace tidemark::server {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// `text` as a JSON string with its quotes. Beyond what JSON demands, DEL and the C1 controls
/// (U+0080 to U+009F, of which U+009B starts a terminal sequence) are escaped too.
std::string JsonString(std::string_view text) {
  const std::string dumped =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  out.reserve(dumped.size());
  for (std::size_t i = 0; i < dumped.size(); ++i) {
    const auto byte = static_cast<unsigned char>(dumped[i]);
    const auto next = static_cast<unsigned char>(i + 1 < dumped.size() ? dumped[i + 1] : 0);
    if (byte == 0x7f) {
      out += "\\u007f";
    } else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += dumped[i];
    }
  }
  return out;
}

std::string JsonValue(const LogField& field) {
  struct Visitor {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(std::uint64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const {
      return std::isfinite(v) ? fmt::format("{}", v) : fmt::format("\"{}\"", v);
    }
    std::string operator()(std::string_view v) const { return JsonString(v); }
  };
  return std::visit(Visitor{}, field.value);
}

/// In text, quotes are left out where the reader does not need them.
std::string TextValue(const LogField& field) {
  std::string json = JsonValue(field);
  if (json.size() <= 2 || json.front() != '"') return json;
  const std::string_view inside = std::string_view(json).substr(1, json.size() - 2);
  const bool plain = inside.find_first_of(" =\\\"") == std::string_view::npos;
  return plain ? std::string(inside) : json;
}

/// A message stands without quotes, so only what would break the line is escaped.
std::string TextMessage(std::string_view message) {
  const std::string json = JsonString(message);
  std::string out;
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {
    if (json[i] == '\\' && json[i + 1] == '"') continue;
    out += json[i];
    if (json[i] == '\\') out += json[++i];
  }
  return out;
}

spdlog::logger& Logger() {
  static spdlog::logger logger = [] {
    spdlog::logger made("tidemarkd", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    // Lines come complete from FormatLogLine; spdlog brings levels, the lock and the writing.
    made.set_pattern("%v");
    made.set_level(spdlog::level::info);
    made.flush_on(spdlog::level::trace);
    return made;
  }();
  return logger;
}

std::atomic<LogFormat> log_format = LogFormat::kText;

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (LevelName(level) == name) return level;
  }
  return std::nullopt;
}

std::optional<LogFormat> ParseLogFormat(std::string_view name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  if (name == "auto") return ::isatty(STDERR_FILENO) != 0 ? LogFormat::kText : LogFormat::kJson;
  return std::nullopt;
}

void SetUpLog(LogLevel least, LogFormat format) {
  Logger().set_level(SpdlogLevel(least));
  log_format.store(format, std::memory_order_relaxed);
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  spdlog::logger& logger = Logger();
  if (!logger.should_log(SpdlogLevel(level))) return;
  const std::string line = FormatLogLine(log_format.load(std::memory_order_relaxed),
                                         std::chrono::system_clock::now(), level, message, fields);
  // The overload for a view takes no format string.
  logger.log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

std::string FormatLogLine(LogFormat format, std::chrono::system_clock::time_point time,
                          LogLevel level, std::string_view message,
                          std::initializer_list<LogField> fields) {
  const auto since_1970 = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_1970);
  const auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(since_1970 - seconds).count();
  const std::string stamp =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                  fmt::gmtime(static_cast<std::time_t>(seconds.count())), microseconds);
  if (format == LogFormat::kText) {
    std::string line = fmt::format("{} {:<5} {}", stamp, LevelName(level), TextMessage(message));
    for (const LogField& field : fields) {
      line += fmt::format(" {}={}", field.key, TextValue(field));
    }
    return line;
  }
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":{})", stamp,
                                 LevelName(level), JsonString(message));
  for (const LogField& field : fields) {
    line += fmt::format(",{}:{}", JsonString(field.key), JsonValue(field));
  }
  return line + "}";
}

}  // namespace tidemark::server
