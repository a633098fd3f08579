// Logs: the shape of a line in both formats, and that no text from outside can break out of it.
#include "server/telemetry/log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::server {
namespace {

constexpr std::chrono::system_clock::time_point kNoon{
    std::chrono::microseconds{1'772'366'400'000'123}};  // 2026-03-01T12:00:00.000123Z

std::string Text(std::string_view message, std::initializer_list<LogField> fields = {}) {
  return FormatLogLine(LogFormat::kText, kNoon, LogLevel::kInfo, message, fields);
}
std::string Json(std::string_view message, std::initializer_list<LogField> fields = {}) {
  return FormatLogLine(LogFormat::kJson, kNoon, LogLevel::kInfo, message, fields);
}

TEST(Log, TextLine) {
  EXPECT_EQ(Text("listening", {{"protocol", "grpc"}, {"address", "127.0.0.1:7070"}}),
            "2026-03-01T12:00:00.000123Z info  listening protocol=grpc address=127.0.0.1:7070");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kNoon, LogLevel::kError, "lost", {}),
            "2026-03-01T12:00:00.000123Z error lost");
}

TEST(Log, JsonLine) {
  EXPECT_EQ(Json("ready", {{"port", 7070}, {"share", 0.5}, {"ok", true}, {"n", -1}, {"s", "a b"}}),
            R"({"time":"2026-03-01T12:00:00.000123Z","level":"info","message":"ready",)"
            R"("port":7070,"share":0.5,"ok":true,"n":-1,"s":"a b"})");
}

TEST(Log, NumbersKeepEveryDigit) {
  const std::string line = Json("n", {{"max", std::numeric_limits<std::uint64_t>::max()},
                                      {"min", std::numeric_limits<std::int64_t>::min()},
                                      {"nan", std::numeric_limits<double>::quiet_NaN()}});
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["max"].get<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parsed["min"].get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parsed["nan"], "nan") << "JSON has no such number";
}

TEST(Log, TextQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(
      Text("m", {{"a", "x y"}, {"b", "x=y"}, {"c", "say \"hi\""}, {"d", ""}, {"e", "ü"}}),
      "2026-03-01T12:00:00.000123Z info  m a=\"x y\" b=\"x=y\" c=\"say \\\"hi\\\"\" d=\"\" e=ü");
}

TEST(Log, TextMessageKeepsItsQuotes) {
  EXPECT_EQ(Text("cannot read \"a\\b\"\nnow"),
            "2026-03-01T12:00:00.000123Z info  cannot read \"a\\\\b\"\\nnow");
}

TEST(Log, ControlCharactersAndTerminalSequencesAreEscaped) {
  const std::string evil =
      "a\nb\r\x1b[2J\x7f\xc2\x9b"
      "31m";
  for (const std::string& line : {Text(evil, {{"k", evil}}), Json(evil, {{"k", evil}})}) {
    for (const char c : line) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f') << line;
    }
    EXPECT_EQ(line.find("\xc2\x9b"), std::string::npos) << line;
  }
  EXPECT_EQ(nlohmann::json::parse(Json("m", {{"k", evil}}))["k"], evil) << "nothing is lost";
}

TEST(Log, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_EQ(Text("m", {{"k", "a\xff\xfe"}}),
            "2026-03-01T12:00:00.000123Z info  m k=a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(nlohmann::json::parse(Json("m", {{"k", "a\xc3"}}))["k"], "a\xef\xbf\xbd");
}

TEST(Log, FormatDirectivesAreOrdinaryText) {
  EXPECT_EQ(Text("m", {{"k", "{}%s{0:n}"}}), "2026-03-01T12:00:00.000123Z info  m k={}%s{0:n}");
}

// Property: whatever bytes come in, a line is one line, and JSON parses with all its keys.
TEST(Log, AnyBytesGiveOneParsableLine) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string text = Text(bytes, {{"k", bytes}});
    ASSERT_EQ(text.find_first_of(std::string("\n\r\0\x1b\x7f", 5)), std::string::npos) << text;
    const auto parsed = nlohmann::json::parse(Json(bytes, {{"k", bytes}}), nullptr, false);
    ASSERT_FALSE(parsed.is_discarded());
    ASSERT_EQ(parsed.size(), 4u);
    ASSERT_EQ(parsed["k"], parsed["message"]);
  }
}

TEST(Log, WritesToStderrFromTheLeastLevelOn) {
  testing::internal::CaptureStderr();
  SetUpLog(LogLevel::kWarn, LogFormat::kJson);
  Log(LogLevel::kInfo, "too low");
  Log(LogLevel::kWarn, "{} %v", {{"k", "{}"}});
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  Log(LogLevel::kInfo, "as text");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.find("too low"), std::string::npos);
  const std::size_t end = written.find('\n');
  ASSERT_NE(end, std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(written.substr(0, end))["message"], "{} %v");
  EXPECT_TRUE(written.ends_with(" info  as text\n")) << written;
}

TEST(Log, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  testing::internal::CaptureStderr();
  SetUpLog(LogLevel::kInfo, LogFormat::kJson);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) Log(LogLevel::kInfo, "line", {{"thread", t}, {"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  std::istringstream written(testing::internal::GetCapturedStderr());
  int lines = 0;
  for (std::string line; std::getline(written, line); ++lines) {
    ASSERT_FALSE(nlohmann::json::parse(line, nullptr, false).is_discarded()) << line;
  }
  EXPECT_EQ(lines, kThreads * kLines);
}

TEST(Log, NamesOfLevelsAndFormats) {
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("error"), LogLevel::kError);
  EXPECT_EQ(ParseLogLevel("fatal"), std::nullopt);
  EXPECT_EQ(ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_TRUE(ParseLogFormat("auto").has_value());
  EXPECT_EQ(ParseLogFormat("xml"), std::nullopt);
}

}  // namespace
}  // namespace tidemark::server
