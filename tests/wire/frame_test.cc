// The framed TCP format: encoders against decoders, the page's example, every way in which bytes
// are no frame, and that cutting the bytes anywhere changes nothing. The server is tested in
// tests/server/ingest, and arbitrary bytes in tests/fuzz.
#include "wire/frame.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

namespace tidemark::wire {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Decoded {
  std::vector<std::string> frames;  // one line each
  std::string error;
  std::uint64_t error_offset = 0;
};

std::string Describe(const ClientFrame& frame) {
  std::ostringstream text;
  text << static_cast<int>(frame.type) << ' ' << static_cast<int>(frame.value_type) << ' '
       << frame.handle << ' ' << frame.batch_id << ' ' << frame.offset << " \"" << frame.name()
       << '"';
  return text.str();
}

std::string Describe(const ServerFrame& frame) {
  std::ostringstream text;
  text << static_cast<int>(frame.type) << ' ' << static_cast<int>(frame.value_type) << ' '
       << frame.handle << ' ' << frame.batch_id << ' ' << frame.accepted << ' ' << frame.refused
       << ' ' << frame.code << ' ' << frame.flags << " \"" << frame.message << '"';
  return text.str();
}

// Feeds `stream` in pieces of sizes that `next_size` gives.
template <typename Decoder, typename Frame, typename NextSize>
Decoded Decode(const std::string& stream, NextSize&& next_size, std::size_t limit) {
  Decoder decoder(limit);
  Decoded out;
  std::string held;
  std::size_t at = 0;
  for (;;) {
    Frame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    const DecodeResult result = decoder.Next(Bytes(held), frame, consumed, needed);
    if (result == DecodeResult::kFrame) out.frames.push_back(Describe(frame));
    if (result == DecodeResult::kError) {
      out.error = decoder.error().message;
      out.error_offset = decoder.error().offset;
      return out;
    }
    held.erase(0, consumed);
    if (result == DecodeResult::kNeedMore) {
      EXPECT_GT(needed, held.size());
      if (at == stream.size()) return out;
      const std::size_t size = std::min(next_size(), stream.size() - at);
      held += stream.substr(at, size);
      at += size;
    }
  }
}

Decoded DecodeClient(const std::string& stream, std::size_t limit = kFrameBytesMaxDefault) {
  return Decode<ClientFrameDecoder, ClientFrame>(
      stream, [&] { return stream.size(); }, limit);
}

std::string Preamble() {
  std::string out;
  AppendPreamble(out);
  return out;
}

// The bytes of the code block after `marker` in docs/protocol.md.
std::string Example(const std::string& marker) {
  std::ifstream page(TIDEMARK_PROTOCOL_MD);
  std::string line;
  while (std::getline(page, line) && line != marker) {
  }
  std::getline(page, line);  // ```
  std::string bytes;
  while (std::getline(page, line) && line != "```") {
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      bytes += static_cast<char>(std::stoi(word, nullptr, 16));
    }
  }
  return bytes;
}

TEST(FrameTest, TheExampleOfTheProtocolPageIsWhatTheEncodersWrite) {
  const double values[] = {1.5, -2};
  std::string client = Preamble();
  AppendOpen(client, 1, WireType::kFloat64, "rtt");
  AppendBatch(client, 1, 7, WireType::kFloat64, std::as_bytes(std::span(values)));
  EXPECT_EQ(client, Example("<!-- example: client -->"));
  std::string server;
  AppendOpened(server, 1, WireType::kFloat64);
  AppendAck(server, 7, 2, 0);
  EXPECT_EQ(server, Example("<!-- example: server -->"));
}

TEST(FrameTest, SizesAreThoseOfTheProtocolPage) {
  std::string out;
  AppendOpen(out, 1, WireType::kDefault, "");
  EXPECT_EQ(out.size(), kOpenHeaderBytes);
  out.clear();
  AppendBatchHeader(out, 1, 1, WireType::kDefault, 0);
  EXPECT_EQ(out.size(), kBatchHeaderBytes);
  out.clear();
  AppendError(out, 3, 0, 0, 0, "");
  EXPECT_EQ(out.size(), kErrorHeaderBytes);
}

