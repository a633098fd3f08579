// The file of measured rates: what was written is read, and anything else is refused with a reason
// and nothing worse.
#include "server/sort/sorter_rates.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/fake_disk.h"

namespace tidemark::server {
namespace {

using testing::DiskOp;
using testing::FakeDisk;

constexpr std::string_view kVersion = "1.2.3";
const std::string kFolder = "/data";
const std::string kPath = "/data/sorter_rates.json";

sort::MeasuredRates Rates(double factor = 1) {
  sort::MeasuredRates rates;
  rates.on.cpu = "CPU with \"quotes\", \\ and a\ttab";
  rates.on.algorithms = "vqsort-avx3 vqsort-avx2 radix-lsd-8";
  rates.on.gl_sorters = {"gl-compute up to 16777216 keys on GPU (Vendor, 4.6)", "gl-bitonic"};
  rates.on.budget_ms = 600;
  rates.at_us = 1'795'000'000'123'456;
  for (const double rate : {3.0e8, 1.0 / 3, 123456789.123456789, 1e-300, 1e300}) {
    rates.rows.push_back({32, 1 << 18, "cpu", "vqsort-avx3", factor * rate, false});
  }
  rates.rows.push_back({64, 1 << 16, "gl-compute", "bitonic-compute", 5e9, false});
  return rates;
}

bool Same(const sort::MeasuredRates& a, const sort::MeasuredRates& b) {
  if (!(a.on == b.on) || a.at_us != b.at_us || a.rows.size() != b.rows.size()) return false;
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const auto& x = a.rows[i];
    const auto& y = b.rows[i];
    if (x.key_bits != y.key_bits || x.window != y.window || x.sorter != y.sorter ||
        x.algorithm != y.algorithm || x.keys_per_second != y.keys_per_second) {
      return false;
    }
  }
  return true;
}

TEST(SorterRates, WhatWasWrittenIsRead) {
  const KeptRates kept = ParseSorterRates(FormatSorterRates(Rates(), kVersion), kVersion);
  EXPECT_EQ(kept.refused, "");
  ASSERT_TRUE(kept.rates.has_value());
  EXPECT_TRUE(Same(*kept.rates, Rates()));
}

TEST(SorterRates, CutOffAnywhereItIsRefused) {
  const std::string text = FormatSorterRates(Rates(), kVersion);
  ASSERT_EQ(text.substr(text.size() - 2), "}\n");
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    const KeptRates kept = ParseSorterRates(text.substr(0, bytes), kVersion);
    EXPECT_FALSE(kept.rates.has_value()) << bytes;
    EXPECT_EQ(kept.refused, "it is cut off, or never was a file of rates") << bytes;
  }
}

// A changed byte between two values is no other text: JSON has several blanks.
TEST(SorterRates, NoChangedByteChangesARate) {
  const std::string text = FormatSorterRates(Rates(), kVersion);
  const std::uint64_t seed = 11;
  std::mt19937_64 random(seed);
  int refused = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int times = 0; times < 4; ++times) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + random() % 255));
      const KeptRates kept = ParseSorterRates(changed, kVersion);
      EXPECT_EQ(kept.rates.has_value(), kept.refused.empty());
      refused += kept.refused.empty() ? 0 : 1;
      if (kept.rates) {
        EXPECT_TRUE(Same(*kept.rates, Rates())) << "byte " << at << ", seed " << seed;
      }
    }
  }
  EXPECT_GT(refused, 2 * static_cast<int>(text.size()));
}

