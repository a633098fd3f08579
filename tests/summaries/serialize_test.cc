// The serialized form of all summaries: it comes back to the bit, depends on the windows alone,
// and no damage passes, be it a flipped bit, a cut, or a lie under a right checksum.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "summaries/compact_quantiles.h"
#include "summaries/frequency_summary.h"
#include "summaries/quantile_summary.h"
#include "tests/summaries/cases.h"
#include "tests/summaries/distributions.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/weighted_keys.h"
#include "tests/support/fix_checksum.h"

namespace tidemark {
namespace {

using testing::WeightedKeys;

template <class Summary>
struct KeyOf;
template <template <class> class Summary, class K>
struct KeyOf<Summary<K>> {
  using Key = K;
};

template <class Summary>
Summary Make(std::size_t n, double epsilon, std::uint64_t seed) {
  using Key = typename KeyOf<Summary>::Key;
  Summary summary(epsilon);
  const auto keys = testing::Generate<Key>(testing::Distribution::kZipf, n, seed);
  testing::ForEachWindow(
      std::span<const Key>(keys), [] { return 256; },
      [&](std::span<const Key> window) {
        if (window.size() == 256) summary.AddWindow(window);
      });
  return summary;
}

template <class Summary>
class Serialized : public ::testing::Test {};
using Summaries = ::testing::Types<QuantileSummary<std::uint32_t>, QuantileSummary<std::uint64_t>,
                                   CompactQuantiles<std::uint32_t>, CompactQuantiles<std::uint64_t>,
                                   FrequencySummary<std::uint32_t>, FrequencySummary<std::uint64_t>,
                                   WeightedKeys<std::uint32_t>, WeightedKeys<std::uint64_t>>;
TYPED_TEST_SUITE(Serialized, Summaries);

TYPED_TEST(Serialized, ComesBackToTheBitAndGoesOnTheSame) {
  using Key = typename KeyOf<TypeParam>::Key;
  for (const std::size_t n : {0u, 256u, 1024u, 50'000u}) {
    auto summary = Make<TypeParam>(n, 0.01, n);
    const std::string bytes = summary.Serialize();
    EXPECT_EQ(bytes, Make<TypeParam>(n, 0.01, n).Serialize());
    auto back = TypeParam::Deserialize(bytes);
    EXPECT_EQ(back.Serialize(), bytes);
    EXPECT_EQ(back.count(), summary.count());
    EXPECT_EQ(back.epsilon(), summary.epsilon());
    EXPECT_EQ(back.exact(), summary.exact());
    std::vector<Key> window(128);
    for (std::size_t i = 0; i < window.size(); ++i) window[i] = static_cast<Key>(i * i);
    summary.AddWindow(window);
    back.AddWindow(window);
    EXPECT_EQ(back.Serialize(), summary.Serialize());
  }
}

TYPED_TEST(Serialized, EveryCutAndEveryFlippedBitIsRefused) {
  const std::string bytes = Make<TypeParam>(2000, 0.05, 1).Serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_THROW(TypeParam::Deserialize(bytes.substr(0, size)), std::invalid_argument) << size;
  }
  ASSERT_THROW(TypeParam::Deserialize(bytes + '\0'), std::invalid_argument);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_THROW(TypeParam::Deserialize(damaged), std::invalid_argument) << "bit " << bit;
  }
}

TYPED_TEST(Serialized, LiesUnderARightChecksumAreRefusedOrHarmless) {
  // Bytes changed, put in or taken out at random, checksum made right. What is accepted must be a
  // summary that can go on.
  const std::string bytes = Make<TypeParam>(3000, 0.05, 2).Serialize();
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < Seeds(20'000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string changed = bytes;
    const std::uint64_t changes = 1 + random() % 3;
    for (std::uint64_t i = 0; i < changes; ++i) {
      // Half of them in the first 60 bytes, where the sizes are.
      const std::size_t at =
          random() %
          std::min(changed.size() - 4, random() % 2 == 0 ? std::size_t{60} : changed.size());
      switch (random() % 8) {
        case 0:
          changed.insert(at, 1, static_cast<char>(random()));
          break;
        case 1:
          changed.erase(at, 1 + random() % 8);
          if (changed.size() < 4) changed.resize(4);
          break;
        default:
          changed[at] = static_cast<char>(random() % 4 == 0 ? 0xFF : random());
      }
    }
    testing::FixChecksum(changed);
    try {
      auto summary = TypeParam::Deserialize(changed);
      ++accepted;
      ASSERT_EQ(summary.Serialize(), changed);
      const std::vector<typename KeyOf<TypeParam>::Key> window(64, 5);
      if (summary.count() < (1ull << 62)) {
        for (int i = 0; i < 4; ++i) summary.AddWindow(window);
      }
    } catch (const std::invalid_argument& error) {
      ASSERT_NE(std::string(error.what()).find("serialized "), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, static_cast<int>(3 * Seeds(20'000) / 4));
}

TYPED_TEST(Serialized, RandomBytesAreRefused) {
  std::mt19937_64 random(11);
  for (int i = 0; i < Cases(20'000); ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_THROW(TypeParam::Deserialize(bytes), std::invalid_argument);
  }
}

template <class Summary>
std::string Refusal(const std::string& bytes) {
  try {
    Summary::Deserialize(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SerializedMessages, NameWhatIsWrong) {
  using Summary = QuantileSummary<std::uint32_t>;
  const std::string good = Make<Summary>(512, 0.05, 1).Serialize();
  EXPECT_EQ(Refusal<Summary>("TMQS"),
            "serialized quantile summary is cut short: 4 bytes, the frame alone takes 12");
  EXPECT_EQ(Refusal<Summary>(FrequencySummary<std::uint32_t>(0.1).Serialize()),
            "serialized quantile summary does not begin with \"TMQS\"");
  EXPECT_EQ(Refusal<QuantileSummary<std::uint64_t>>(good),
            "serialized quantile summary has keys of 32 bits, expected 64");
  std::string later = good;
  later[4] = 2;
  EXPECT_EQ(Refusal<Summary>(later), "serialized quantile summary has version 2, expected 1");
  std::string damaged = good;
  damaged[40] ^= 1;
  EXPECT_NE(Refusal<Summary>(damaged).find("checksum"), std::string::npos);
  std::string huge = good;
  huge[34] = 50;  // log2 of the samples of bucket 0
  testing::FixChecksum(huge);
  using Frequency = FrequencySummary<std::uint32_t>;
  later = Frequency(0.1).Serialize();
  later[4] = 3;
  EXPECT_EQ(Refusal<Frequency>(later),
            "serialized frequency summary has version 3, expected 1 to 2");
  EXPECT_NE(Refusal<Summary>(huge).find("cut short: 1125899906842624 items of 4 bytes"),
            std::string::npos)
      << Refusal<Summary>(huge);
}

}  // namespace
}  // namespace tidemark
