// Lines, CSV fields and values cut out of input.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "client/tool/arguments.h"
#include "client/tool/text_values.h"

namespace tidemark::tool {
namespace {

using client::ValueType;

class Input : public testing::Test {
 protected:
  Input() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tidemark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Input() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& content) {
    const std::string path = (folder_ / "in.txt").string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::vector<std::string> Lines(const std::string& content, bool csv = false) {
    ByteSource source(File(content), -1, -1);
    LineReader reader(&source, csv);
    std::vector<std::string> out;
    std::string_view line;
    while (reader.Next(&line)) out.emplace_back(line);
    return out;
  }
  std::vector<std::string> Texts(const std::string& content, ValueType type,
                                 std::optional<std::string> column = std::nullopt) {
    ByteSource source(File(content), -1, -1);
    TextValues values(&source, type, column);
    std::vector<std::string> out;
    std::string_view text;
    while (values.Next(&text)) out.emplace_back(values.column_missing() ? "<none>" : text);
    return out;
  }

  std::filesystem::path folder_;
};

using Strings = std::vector<std::string>;

TEST_F(Input, Lines) {
  EXPECT_EQ(Lines(""), Strings{});
  EXPECT_EQ(Lines("a"), Strings{"a"});
  EXPECT_EQ(Lines("a\n"), Strings{"a"});
  EXPECT_EQ(Lines("a\n\nb\r\nc"), (Strings{"a", "", "b", "c"}));
  EXPECT_EQ(Lines("a,\"x\ny\",b\nc\n"), (Strings{"a,\"x", "y\",b", "c"}));
  EXPECT_EQ(Lines("a,\"x\ny\",b\nc\n", true), (Strings{"a,\"x\ny\",b", "c"}));
}

// Lines of all lengths around the buffer's size come out as std::getline gives them.
TEST_F(Input, LinesAcrossBuffers) {
  const std::uint32_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::string content;
  Strings expected;
  for (int i = 0; i < 40; ++i) {
    const std::size_t length = i % 4 == 0 ? 500'000 + random() % 50'000 : random() % 100'000;
    expected.push_back(std::string(length, static_cast<char>('a' + i % 26)));
    content += expected.back() + "\n";
  }
  EXPECT_EQ(Lines(content), expected);
  EXPECT_EQ(Lines(content, true), expected);
}

TEST_F(Input, LineWithoutEnd) {
  try {
    Lines(std::string(kMaxLineBytes + 1, 'x'));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(":1: longer than 16777216 bytes"), std::string::npos)
        << error.what();
  }
}

TEST_F(Input, LineNumbersCountEveryLineOfTheFile) {
  ByteSource source(File("a\n\"b\nc\"\nd\n"), -1, -1);
  LineReader reader(&source, true);
  std::string_view line;
  std::vector<std::uint64_t> numbers;
  while (reader.Next(&line)) numbers.push_back(reader.line_number());
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2, 4}));
}

// Only a field that begins with a quote is quoted: what the records are cut by and what the fields
// are cut by must agree, or lines are lost in their neighbours.
TEST_F(Input, AQuoteInsideAFieldDoesNotJoinLines) {
  EXPECT_EQ(Lines("5\" nail,3\n6\" nail,4\n", true), (Strings{"5\" nail,3", "6\" nail,4"}));
  EXPECT_EQ(Lines("5\" nail\nx\n", true), (Strings{"5\" nail", "x"}));
  EXPECT_EQ(Lines("\"a\"\"\nb\",1\n", true), Strings{"\"a\"\"\nb\",1"});
  EXPECT_EQ(Lines("\"a\"b\"\nc\n", true), (Strings{"\"a\"b\"", "c"}));
  EXPECT_EQ(Texts("5\" nail,3\n6\" nail,4\n", ValueType::kFloat64, "2"), (Strings{"3", "4"}));
}

TEST_F(Input, AQuotedFieldThatIsNeverClosedIsAnErrorWithItsLine) {
  const std::string path = File("name,n\na,1\n\"b,2\nc,3\n");
  ByteSource source(path, -1, -1);
  TextValues values(&source, ValueType::kString, "name");
  std::string_view text;
  ASSERT_TRUE(values.Next(&text));
  EXPECT_EQ(text, "a");
  try {
    values.Next(&text);
    FAIL() << "the rest of the file became one item: " << text;
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), path + ":3: a quoted field begins in this record and is never closed");
  }
}

TEST_F(Input, CsvFields) {
  const struct {
    const char* record;
    Strings fields;
  } kCases[] = {
      {"", {""}},
      {"a", {"a"}},
      {"a,b,,c", {"a", "b", "", "c"}},
      {"a,", {"a", ""}},
      {"\"a,b\",c", {"a,b", "c"}},
      {"\"say \"\"hi\"\"\",2", {"say \"hi\"", "2"}},
      {"\"\",x", {"", "x"}},
      {"\"open,x", {"\"open,x"}},
      {"a\"b,c", {"a\"b", "c"}},
      {"\"19.5\" ,x", {"19.5", "x"}},
      // Text behind the closing quote: nothing of it is left out, and so it is no number.
      {"\"1\"2,x", {"\"1\"2", "x"}},
      {"\"a\"b\"c,x", {"\"a\"b\"c", "x"}},
  };
  for (const auto& c : kCases) {
    std::string scratch;
    for (std::size_t i = 0; i < c.fields.size(); ++i) {
      EXPECT_EQ(CsvField(c.record, i, &scratch), c.fields[i]) << c.record << " field " << i;
    }
    EXPECT_FALSE(CsvField(c.record, c.fields.size(), &scratch)) << c.record;
  }
  EXPECT_EQ(FindCsvField("timestamp, value ,\"x y\"", "value"), 1u);
  EXPECT_EQ(FindCsvField("timestamp,value,\"x y\"", "x y"), 2u);
  EXPECT_FALSE(FindCsvField("a,b", "c"));
}

