// Lines of StatsD by themselves: numbers against std::from_chars, lines against a table, names of
// streams. What lines lead to is in statsd_batcher_test.cc, arbitrary bytes in tests/fuzz.
#include "server/ingest/statsd_parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <random>
#include <sstream>
#include <vector>

namespace tidemark::server {
namespace {

// The same, by from_chars alone.
bool ReferenceDecimal(std::string_view text, double& value, std::size_t& length) {
  const std::size_t skip = !text.empty() && text[0] == '+' ? 1 : 0;
  if (skip == 1 && text.size() > 1 && text[1] == '-') return false;
  const auto [stop, error] = std::from_chars(text.data() + skip, text.data() + text.size(), value);
  length = static_cast<std::size_t>(stop - text.data());
  return error == std::errc();
}

void ExpectLikeReference(const std::string& text) {
  double expected = 0;
  std::size_t length = 0;
  const bool ok = ReferenceDecimal(text, expected, length);
  double value = 0;
  const char* const stop = ParseDecimal(text.data(), text.data() + text.size(), value);
  ASSERT_EQ(stop != nullptr, ok) << '"' << text << '"';
  if (!ok) return;
  ASSERT_EQ(static_cast<std::size_t>(stop - text.data()), length) << '"' << text << '"';
  ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected))
      << '"' << text << "\": " << value << ", expected " << expected;
}

TEST(DecimalTest, HardTexts) {
  for (const char* text : {"",
                           "0",
                           "-0",
                           "+0",
                           "1",
                           "+1",
                           "-1",
                           "+-1",
                           "-+1",
                           "--1",
                           "++1",
                           "+",
                           "-",
                           ".",
                           "-.",
                           "1.",
                           ".5",
                           "-.5",
                           "1.5",
                           "00012",
                           "0.1",
                           "0.3",
                           "1e5",
                           "1E5",
                           "1e",
                           "1e+",
                           "1e-5",
                           "1.5e300",
                           "1e400",
                           "1e-400",
                           "5e-324",
                           "1.7976931348623157e308",
                           "9007199254740992",
                           "9007199254740993",
                           "9007199254740991",
                           "900719925474099.3",
                           "0.9007199254740993",
                           "18446744073709551615",
                           "18446744073709551616",
                           "99999999999999999999",
                           "1234567890123456789",
                           "0.000000000000000000001",
                           "0.0000000000000000001",
                           "123456789.123456789",
                           "inf",
                           "-inf",
                           "+inf",
                           "infinity",
                           "nan",
                           "NaN",
                           "-nan",
                           "in",
                           "0x10",
                           "1:2",
                           "1|ms",
                           "1.2.3",
                           "1,5",
                           " 1",
                           "1 "}) {
    ExpectLikeReference(text);
  }
}

TEST(DecimalTest, RandomTextsAreReadAsFromCharsReadsThem) {
  const std::uint64_t seed = 4711;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(i));
    std::string text;
    if (random() % 2 == 0) text += "+-"[random() % 2];
    const std::size_t whole = random() % 22;
    for (std::size_t d = 0; d < whole; ++d) text += static_cast<char>('0' + random() % 10);
    if (random() % 2 == 0) {
      text += '.';
      const std::size_t fraction = random() % 22;
      for (std::size_t d = 0; d < fraction; ++d) text += static_cast<char>('0' + random() % 10);
    }
    if (random() % 8 == 0) {
      text += 'e';
      text += std::to_string(static_cast<int>(random() % 700) - 350);
    }
    if (random() % 8 == 0) text += "|:x "[random() % 4];
    ExpectLikeReference(text);
    if (HasFatalFailure()) return;
  }
}

TEST(DecimalTest, PrintedDoublesComeBack) {
  const std::uint64_t seed = 815;
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100'000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (std::isnan(number)) continue;
    char text[64];
    const auto [stop, error] = std::to_chars(text, text + sizeof text, number);
    ASSERT_EQ(error, std::errc());
    double value = 0;
    ASSERT_EQ(ParseDecimal(text, stop, value), stop);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(number)) << number;
  }
}

