// Names and items from outside.
#include "server/window/text_rules.h"

#include <gtest/gtest.h>

#include <string>

#include "server/window/refusal.h"

namespace tidemark::server {
namespace {

TEST(Utf8, AcceptsWellFormedText) {
  for (const std::string_view text :
       {"", "plain ascii, longer than eight bytes", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC",
        "\xF0\x9F\x98\x80", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF", "\x7F"}) {
    EXPECT_EQ(FindInvalidUtf8(text), std::string_view::npos) << Printable(text);
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  const struct {
    std::string_view text;
    std::size_t at;
  } cases[] = {
      {"\x80", 0},                  // a continuation alone
      {"abc\xC3", 3},               // cut
      {"abcdefgh\xFF", 8},          // no lead byte, right behind eight ASCII bytes
      {"\xC0\x80", 0},              // overlong
      {"\xE0\x9F\xBF", 0},          // overlong
      {"\xED\xA0\x80", 0},          // surrogate
      {"\xF0\x8F\xBF\xBF", 0},      // overlong
      {"\xF4\x90\x80\x80", 0},      // above U+10FFFF
      {"\xF8\x88\x80\x80\x80", 0},  // five bytes
      {"ok\xE2\x28\xA1", 2},
  };
  for (const auto& c : cases) EXPECT_EQ(FindInvalidUtf8(c.text), c.at) << Printable(c.text);
}

TEST(StreamName, SaysWhatIsWrong) {
  EXPECT_TRUE(CheckStreamName("http.latency{host=\"a\"}", 512).ok());
  EXPECT_TRUE(CheckStreamName(std::string(512, 'x'), 512).ok());
  EXPECT_EQ(CheckStreamName("", 512).message(),
            "the stream's name is empty; expected 1 to 512 bytes of UTF-8");
  EXPECT_EQ(CheckStreamName(std::string(513, 'x'), 512).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckStreamName("a\xFF", 512).message(),
            "stream name \"a\\xff\" is not UTF-8: bad byte at offset 1");
  EXPECT_EQ(CheckStreamName("a\nb", 512).message(),
            "stream name \"a\\x0ab\" has a control character at offset 1");
}

TEST(Item, MayBeEmptyButNotTooLong) {
  EXPECT_TRUE(CheckItem("", 4).ok());
  EXPECT_TRUE(CheckItem("four", 4).ok());
  EXPECT_EQ(CheckItem("fiver", 4).message(), "item \"fiver\" has 5 bytes; expected at most 4");
  EXPECT_FALSE(CheckItem("\xC3", 4).ok());
  EXPECT_EQ(ReasonOf(CheckItem("\xC3", 4), Attempt::kBatch), "bad_utf8");
  EXPECT_EQ(ReasonOf(CheckItem("fiver", 4), Attempt::kBatch), "item_too_large");
}

TEST(Printable, IsOneShortLine) {
  EXPECT_EQ(Printable("a\r\n\x01z"), "a\\x0d\\x0a\\x01z");
  EXPECT_LT(Printable(std::string(10'000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace tidemark::server