TEST_F(Input, TextValues) {
  EXPECT_EQ(Texts("1\n # note\n\n  2.5 \t\r\n#3\nabc\n", ValueType::kFloat64),
            (Strings{"1", "2.5", "abc"}));
  EXPECT_EQ(Texts("#tag\n\n a b \nx\r\n", ValueType::kString), (Strings{"#tag", " a b ", "x"}));
}

TEST_F(Input, CsvColumns) {
  const char* const nab = "timestamp,value\n2014-04-01 00:00:00,19.5\n2014-04-01 00:05:00, 20 \n";
  EXPECT_EQ(Texts(nab, ValueType::kFloat64, "value"), (Strings{"19.5", "20"}));
  EXPECT_EQ(Texts(nab, ValueType::kFloat64, "2"), (Strings{"19.5", "20"}));
  EXPECT_EQ(Texts("1,2\n3,4\n", ValueType::kFloat64, "2"), (Strings{"2", "4"}));
  // Only the first record can be a header.
  EXPECT_EQ(Texts("a,2\nb,x\n\nc,5\n", ValueType::kFloat64, "2"), (Strings{"2", "x", "5"}));
  EXPECT_EQ(Texts("1,2\n3\n", ValueType::kFloat64, "2"), (Strings{"2", "<none>"}));
  EXPECT_EQ(Texts("name,n\nx,1\n", ValueType::kString, "1"), (Strings{"name", "x"}));
  EXPECT_EQ(Texts("name,n\n\"a \"\"b\"\"\",1\n,2\n", ValueType::kString, "name"),
            (Strings{"a \"b\"", ""}));
  EXPECT_THROW(Texts("a,b\n", ValueType::kFloat64, "c"), InputError);
  EXPECT_THROW(Texts("a,b\n", ValueType::kFloat64, "0"), InputError);
}

TEST_F(Input, ASecondColumnHoldsThePayload) {
  const auto pairs = [&](const char* text, ValueType type, const char* value, const char* payload) {
    const std::string path = File(text);
    ByteSource source(path, -1, -1);
    TextValues values(&source, type, value, LineReader::kBufferBytes, payload);
    Strings found;
    for (std::string_view next; values.Next(&next);) {
      found.push_back(std::string(next) + "=" + std::string(values.payload()));
    }
    return found;
  };
  const char* const flows = "address,bytes\n10.0.0.1, 40\n10.0.0.2,\"1500\"\n";
  const Strings expected{"10.0.0.1=40", "10.0.0.2=1500"};
  EXPECT_EQ(pairs(flows, ValueType::kIpv4, "address", "bytes"), expected);
  EXPECT_EQ(pairs(flows, ValueType::kIpv4, "1", "bytes"), expected);
  EXPECT_EQ(pairs(flows, ValueType::kIpv4, "1", "2"), expected);
  EXPECT_EQ(pairs(flows, ValueType::kString, "1", "2"), expected) << "a header by its payload";
  EXPECT_EQ(pairs("a,1\nb,2\nc\n", ValueType::kString, "1", "2"), (Strings{"a=1", "b=2", "c="}));
  EXPECT_THROW(pairs(flows, ValueType::kIpv4, "address", "packets"), InputError);
  EXPECT_THROW(pairs(flows, ValueType::kIpv4, "1", "0"), InputError);
}

TEST_F(Input, AProblemWithThePayloadNamesItsColumn) {
  const std::string path = File("10.0.0.1,-4\n");
  ByteSource source(path, -1, -1);
  TextValues values(&source, ValueType::kIpv4, "1", LineReader::kBufferBytes, "2");
  std::string_view text;
  ASSERT_TRUE(values.Next(&text));
  EXPECT_EQ(values.PayloadProblem(client::PayloadType::kWeight),
            path + ":1: \"-4\" in column 2 is no weight (a whole number, 0 to 2^64 - 1)");
}

TEST_F(Input, ProblemNamesFileLineAndType) {
  const std::string path = File("1\nabc\n2,3\n");
  ByteSource source(path, -1, -1);
  TextValues values(&source, ValueType::kInt64, std::nullopt);
  std::string_view text;
  values.Next(&text);
  values.Next(&text);
  EXPECT_EQ(values.Problem(text), path + ":2: \"abc\" is not an int64");
  values.Next(&text);
  EXPECT_EQ(values.Problem(text), path + ":3: \"2,3\" is not an int64 (for CSV give --column)");
}

TEST_F(Input, FilesThatCannotBeRead) {
  for (const std::string& path : {(folder_ / "none").string(), folder_.string()}) {
    try {
      ByteSource source(path, -1, -1);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
}

TEST_F(Input, InterruptEndsAReadThatWaits) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int interrupt = eventfd(0, EFD_CLOEXEC);
  ASSERT_EQ(write(ends[1], "1\n2", 3), 3);
  {
    ByteSource source("-", ends[0], interrupt);
    EXPECT_FALSE(source.size());
    EXPECT_FALSE(source.Rewind());
    TextValues values(&source, ValueType::kFloat64, std::nullopt);
    std::string_view text;
    ASSERT_TRUE(values.Next(&text));
    EXPECT_EQ(text, "1");
    std::thread raiser([&] {
      const std::uint64_t one = 1;
      EXPECT_EQ(write(interrupt, &one, sizeof(one)), 8);
    });
    EXPECT_FALSE(values.Next(&text)) << "half a line is no value";
    EXPECT_TRUE(source.interrupted());
    raiser.join();
  }
  close(interrupt);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace tidemark::tool