TEST(FrameTest, EveryFieldSurvives) {
  std::string client = Preamble();
  AppendOpen(client, 0xFFFFFFFF, WireType::kString, "naïve \xF0\x9F\x8C\x8A");
  AppendBatch(client, 0x01020304, 0x1122334455667788, WireType::kUint32, Bytes("abcd"));
  AppendBatch(client, 0, 0, WireType::kDefault, {});
  AppendProducer(client, "0123456789abcdef");
  AppendBatchHeader(client, 3, 4, WireType::kUint32, 4, FrameType::kSequencedBatch);
  client += "efgh";
  const Decoded decoded = DecodeClient(client);
  EXPECT_EQ(decoded.error, "");
  ASSERT_EQ(decoded.frames.size(), 5U);
  EXPECT_EQ(decoded.frames[3], "3 0 0 0 83 \"0123456789abcdef\"");
  EXPECT_EQ(decoded.frames[4], "4 5 3 4 107 \"efgh\"");
  EXPECT_EQ(decoded.frames[0], "1 7 4294967295 0 8 \"naïve \xF0\x9F\x8C\x8A\"");
  EXPECT_EQ(decoded.frames[1], "2 5 16909060 1234605616436508552 31 \"abcd\"");
  EXPECT_EQ(decoded.frames[2], "2 0 0 0 59 \"\"");

  std::string server;
  AppendOpened(server, 9, WireType::kIpv4);
  AppendAck(server, 1ULL << 63, (1ULL << 40) + 1, 3);
  AppendError(server, 14, kErrorFatal | kErrorForBatch, 5, 6, "no");
  const Decoded answers = Decode<ServerFrameDecoder, ServerFrame>(
      server, [&] { return server.size(); }, 1 << 20);
  ASSERT_EQ(answers.frames.size(), 3U);
  EXPECT_EQ(answers.frames[0], "129 6 9 0 0 0 0 0 \"\"");
  EXPECT_EQ(answers.frames[1], "130 0 0 9223372036854775808 1099511627777 3 0 0 \"\"");
  EXPECT_EQ(answers.frames[2], "131 0 5 6 0 0 14 3 \"no\"");
}

TEST(FrameTest, CuttingTheBytesAnywhereChangesNothing) {
  const std::uint64_t seed = 20050614;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string stream = Preamble();
    const int frames = static_cast<int>(random() % 8);
    for (int i = 0; i < frames; ++i) {
      const std::string payload(random() % 100, 'x');
      const auto kind = random() % 4;
      if (kind == 2) {
        AppendProducer(stream, std::string(kProducerIdBytes, static_cast<char>(1 + random() % 99)));
      } else if (kind == 3) {
        AppendBatchHeader(stream, 1, random(), WireType::kFloat64, payload.size(),
                          FrameType::kSequencedBatch);
        stream += payload;
      } else if (kind == 0) {
        AppendOpen(stream, static_cast<std::uint32_t>(random()), WireType::kInt64, payload);
      } else {
        AppendBatch(stream, static_cast<std::uint32_t>(random()), random(), WireType::kFloat64,
                    Bytes(payload));
      }
    }
    // Half of the rounds end in a broken frame.
    if (round % 2 == 1) stream[random() % stream.size()] ^= static_cast<char>(1 + random() % 255);
    const Decoded whole = DecodeClient(stream, 200);
    const auto check = [&](auto&& next_size, const char* how) {
      const Decoded cut = Decode<ClientFrameDecoder, ClientFrame>(stream, next_size, 200);
      EXPECT_EQ(cut.frames, whole.frames) << how << ", seed " << seed << " round " << round;
      EXPECT_EQ(cut.error_offset, whole.error_offset)
          << how << ", seed " << seed << " round " << round << ": " << cut.error << " / "
          << whole.error;
    };
    check([] { return std::size_t{1}; }, "byte by byte");
    check([&] { return std::size_t{1} + random() % 40; }, "random pieces");
  }
}

struct Broken {
  const char* what;
  std::string bytes;
  FrameError::Kind kind;
  std::uint64_t offset;
  const char* message;
};