TEST(SorterRates, EachKindOfRefusalSaysWhatIsWrong) {
  const std::string text = FormatSorterRates(Rates(), kVersion);
  const auto refused = [](std::string_view other, std::string_view version = kVersion) {
    const KeptRates kept = ParseSorterRates(other, version);
    EXPECT_FALSE(kept.rates.has_value());
    return kept.refused;
  };
  EXPECT_EQ(refused(text, "1.2.4"), "of Tidemark 1.2.3, this is 1.2.4");
  std::string later = text;
  later.replace(later.find("\"format\": 1"), 11, "\"format\": 2");
  EXPECT_EQ(refused(later), "format 2, expected 1");
  std::string faster = text;
  faster.replace(faster.find("300000000.0"), 11, "900000000.0");
  EXPECT_EQ(refused(faster), "it was changed: its checksum is of other rates");
  for (const char* other : {"", "\n", "{}", "[]", "null", "7", "{\"format\":1}", "[grpc]\n",
                            "{\"format\":\"one\"}", "\xff\xfe"}) {
    EXPECT_EQ(refused(other), "it is cut off, or never was a file of rates") << other;
  }
  // As deep as the largest file may be: a stack would not do.
  const std::string deep = R"({"format":1,"checksum":"","rates":)" + std::string(500'000, '[') +
                           std::string(500'000, ']') + "}";
  EXPECT_EQ(refused(deep), "it never was a file of rates");
}

TEST(SorterRates, TextsOfDriversNeedNotBeUtf8) {
  sort::MeasuredRates rates = Rates();
  rates.on.gl_sorters = {"gl-compute on \xff\xc3"};
  const KeptRates kept = ParseSorterRates(FormatSorterRates(rates, kVersion), kVersion);
  EXPECT_EQ(kept.refused, "");
  ASSERT_TRUE(kept.rates.has_value());
  EXPECT_EQ(kept.rates->rows.size(), rates.rows.size());
}

TEST(SorterRates, NoFileIsNoFault) {
  FakeDisk disk;
  const KeptRates kept = ReadSorterRates(disk, kFolder, kVersion);
  EXPECT_FALSE(kept.rates.has_value());
  EXPECT_EQ(kept.refused, "");
}

TEST(SorterRates, AFileReplacesTheOneBefore) {
  FakeDisk disk;
  for (const double factor : {1.0, 0.5}) {
    ASSERT_TRUE(WriteSorterRates(disk, kFolder, Rates(factor), kVersion).ok());
    const KeptRates kept = ReadSorterRates(disk, kFolder, kVersion);
    ASSERT_TRUE(kept.rates.has_value()) << kept.refused;
    EXPECT_TRUE(Same(*kept.rates, Rates(factor)));
    EXPECT_EQ(disk.List(kFolder)->size(), 1u);
  }
  disk.bytes(kPath).resize(100);
  EXPECT_EQ(ReadSorterRates(disk, kFolder, kVersion).refused,
            kPath + ": it is cut off, or never was a file of rates");
  disk.bytes(kPath).assign((1 << 20) + 1, ' ');
  EXPECT_EQ(ReadSorterRates(disk, kFolder, kVersion).refused,
            kPath + ": it has more than 1048576 bytes");
}

// Whatever fails, the old file stays; whenever the machine stops, the old one or the new is there.
TEST(SorterRates, ADiskThatFailsLeavesTheOldFile) {
  for (const DiskOp op : {DiskOp::kCreate, DiskOp::kWrite, DiskOp::kSync, DiskOp::kRename}) {
    FakeDisk disk;
    ASSERT_TRUE(WriteSorterRates(disk, kFolder, Rates(1), kVersion).ok());
    disk.FailAt(op, 1);
    EXPECT_FALSE(WriteSorterRates(disk, kFolder, Rates(2), kVersion).ok());
    const KeptRates kept = ReadSorterRates(disk, kFolder, kVersion);
    ASSERT_TRUE(kept.rates.has_value()) << kept.refused;
    EXPECT_TRUE(Same(*kept.rates, Rates(1)));
    disk.Heal();
    EXPECT_TRUE(WriteSorterRates(disk, kFolder, Rates(2), kVersion).ok());
  }
}

TEST(SorterRates, AMachineThatStopsLeavesTheOldFileOrTheNew) {
  const std::uint64_t seed = 12;
  std::mt19937_64 random(seed);
  int old = 0, replaced = 0;
  for (int round = 0; round < 400; ++round) {
    FakeDisk disk;
    ASSERT_TRUE(WriteSorterRates(disk, kFolder, Rates(1), kVersion).ok());
    disk.StopAt(1 + random() % 6);
    const bool written = WriteSorterRates(disk, kFolder, Rates(0.5), kVersion).ok();
    disk.Crash(random);
    const KeptRates kept = ReadSorterRates(disk, kFolder, kVersion);
    ASSERT_TRUE(kept.rates.has_value()) << kept.refused << ", seed " << seed << ", " << round;
    const bool is_new = Same(*kept.rates, Rates(0.5));
    EXPECT_TRUE(is_new || Same(*kept.rates, Rates(1)));
    EXPECT_TRUE(is_new || !written);
    (is_new ? replaced : old) += 1;
    EXPECT_TRUE(WriteSorterRates(disk, kFolder, Rates(2), kVersion).ok());
  }
  EXPECT_GT(old, 10);
  EXPECT_GT(replaced, 10);
}

}  // namespace
}  // namespace tidemark::server