// "name [tags] kind value,value @rate; kind value" or "error: ...".
std::string Describe(std::string_view text) {
  StatsdLine line;
  const StatsdError error = ParseStatsdLine(text, line);
  std::ostringstream out;
  if (error != StatsdError::kNone) {
    out << "error: " << StatsdErrorText(error);
    return out.str();
  }
  if (line.groups == 0) {
    out << StatsdKindName(line.kind);
    return out.str();
  }
  out << line.name;
  if (!line.tags.empty()) out << " [" << line.tags << ']';
  for (std::uint32_t i = 0; i < line.groups; ++i) {
    const StatsdGroup& group = line.group[i];
    out << (i > 0 ? "; " : " ") << StatsdKindName(group.kind) << ' ';
    if (group.kind == StatsdKind::kSet) {
      out << '\'' << group.values << '\'';
    } else {
      const char* separator = "";
      ForEachNumber(group, [&](double value, std::string_view written) {
        out << separator << value;
        if (written[0] == '+') out << " (signed)";
        separator = ",";
      });
    }
    if (group.rate != 1) out << " @" << group.rate;
  }
  if (line.fields_ignored > 0) {
    out << " ignored";
    std::uint32_t sum = 0;
    for (std::size_t field = 0; field < kStatsdFields; ++field) {
      const std::uint32_t count = line.fields_ignored_of[field];
      sum += count;
      for (std::uint32_t i = 0; i < count; ++i) {
        out << " " << StatsdFieldName(static_cast<StatsdField>(field));
      }
    }
    EXPECT_EQ(sum, line.fields_ignored) << text;
  }
  return out.str();
}