std::string Header(std::uint32_t length, std::uint8_t type, std::uint16_t reserved) {
  std::string out(8, '\0');
  for (int i = 0; i < 4; ++i) {
    out[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
  }
  out[4] = static_cast<char>(type);
  out[6] = static_cast<char>(reserved & 255);
  out[7] = static_cast<char>(reserved >> 8);
  return out;
}

TEST(FrameTest, BrokenFramingNamesTheByteAndWhatWasExpected) {
  using Kind = FrameError::Kind;
  std::string bad_version = Preamble();
  bad_version[4] = 2;
  std::string bad_reserved = Preamble();
  bad_reserved[7] = 1;
  std::string batch_reserved = Preamble();
  AppendBatch(batch_reserved, 1, 1, WireType::kDefault, {});
  batch_reserved[8 + 12] = 1;
  const std::vector<Broken> all = {
      {"http", "GET / HTTP/1.1", Kind::kBadPreamble, 0,
       "bad preamble at byte 0: the connection begins with 47 45 54 20; expected 54 44 4d 4b "
       "(\"TDMK\")"},
      {"nearly", "TDMX", Kind::kBadPreamble, 3,
       "bad preamble at byte 3: the connection begins with 54 44 4d 58; expected 54 44 4d 4b "
       "(\"TDMK\")"},
      {"version", bad_version, Kind::kBadVersion, 4,
       "unknown protocol version 2 at byte 4; expected 1"},
      {"reserved", bad_reserved, Kind::kReserved, 6, "reserved field at byte 6 is 256; expected 0"},
      {"too large, known after its length", Preamble() + Header(197, 2, 0).substr(0, 4),
       Kind::kTooLarge, 8, "frame length 197 at byte 8 is too large; expected at most 196"},
      {"2^32 - 1", Preamble() + "\xFF\xFF\xFF\xFF", Kind::kTooLarge, 8,
       "frame length 4294967295 at byte 8 is too large; expected at most 196"},
      {"too short", Preamble() + Header(3, 2, 0), Kind::kTooShort, 8,
       "frame length 3 at byte 8 is too short; expected at least 4"},
      {"too short for its type", Preamble() + Header(19, 2, 0), Kind::kTooShort, 8,
       "frame length 19 of BATCH at byte 8 is too short; expected at least 20"},
      {"unknown type", Preamble() + Header(20, 5, 0), Kind::kUnknownType, 12,
       "unknown frame type 5 at byte 12; expected 1 (OPEN) to 4 (SEQUENCED_BATCH)"},
      {"a server's type", Preamble() + Header(28, 130, 0), Kind::kUnknownType, 12,
       "unknown frame type 130 at byte 12; expected 1 (OPEN) to 4 (SEQUENCED_BATCH)"},
      {"a producer too long", Preamble() + Header(21, 3, 0), Kind::kTooLarge, 8,
       "frame length 21 of PRODUCER at byte 8 is wrong; expected 20"},
      {"a producer of zeros", Preamble() + Header(20, 3, 0) + std::string(16, '\0'),
       Kind::kReserved, 16, "the id of PRODUCER at byte 16 is 0; expected 16 random bytes"},
      {"reserved field of a frame", Preamble() + Header(20, 1, 5), Kind::kReserved, 14,
       "reserved field at byte 14 is 5; expected 0"},
      {"reserved field of a batch", batch_reserved, Kind::kReserved, 20,
       "reserved field at byte 20 of BATCH is 1; expected 0"},
  };
  for (const Broken& broken : all) {
    ClientFrameDecoder decoder(200);
    ClientFrame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    ASSERT_EQ(decoder.Next(Bytes(broken.bytes), frame, consumed, needed), DecodeResult::kError)
        << broken.what;
    EXPECT_EQ(decoder.error().kind, broken.kind) << broken.what;
    EXPECT_EQ(decoder.error().offset, broken.offset) << broken.what;
    EXPECT_EQ(decoder.error().message, broken.message) << broken.what;
    EXPECT_EQ(decoder.Next(Bytes(Preamble()), frame, consumed, needed), DecodeResult::kError)
        << "an error stays";
  }
}

TEST(FrameTest, TheLargestFrameIsTakenAndOneByteMoreIsNot) {
  const std::string payload(1000, 'p');
  std::string stream = Preamble();
  AppendBatch(stream, 1, 1, WireType::kDefault, Bytes(payload));
  EXPECT_EQ(DecodeClient(stream, kBatchHeaderBytes + 1000).frames.size(), 1U);
  EXPECT_NE(DecodeClient(stream, kBatchHeaderBytes + 999).error, "");
}

TEST(FrameTest, AcksOfAnotherSizeAreRefused) {
  for (const std::uint32_t length : {27U, 29U}) {
    const std::string stream = Header(length, 130, 0);
    const Decoded decoded = Decode<ServerFrameDecoder, ServerFrame>(
        stream, [&] { return stream.size(); }, 1 << 20);
    EXPECT_NE(decoded.error, "") << length;
  }
}

TEST(FrameTest, StringsOfABatch) {
  std::string payload;
  AppendString(payload, "a");
  AppendString(payload, "");
  AppendString(payload, std::string_view("b\0c", 3));
  std::vector<std::string_view> items;
  std::string error;
  ASSERT_TRUE(DecodeStrings(Bytes(payload), items, error)) << error;
  EXPECT_EQ(items, (std::vector<std::string_view>{"a", "", std::string_view("b\0c", 3)}));
  ASSERT_TRUE(DecodeStrings({}, items, error));
  EXPECT_EQ(items.size(), 3U);
  // Every truncation is refused and leaves `items` alone, unless it is between two items.
  for (std::size_t size = 1; size < payload.size(); ++size) {
    const bool between = size == 5 || size == 9;
    items.assign(1, "kept");
    EXPECT_EQ(DecodeStrings(Bytes(payload.substr(0, size)), items, error), between) << size;
    if (!between) {
      EXPECT_EQ(items.size(), 1U);
      EXPECT_NE(error.find("of the values"), std::string::npos) << error;
    }
  }
}

TEST(FrameTest, TheTypeByteNamesValueAndPayload) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto type = ParseWireElement(static_cast<std::uint8_t>(byte));
    EXPECT_EQ(type.has_value(), (byte & 15) <= 8 && byte >> 4 <= 2) << byte;
    if (type) {
      EXPECT_EQ(type->byte(), byte);
    }
  }
  EXPECT_EQ(WireElementName({WireType::kIpv4, WirePayload::kWeight}), "ipv4 with weights");
  EXPECT_EQ(WireElementName({WireType::kFloat64, WirePayload::kY}), "float64 with y");
  EXPECT_EQ(WireElementName(WireType::kString), "string");
  EXPECT_EQ(WireElementName({WireType::kIpv6, WirePayload::kWeight}), "ipv6 with weights");
  EXPECT_EQ(WireTypeBytes(static_cast<std::uint8_t>(WireType::kIpv6)), 16U);
}

