// The compact list of entries: what goes in comes out, look-ups find it and nothing else, and equal
// entries are equal bytes. Bytes from outside: serialize_test.cc, golden_test.cc.
#include "summaries/frequency_entries.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/frequency_summary.h"
#include "tests/summaries/cases.h"

namespace tidemark {
namespace {

/// As often of few bits as of many.
std::uint64_t AnyNumber(std::mt19937_64& random, unsigned bits) {
  return random() >> (64 - bits) >> (random() % bits);
}

template <class Key>
std::vector<FrequencyEntry<Key>> AnyEntries(std::mt19937_64& random, std::uint64_t dropped) {
  std::vector<FrequencyEntry<Key>> entries;
  const std::size_t size = random() % 300;
  Key key = random() % 2 == 0 ? 0 : static_cast<Key>(AnyNumber(random, 8 * sizeof(Key)));
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t delta = random() % 3 == 0 ? dropped : dropped >> (random() % 64);
    const std::uint64_t excess = AnyNumber(random, 62);
    entries.push_back({key, dropped + 1 + excess - delta, delta});
    const auto room = static_cast<Key>(std::numeric_limits<Key>::max() - key);
    if (room == 0) break;
    const auto step = static_cast<Key>(AnyNumber(random, 8 * sizeof(Key)));
    key = static_cast<Key>(key + 1 + step % room);
  }
  return entries;
}

template <class Key>
FrequencyEntries<Key> Written(const std::vector<FrequencyEntry<Key>>& entries,
                              std::uint64_t dropped, std::size_t expected_bytes) {
  FrequencyEntriesWriter<Key> writer(dropped, expected_bytes);
  for (const auto& entry : entries) writer.Append(entry);
  return std::move(writer).Finish();
}

template <class Key>
class Entries : public ::testing::Test {};
using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Entries, Keys);

TYPED_TEST(Entries, ComeBackInOrderAndAreFound) {
  using Key = TypeParam;
  for (std::uint64_t seed = 0; seed < Seeds(2000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const std::uint64_t dropped = AnyNumber(random, 62);
    const auto entries = AnyEntries<Key>(random, dropped);
    const FrequencyEntries<Key> written = Written(entries, dropped, random() % 5000);
    ASSERT_EQ(written.size(), entries.size());
    std::vector<FrequencyEntry<Key>> back;
    written.ForEach([&](const auto& entry) { back.push_back(entry); });
    ASSERT_EQ(back, entries);
    ASSERT_EQ(written, Written(entries, dropped, 0));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      ASSERT_EQ(written.Find(entries[i].key), entries[i]);
      const auto next = static_cast<Key>(entries[i].key + 1);
      const bool is_next = i + 1 < entries.size() && entries[i + 1].key == next;
      ASSERT_TRUE(next == 0 || written.Contains(next) == is_next);
    }
    for (const Key key : {Key{0}, static_cast<Key>(-1), static_cast<Key>(random())}) {
      bool there = false;
      for (const auto& entry : entries) there |= entry.key == key;
      ASSERT_EQ(written.Contains(key), there);
    }
  }
}

TYPED_TEST(Entries, OfNone) {
  const FrequencyEntries<TypeParam> none = Written<TypeParam>({}, 5, 100);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_TRUE(none.stream().empty());
  EXPECT_FALSE(none.Contains(0));
  EXPECT_FALSE(FrequencyEntries<TypeParam>().Contains(0));
}

TYPED_TEST(Entries, TakeTheBytesThatTheyNeed) {
  using Key = TypeParam;
  const std::uint64_t dropped = 1000;
  EXPECT_EQ(Written<Key>({{0, 1001, 0}}, dropped, 0).stream(), std::string("\0\0", 2));
  EXPECT_EQ(Written<Key>({{255, 1001, 0}, {256, 2001, 0}, {0x01'0000 + 256, 1, 1000}}, dropped, 0)
                .stream(),
            std::string("\x00\xFF"
                        "\x10\x01\xE8\x03"
                        "\x82\x00\x00\x01\xE8\x03",
                        2 + 4 + 6));
  // No capacity is left over, and one place of the table for every 64 entries.
  std::vector<FrequencyEntry<Key>> many;
  for (Key key = 0; key < 129; ++key) many.push_back({key, 1001, 0});
  EXPECT_EQ(Written<Key>(many, dropped, 100'000).bytes(),
            129 * 2 + 8 + 3 * 2 * sizeof(std::size_t));
}

/// A summary of one entry, with the parts of its control byte and what follows it as given.
std::string OneEntry(std::uint64_t n, std::string_view entry) {
  ByteWriter writer("TMFS", 4, 2);
  writer.PutDouble(0.1);
  writer.Put(n);
  writer.Put(std::uint64_t{1});
  writer.PutBytes(entry);
  return writer.Finish();
}
std::string Refusal(const std::string& bytes) {
  try {
    FrequencySummary<std::uint32_t>::Deserialize(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EntriesFromOutside, ThatCannotBeAreNamed) {
  using std::string;
  EXPECT_EQ(Refusal(OneEntry(30, string("\x00\x07", 2))), "accepted");
  EXPECT_EQ(Refusal(OneEntry(30, string("\x01\x07\x00", 3))),
            "serialized frequency summary has an entry that takes more bytes than it needs");
  EXPECT_EQ(Refusal(OneEntry(30, string("\x40\x07\x00", 3))),
            "serialized frequency summary has an entry that takes more bytes than it needs");
  EXPECT_EQ(Refusal(OneEntry(30, string("\x04\x07\x00\x00\x00\x01", 6))),
            "serialized frequency summary has in entry 0 a key above the largest");
  EXPECT_EQ(
      Refusal(OneEntry(30, string("\x40\x07\x03", 3))),
      "serialized frequency summary has in entry 0 bounds that its n and epsilon do not allow");
  EXPECT_EQ(Refusal(OneEntry(30, string("\x08\x07\x1C", 3))),
            "serialized frequency summary has in entry 0 a count that its n does not allow");
  // At most 30 times; then 30 times and two that were missed.
  EXPECT_EQ(Refusal(OneEntry(30, string("\x48\x07\x1A\x02", 4))), "accepted");
  EXPECT_EQ(
      Refusal(OneEntry(30, string("\x48\x07\x1C\x02", 4))),
      "serialized frequency summary has in entry 0 bounds that its n and epsilon do not allow");
  // As on a level that not every value reaches.
  EXPECT_EQ(Refusal(OneEntry(9, string("\x00\x07", 2))), "accepted");
  EXPECT_EQ(Refusal(OneEntry(30, string("\x03\x07", 2))),
            "serialized frequency summary is cut short at offset 34");
}

}  // namespace
}  // namespace tidemark
