// What the command prints: JSON byte for byte, tables, plot, progress line; and what it reads from
// its arguments.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "client/tool/arguments.h"
#include "client/tool/json.h"
#include "client/tool/plot.h"
#include "client/tool/progress.h"
#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

using client::Value;
using namespace std::chrono_literals;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kTwo53 = std::uint64_t{1} << 53;

template <typename Answer>
Answer Header(const char* stream, std::uint64_t n, double epsilon) {
  Answer answer;
  answer.stream = stream;
  answer.n = n;
  answer.epsilon = epsilon;
  return answer;
}

TEST(Json, ContractOfTheAnswers) {
  auto quantiles = Header<client::QuantilesAnswer>("s", 22695, 0.001);
  quantiles.answers = {{0.5, {89.4}, 11340, 11355}};
  EXPECT_EQ(Dump(ToJson(quantiles)),
            R"({"stream":"s","n":22695,"epsilon":0.001,"answers":[{"phi":0.5,"value":89.4,)"
            R"("rank_low":11340,"rank_high":11355}]})");

  auto ranks = Header<client::RanksAnswer>("s", 22695, 0.001);
  ranks.answers = {{{89.4}, 11340, 11355}};
  EXPECT_EQ(Dump(ToJson(ranks)),
            R"({"stream":"s","n":22695,"epsilon":0.001,"answers":[{"value":89.4,)"
            R"("rank_low":11340,"rank_high":11355}]})");

  auto top = Header<client::HeavyHittersAnswer>("s", 10000, 0.0001);
  top.support = 0.01;
  top.items = {{{std::string("83.149.9.216")}, 181, 182}};
  EXPECT_EQ(Dump(ToJson(top)),
            R"({"stream":"s","n":10000,"epsilon":0.0001,"support":0.01,"items":[{"value":)"
            R"("83.149.9.216","count_low":181,"count_high":182}]})");

  auto counts = Header<client::CountsAnswer>("s", 10000, 0.0001);
  counts.items = {{{std::string("a")}, 3, 4}};
  EXPECT_EQ(Dump(ToJson(counts)),
            R"({"stream":"s","n":10000,"epsilon":0.0001,"items":[{"value":"a","count_low":3,)"
            R"("count_high":4}]})");

  client::StreamInfo stream;
  stream.name = "s";
  stream.config = {client::ValueType::kFloat64, 0.001, 0.0001};
  stream.count = 22695;
  EXPECT_EQ(Dump(ToJson(std::vector{stream})),
            R"({"streams":[{"name":"s","type":"float64","epsilon":0.001,"n":22695}]})");
  EXPECT_EQ(Dump(ToJson(std::vector<client::StreamInfo>())), R"({"streams":[]})");

  auto histogram = Header<client::HistogramAnswer>("s", 4, 0.001);
  histogram.buckets = {{std::nullopt, Value{1.5}, 1, 2}, {Value{1.5}, std::nullopt, 2, 3}};
  EXPECT_EQ(Dump(ToJson(histogram)),
            R"({"stream":"s","n":4,"epsilon":0.001,"buckets":[{"high":1.5,"count_low":1,)"
            R"("count_high":2},{"low":1.5,"count_low":2,"count_high":3}]})");

  client::WatchAnswer watch;
  watch.answer = quantiles;
  watch.skipped = 2;
  watch.time = std::chrono::system_clock::time_point(1'700'000'000'000'001us);
  EXPECT_EQ(Dump(ToJson(watch)),
            R"({"stream":"s","n":22695,"epsilon":0.001,"answers":[{"phi":0.5,"value":89.4,)"
            R"("rank_low":11340,"rank_high":11355}],"skipped":2,"time_us":1700000000000001})");
}

TEST(Json, Values) {
  const struct {
    Value value;
    const char* json;
  } kCases[] = {
      {{5.0}, "5.0"},
      {{kInf}, "\"inf\""},
      {{-kInf}, "\"-inf\""},
      {{0.1f}, "0.1"},
      {{3.4028235e38f}, "3.4028235e+38"},
      {{-std::numeric_limits<float>::infinity()}, "\"-inf\""},
      {{std::int64_t{-3}}, "-3"},
      {{static_cast<std::int64_t>(kTwo53 - 1)}, "9007199254740991"},
      {{-static_cast<std::int64_t>(kTwo53 - 1)}, "-9007199254740991"},
      {{-static_cast<std::int64_t>(kTwo53)}, "\"-9007199254740992\""},
      {{std::numeric_limits<std::int64_t>::min()}, "\"-9223372036854775808\""},
      {{kTwo53 - 1}, "9007199254740991"},
      {{kTwo53}, "\"9007199254740992\""},
      {{std::uint32_t{7}}, "7"},
      {{client::Ipv4{0x7F000001u}}, "\"127.0.0.1\""},
      {{std::string("a\"\n\xC3\xA9")}, "\"a\\\"\\n\xC3\xA9\""},
      {{std::string("\xFF")}, "\"\xEF\xBF\xBD\""},
  };
  for (const auto& c : kCases) EXPECT_EQ(Dump(ToJson(c.value)), c.json);
}

TEST(Text, TablesAreAligned) {
  auto quantiles = Header<client::QuantilesAnswer>("s", 1000, 0.001);
  quantiles.answers = {{0.5, {89.4}, 499, 501}, {0.999, {-1234.5}, 999, 999}};
  EXPECT_EQ(ToText(quantiles),
            "s: n 1000, epsilon 0.001\n"
            "  phi    value  rank_low  rank_high\n"
            "  0.5     89.4       499        501\n"
            "0.999  -1234.5       999        999\n");

  auto top = Header<client::HeavyHittersAnswer>("s", 1000, 0.001);
  top.support = 0.01;
  EXPECT_EQ(ToText(top), "s: n 1000, epsilon 0.001, support 0.01\nno item reaches the support\n");
  top.items = {{{std::string("\xC3\xA9t\xC3\xA9")}, 10, 11}, {{std::string("a\x1b[2Jb")}, 1, 2}};
  EXPECT_EQ(ToText(top),
            "s: n 1000, epsilon 0.001, support 0.01\n"
            "item       count_low  count_high   share\n"
            "\xC3\xA9t\xC3\xA9               10          11  1.10 %\n"
            "a\\x1b[2Jb          1           2  0.20 %\n");
  EXPECT_EQ(ToText(std::vector<client::StreamInfo>()), "no streams\n");
}

TEST(Text, PrintableHidesControlCharacters) {
  EXPECT_EQ(Printable("a\tb\nc\x7f\x1b"), "a\\tb\\nc\\x7f\\x1b");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(Printable("\xC2\xA9 \xE2\x82\xAC"), "\xC2\xA9 \xE2\x82\xAC");
}

TEST(Text, Rates) {
  EXPECT_EQ(ShowRate(0), "0");
  EXPECT_EQ(ShowRate(980), "980");
  EXPECT_EQ(ShowRate(999.6), "1.00 k");
  EXPECT_EQ(ShowRate(98'123), "98.1 k");
  EXPECT_EQ(ShowRate(3.214e6), "3.21 M");
  EXPECT_EQ(ShowRate(250e6), "250 M");
  EXPECT_EQ(ShowRate(1.2e15), "1200 T");
  EXPECT_EQ(ShowSeconds(0.3861), "386 ms");
  EXPECT_EQ(ShowSeconds(0.9996), "1.00 s");
  EXPECT_EQ(ShowSeconds(1.789), "1.79 s");
  EXPECT_EQ(ShowSeconds(12345.6), "12346 s");
}

TEST(Plot, BarsByCountAndByDensity) {
  auto histogram = Header<client::HistogramAnswer>("s", 30, 0.001);
  histogram.buckets = {{std::nullopt, Value{0.0}, 0, 0},
                       {Value{0.0}, Value{10.0}, 10, 10},
                       {Value{10.0}, std::nullopt, 20, 20}};
  const Terminal ascii{false, 60, false};
  // 60 columns less 41 for the numbers and 2 between leaves 17.
  EXPECT_EQ(Plot(histogram, Bars::kCount, ascii),
            "s: n 30, epsilon 0.001\n"
            "from above  up to  count_low  count_high  values\n"
            "                0          0           0\n"
            "         0     10         10          10  #########\n"
            "        10                20          20  ##################\n");

  auto depth = Header<client::HistogramAnswer>("s", 40, 0.001);
  depth.buckets = {{Value{0.0}, Value{10.0}, 10, 10},
                   {Value{10.0}, Value{30.0}, 10, 10},
                   {Value{30.0}, Value{30.0}, 10, 10},
                   {Value{30.0}, Value{kInf}, 10, 10}};
  EXPECT_EQ(Plot(depth, Bars::kDensity, ascii),
            "s: n 40, epsilon 0.001\n"
            "from above  up to  count_low  count_high  values per unit\n"
            "         0     10         10          10  ##################\n"
            "        10     30         10          10  #########\n"
            "        30     30         10          10  ##################\n"
            "        30    inf         10          10\n");
  // Strings, nothing at all, and a terminal narrower than the numbers still print.
  auto empty = Header<client::HistogramAnswer>("s", 0, 0.001);
  EXPECT_EQ(Plot(empty, Bars::kDensity, Terminal{false, 40, true}),
            "s: n 0, epsilon 0.001\nfrom above  up to  count_low  count_high  values per unit\n");
}

TEST(Plot, NoLineIsWiderThanTheTerminal) {
  auto histogram = Header<client::HistogramAnswer>("s", 1'000'000, 0.001);
  for (int i = 0; i < 50; ++i) {
    client::HistogramBucket& bucket = histogram.buckets.emplace_back();
    bucket.low.emplace().kind = i * 1.5;
    bucket.high.emplace().kind = i * 1.5 + 1.5;
    bucket.count_low = bucket.count_high = 20'000;
  }
  for (const bool utf8 : {false, true}) {
    for (std::size_t width = 60; width <= 200; width += 7) {
      for (const std::string& line :
           SplitList(Plot(histogram, Bars::kDensity, Terminal{false, width, utf8}), '\n')) {
        EXPECT_LE(DisplayWidth(line), width);
      }
    }
  }
}

TEST(Plot, Bar) {
  EXPECT_EQ(Bar(0, 10, true), "");
  EXPECT_EQ(Bar(1, 3, true), "███");
  EXPECT_EQ(Bar(0.5, 3, true), "█▌");
  EXPECT_EQ(Bar(1e-9, 3, true), "▏");
  EXPECT_EQ(Bar(1e-9, 3, false), "#");
  EXPECT_EQ(Bar(7, 3, false), "###");
}

TEST(Progress, OnlyOnATerminalAndNotTooOften) {
  Progress none(Terminal{false, 80, false}, 100);
  EXPECT_EQ(none.Update(10s, 50, 5), "");
  EXPECT_EQ(none.Clear(), "");

  Progress progress(Terminal{true, 80, false}, 1000);
  EXPECT_EQ(progress.Update(400ms, 10, 1), "");
  const std::string line = progress.Update(1s, 500, 3'000'000);
  EXPECT_EQ(line, "\r\x1b[K[" + std::string(20, '#') + std::string(20, ' ') +
                      "] 50 %  3.00 M values, 3.00 M values/s");
  EXPECT_EQ(DisplayWidth(line), 79u + 4) << "the last column stays free; 4 erase the line before";
  EXPECT_EQ(progress.Update(1050ms, 600, 4'000'000), "");
  EXPECT_NE(progress.Update(1101ms, 600, 4'000'000), "");
  EXPECT_EQ(progress.Clear(), "\r\x1b[K");
  EXPECT_EQ(progress.Clear(), "");

  Progress unknown(Terminal{true, 80, false}, std::nullopt);
  EXPECT_EQ(unknown.Update(2s, 500, 1000), "\r\x1b[K1.00 k values, 500 values/s");
}

TEST(Arguments, Durations) {
  EXPECT_EQ(ParseDuration("250ms"), 250'000us);
  EXPECT_EQ(ParseDuration("1s"), 1s);
  EXPECT_EQ(ParseDuration("1.5m"), 90s);
  EXPECT_EQ(ParseDuration("2h"), 2h);
  EXPECT_EQ(ParseDuration("7d"), 168h);
  EXPECT_EQ(ParseDuration("10us"), 10us);
  for (const char* bad :
       {"", "s", "5", "-1s", "0s", "nans", "infs", "1e300d", "1 s", "1w", "5ns"}) {
    EXPECT_FALSE(ParseDuration(bad)) << bad;
  }
}

TEST(Text, BoundsAreRoundedOutwards) {
  EXPECT_EQ(ShowBound(0.9999800000000001, Side::kHigh), "0.9999801");
  EXPECT_EQ(ShowBound(0.9999800000000001, Side::kLow), "0.99998");
  EXPECT_EQ(ShowBound(-29622.758918408646, Side::kLow), "-29622.76");
  EXPECT_EQ(ShowBound(-29622.751, Side::kHigh), "-29622.75");
  EXPECT_EQ(ShowBound(-0.0, Side::kHigh), "0");
  EXPECT_EQ(ShowBound(kInf, Side::kHigh), "inf");
  EXPECT_EQ(ShowBound(0.25, Side::kLow), "0.25");
  for (double value = 1e-300; std::abs(value) < 1e300; value *= -7.123456789) {
    const auto low = std::stod(ShowBound(value, Side::kLow));
    const auto high = std::stod(ShowBound(value, Side::kHigh));
    EXPECT_TRUE(low <= value && value <= high && high - low <= 2e-6 * std::abs(value)) << value;
  }
}

TEST(Arguments, NumbersWithAMinusPassTheParser) {
  const std::vector<std::string> given = {"rank", "-5", "-inf", "-.5", "-Infinity", "-5,0,5",
                                          "-",    "--", "-h",   "a-5", "--last",    ""};
  auto hidden = HideMinus(given);
  for (const std::size_t i : {1u, 2u, 3u, 4u, 5u}) EXPECT_EQ(hidden[i][0], kMinus) << given[i];
  for (const std::size_t i : {0u, 6u, 7u, 8u, 9u, 10u, 11u}) EXPECT_EQ(hidden[i], given[i]);
  for (std::string& text : hidden) text = ShowMinus(text);
  EXPECT_EQ(hidden, given);
}

TEST(Arguments, ListsAndValues) {
  EXPECT_EQ(SplitList("a,,b"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(SplitList(""), std::vector<std::string>{""});
  EXPECT_EQ(ParseValues(client::ValueType::kInt64, {"-5", "7"}),
            (std::vector<Value>{{std::int64_t{-5}}, {std::int64_t{7}}}));
  try {
    ParseValues(client::ValueType::kUint32, {"1", "-5"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "\"-5\" is not a value of type uint32, which the stream holds");
  }
}

}  // namespace
}  // namespace tidemark::tool