TEST(StatsdParserTest, LinesThatAreWellFormed) {
  const std::pair<const char*, const char*> cases[] = {
      {"a:1|c", "a counter 1"},
      {"a:1|ms", "a timer 1"},
      {"a:-1.5|h", "a histogram -1.5"},
      {"a:1e3|d", "a distribution 1000"},
      {"a:7|g", "a gauge 7"},
      {"a:+7|g", "a gauge 7 (signed)"},
      {"a:-7|g", "a gauge -7"},
      {"a:+5|ms", "a timer 5 (signed)"},
      {"a:user 17|s", "a set 'user 17'"},
      {"a:1|s", "a set '1'"},
      {"a:x:y:z|s", "a set 'x:y:z'"},
      {"a:|s", "a set ''"},
      {"a:1|c|@0.1", "a counter 1 @0.1"},
      {"a:1|ms|@1", "a timer 1"},
      {"a:1|c|#k:v,tag", "a [k:v,tag] counter 1"},
      {"a:1|c|@0.5|#k:v", "a [k:v] counter 1 @0.5"},
      {"a:1|c|#k:v|c:83c0a99c", "a [k:v] counter 1 ignored container"},
      {"a:1|c|#k:v|c:83c0a99c|T1656581400", "a [k:v] counter 1 ignored container timestamp"},
      {"a:1|c|T1656581400|#k:v", "a [k:v] counter 1 ignored timestamp"},
      {"a:1|c|e:it-false|card:low", "a counter 1 ignored external cardinality"},
      {"a:1|c|c:ci-9f,in-4026", "a counter 1 ignored container"},
      // Fields come in any order, and those that nobody knows yet lose nothing.
      {"a:1|c|#x:1|@0.5", "a [x:1] counter 1 @0.5"},
      {"a:1|c|c:83c0a99c|@0.5|T1656581400|#x:1",
       "a [x:1] counter 1 @0.5 ignored container timestamp"},
      {"a:1:2|d|T1656581400|@0.5", "a distribution 1,2 @0.5 ignored timestamp"},
      {"a:x|s|card:low|#k:v", "a [k:v] set 'x' ignored cardinality"},
      {"u:1|g|newfield:1", "u gauge 1 ignored other"},
      {"a:1|c|what", "a counter 1 ignored other"},
      {"a:1|c|", "a counter 1 ignored other"},
      {"a:1|c||#a", "a [a] counter 1 ignored other"},
      {"a:1|c|T", "a counter 1 ignored other"},
      {"a:1|c|Tx", "a counter 1 ignored other"},
      // The rate is that of the value before it, wherever it stands.
      {"a:1|c:200|ms|#x|@0.5", "a [x] counter 1; timer 200 @0.5"},
      {"a:1|c|@0.1:200|ms|#x|@0.5", "a [x] counter 1 @0.1; timer 200 @0.5"},
      {"a:1|c|#", "a counter 1"},
      {"a:1:2:3|d", "a distribution 1,2,3"},
      {"a:1:-2:3.5|d|@0.5|#x", "a [x] distribution 1,-2,3.5 @0.5"},
      {"foo:1|c:200|ms", "foo counter 1; timer 200"},
      {"foo:1|c|@0.1:200|ms|@0.5", "foo counter 1 @0.1; timer 200 @0.5"},
      {"foo:1:2|c:3|ms|#a:b", "foo [a:b] counter 1,2; timer 3"},
      {"foo:bar|s:200|ms", "foo set 'bar'; timer 200"},
      {"a.b-c_d/e:1|c", "a.b-c_d/e counter 1"},
      {"a:inf|ms", "a timer inf"},
      {"_e{5,4}:title|text", "event"},
      {"_e{5,4}:title|text|d:1|h:host|p:low|t:error|#a:b", "event"},
      {"_e{5,0}:title|", "event"},
      {"_sc|Redis connection|2", "service_check"},
      {"_sc|check|0|d:1|h:host|#a:b|m:fine", "service_check"},
      {"_e:1|c", "_e counter 1"},
      {"_scx:1|c", "_scx counter 1"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Describe(text), expected) << text;
}

TEST(StatsdParserTest, LinesThatAreNot) {
  const std::pair<const char*, StatsdError> cases[] = {
      {"a", StatsdError::kNoColon},
      {"a|c", StatsdError::kNoColon},
      {":1|c", StatsdError::kEmptyName},
      {":", StatsdError::kEmptyName},
      {"a:", StatsdError::kNoType},
      {"a:1", StatsdError::kNoType},
      {"a:1:2", StatsdError::kNoType},
      {"a:x", StatsdError::kNoType},
      {"a:1|", StatsdError::kUnknownType},
      {"a:1|x", StatsdError::kUnknownType},
      {"a:1|m", StatsdError::kUnknownType},
      {"a:1|mss", StatsdError::kUnknownType},
      {"a:1|cc", StatsdError::kUnknownType},
      {"a:1||c", StatsdError::kUnknownType},
      {"a:x|c", StatsdError::kNotANumber},
      {"a:|c", StatsdError::kNotANumber},
      {"a:1x|c", StatsdError::kNotANumber},
      {"a:1:|c", StatsdError::kNotANumber},
      {"a::1|c", StatsdError::kNotANumber},
      {"a:1:x|c", StatsdError::kNotANumber},
      {"a:0x10|c", StatsdError::kNotANumber},
      {"a:1e999|c", StatsdError::kNotANumber},
      {"a:1,5|c", StatsdError::kNotANumber},
      {"a: 1|c", StatsdError::kNotANumber},
      {"a:1|c|@", StatsdError::kBadRate},
      {"a:1|c|@0", StatsdError::kBadRate},
      {"a:1|c|@-1", StatsdError::kBadRate},
      {"a:1|c|@2", StatsdError::kBadRate},
      {"a:1|c|@nan", StatsdError::kBadRate},
      {"a:1|c|@0.5x", StatsdError::kBadRate},
      {"a:1|c|#a|@", StatsdError::kBadRate},
      {"a:1|c|#a|@2", StatsdError::kBadRate},
      {"a:1|c|#a|@0.5x", StatsdError::kBadRate},
      {"a:1|c|#a|#b", StatsdError::kRepeatedField},
      {"a:1|c|@0.5|@0.5", StatsdError::kRepeatedField},
      {"a:1|c|@1|#a|@0.5", StatsdError::kRepeatedField},
      {"a:1|c:2", StatsdError::kNoType},
      {"_e{5,4}:titl|text", StatsdError::kBadEvent},
      {"_e{5,4}:title", StatsdError::kBadEvent},
      {"_e{5,9}:title|text", StatsdError::kBadEvent},
      {"_e{0,4}:|text", StatsdError::kBadEvent},
      {"_e{5,3}:title|text", StatsdError::kBadEvent},
      {"_e{x,4}:title|text", StatsdError::kBadEvent},
      {"_e{18446744073709551615,18446744073709551615}:a|b", StatsdError::kBadEvent},
      {"_e{", StatsdError::kNoColon},
      {"_e{5", StatsdError::kBadEvent},
      {"_sc|", StatsdError::kBadServiceCheck},
      {"_sc||0", StatsdError::kBadServiceCheck},
      {"_sc|name", StatsdError::kBadServiceCheck},
      {"_sc|name|", StatsdError::kBadServiceCheck},
      {"_sc|name|4", StatsdError::kBadServiceCheck},
      {"_sc|name|00", StatsdError::kBadServiceCheck},
  };
  for (const auto& [text, expected] : cases) {
    StatsdLine line;
    EXPECT_EQ(StatsdErrorText(ParseStatsdLine(text, line)), StatsdErrorText(expected)) << text;
  }
}

TEST(StatsdParserTest, SixteenGroupsAndNoMore) {
  std::string text = "a";
  for (int i = 0; i < 16; ++i) text += ":1|c";
  StatsdLine line;
  EXPECT_EQ(ParseStatsdLine(text, line), StatsdError::kNone);
  EXPECT_EQ(line.groups, 16U);
  EXPECT_EQ(ParseStatsdLine(text + ":1|c", line), StatsdError::kTooManyGroups);
}

TEST(StatsdIdentityTest, TagsAreSortedQuotedAndEscaped) {
  const auto identity = [](std::string_view name, std::string_view tags) {
    std::string out;
    return StatsdIdentity(name, tags, out) ? out : "refused";
  };
  EXPECT_EQ(identity("a", ""), "a");
  EXPECT_EQ(identity("a", "b:1"), "a{b=\"1\"}");
  EXPECT_EQ(identity("a", "z:1,b:2"), "a{b=\"2\",z=\"1\"}");
  EXPECT_EQ(identity("a", "z:1,b:2"), identity("a", "b:2,z:1"));
  EXPECT_EQ(identity("a", "flag"), "a{flag=\"\"}");
  EXPECT_EQ(identity("a", "flag:"), "a{flag=\"\"}");
  EXPECT_EQ(identity("a", "k:2,k:1,k:2"), "a{k=\"1\",k=\"2\"}");
  EXPECT_EQ(identity("a", "url:http://x:80/"), "a{url=\"http://x:80/\"}");
  EXPECT_EQ(identity("a", "q:say \"hi\",p:c:\\d"), "a{p=\"c:\\\\d\",q=\"say \\\"hi\\\"\"}");
  EXPECT_EQ(identity("a", ",,b:1,,"), "a{b=\"1\"}");
  EXPECT_EQ(identity("näme", "k:wért"), "näme{k=\"wért\"}");
  // No two tag sets give one name: what could imitate the form is refused or escaped.
  EXPECT_EQ(identity("a{b=\"1\"}", ""), "refused");
  EXPECT_NE(identity("a", "b:1\",c=\"2"), identity("a", "b:1,c:2"));
  for (const char* name : {"", " ", "a b", "a\tb", "a|b", "a,b", "a\"b", "a{b", "a}b", "a\x7f"}) {
    EXPECT_EQ(identity(name, ""), "refused") << name;
  }
  for (const char* tags : {":v", "a b:v", "a=b:v", "a\"b:v", "a{:v", "ok:1,:v"}) {
    EXPECT_EQ(identity("a", tags), "refused") << tags;
  }
}

}  // namespace
}  // namespace tidemark::server