TEST(FrameTest, PairsAreAllPayloadsThenAllValues) {
  PairParts parts;
  std::string error;
  const std::string three = std::string(24, 'p') + std::string(12, 'v');
  ASSERT_TRUE(SplitPairs(Bytes(three), WireType::kUint32, parts, error)) << error;
  EXPECT_EQ(parts.payloads.size(), 24U);
  EXPECT_EQ(parts.values.size(), 12U);
  EXPECT_EQ(parts.values.front(), static_cast<std::byte>('v'));
  EXPECT_FALSE(SplitPairs(Bytes(three), WireType::kFloat64, parts, error));
  EXPECT_EQ(
      error,
      "a batch of 36 bytes is not a whole number of float64 values with payloads, of 16 bytes");

  const std::string two = std::string(16, 'p') + std::string(32, 'v');
  ASSERT_TRUE(SplitPairs(Bytes(two), WireType::kIpv6, parts, error)) << error;
  EXPECT_EQ(parts.payloads.size(), 16U);
  EXPECT_EQ(parts.values.size(), 32U);
  EXPECT_FALSE(SplitPairs(Bytes(two.substr(1)), WireType::kIpv6, parts, error));
  EXPECT_EQ(error,
            "a batch of 47 bytes is not a whole number of ipv6 values with payloads, of 24 bytes");

  std::string items("\x02\0\0\0\0\0\0\0", 8);
  items.append(16, 'p');
  AppendString(items, "a");
  AppendString(items, "b");
  ASSERT_TRUE(SplitPairs(Bytes(items), WireType::kString, parts, error)) << error;
  EXPECT_EQ(parts.payloads.size(), 16U);
  EXPECT_EQ(parts.values.size(), 10U);
  for (std::size_t size = 1; size < 24; ++size) {
    EXPECT_FALSE(SplitPairs(Bytes(items.substr(0, size)), WireType::kString, parts, error)) << size;
    EXPECT_TRUE(parts.payloads.empty());
  }
  EXPECT_TRUE(SplitPairs({}, WireType::kString, parts, error));
}

TEST(FrameTest, LongErrorsAreCutBetweenCharacters) {
  std::string message(kErrorMessageBytesMax - 1, 'm');
  message += "é and more";
  std::string out;
  AppendError(out, 3, 0, 0, 0, message);
  EXPECT_EQ(out.size(), kErrorHeaderBytes + kErrorMessageBytesMax - 1);
  EXPECT_EQ(out.back(), 'm');
}

}  // namespace
}  // namespace tidemark::wire
