// The token before the preamble: what is written is read, however it was cut, and nothing else is
// taken for one.
#include "wire/token.h"

#include <gtest/gtest.h>

#include <random>

#include "wire/frame.h"

namespace tidemark::wire {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(TokenTest, BytesAreThoseOfTheDocument) {
  std::string out;
  AppendToken(out, "secret-123");
  EXPECT_EQ(out, std::string("TDMA\x01\x00\x0a\x00secret-123\0\0\0\0\0\0", 24));
}

TEST(TokenTest, EveryCutNeedsMoreAndTheWholeIsRead) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::string token(1 + random() % (seed % 10 == 0 ? kTokenBytesMax : 40), '\0');
    for (char& c : token) c = static_cast<char>('!' + random() % 94);
    std::string bytes;
    AppendToken(bytes, token);
    EXPECT_EQ(bytes.size() % 8, 0U);
    const std::size_t whole = bytes.size();
    for (std::size_t cut = 0; cut<whole; cut += whole> 100 ? 37 : 1) {
      const std::string part = bytes.substr(0, cut);
      const TokenPreamble read = DecodeToken(Bytes(part));
      ASSERT_EQ(read.result, TokenResult::kNeedMore) << "seed " << seed << " cut " << cut;
      ASSERT_GT(read.needed, cut);
      ASSERT_LE(read.needed, whole);
    }
    AppendPreamble(bytes);
    const TokenPreamble read = DecodeToken(Bytes(bytes));
    ASSERT_EQ(read.result, TokenResult::kToken) << "seed " << seed;
    EXPECT_EQ(read.token, token);
    EXPECT_EQ(read.consumed, whole);
  }
}

TEST(TokenTest, AnythingElseIsNoToken) {
  std::string preamble;
  AppendPreamble(preamble);
  EXPECT_EQ(DecodeToken(Bytes(preamble)).result, TokenResult::kNone);
  EXPECT_EQ(DecodeToken(Bytes("TDMK")).result, TokenResult::kNone);
  EXPECT_EQ(DecodeToken(Bytes("X")).result, TokenResult::kNone);
  EXPECT_EQ(DecodeToken({}).result, TokenResult::kNeedMore);
}

TEST(TokenTest, FaultsSayWhereAndWhatWasExpected) {
  const auto error = [](std::string bytes) {
    const TokenPreamble read = DecodeToken(Bytes(bytes));
    EXPECT_EQ(read.result, TokenResult::kError);
    return read.error;
  };
  EXPECT_EQ(error(std::string("TDMA\x02\0\x01\0", 8)),
            "version 2 of a token at byte 4 of the connection; expected 1");
  EXPECT_EQ(error(std::string("TDMA\x01\0\0\0", 8)),
            "a token of 0 bytes at byte 6 of the connection; expected 1 to 4096");
  EXPECT_EQ(error(std::string("TDMA\x01\0\x01\x10", 8)),
            "a token of 4097 bytes at byte 6 of the connection; expected 1 to 4096");
  EXPECT_EQ(error(std::string("TDMA\x01\0\x01\0s\0\0\0\0\0\0x", 16)),
            "byte 15 of the connection, behind a token, is not 0; expected zeros up to a multiple "
            "of 8");
}

TEST(TokenTest, AnyBytesAreJudgedWithoutReadingBeyondThem) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    std::mt19937_64 random(seed);
    std::string bytes = "TDMA";
    bytes.resize(random() % 40);
    for (std::size_t i = std::min<std::size_t>(4, bytes.size()); i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(i == 4 ? 1 : random() % 3 == 0 ? random() % 256 : 0);
    }
    const std::vector<std::byte> exact(Bytes(bytes).begin(), Bytes(bytes).end());  // for sanitizers
    const TokenPreamble read = DecodeToken(exact);
    if (read.result == TokenResult::kToken) {
      EXPECT_LE(read.consumed, exact.size());
      EXPECT_LE(read.token.size() + 8, read.consumed);
    }
  }
}

}  // namespace
}  // namespace tidemark::wire
