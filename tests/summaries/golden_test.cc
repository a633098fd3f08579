// Serialized summaries of every version that was ever written, kept as files: they are read for
// ever, and give the answers that are kept beside them.
//
// golden/KIND-vVERSION-KEY-CASE.bin holds the bytes, golden/….answers what is read out of them. A
// new version of a layout, or a new summary, adds files: MakeCurrent() names them, and
//   TIDEMARK_GOLDEN_WRITE=1 summaries_test --gtest_filter='Golden*'
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/weighted_keys.h"

namespace tidemark {
namespace {

using testing::WeightedKeys;
namespace fs = std::filesystem;

using Files = std::map<std::string, std::string>;  ///< name without suffix to bytes

template <class Key>
std::string KeyName() {
  return sizeof(Key) == 4 ? "u32" : "u64";
}

/// Few heavy items and many light ones; the same on every machine, as no library draws them.
template <class Key>
std::vector<Key> Skewed(std::size_t count) {
  std::mt19937_64 random(4);
  std::vector<Key> keys(count);
  for (Key& key : keys) {
    const std::uint64_t range = 1 + random() % 200;
    key = static_cast<Key>(random() % range * 0x9E3779B1u);
  }
  return keys;
}

/// `version` is that of the layout today: a later one adds a call and leaves the earlier files.
template <class Summary, class Key>
void Make(const std::string& kind, int version, double epsilon, Files& files) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"empty", 0}, {"exact", 24}, {"lossy", 3000}};
  for (const auto& [name, count] : cases) {
    Summary summary(epsilon);
    const auto keys = Skewed<Key>(count);
    testing::ForEachWindow(
        std::span<const Key>(keys), [] { return std::size_t{8}; },
        [&](std::span<const Key> window) { summary.AddWindow(window); });
    files[kind + "-v" + std::to_string(version) + "-" + KeyName<Key>() + "-" + name] =
        summary.Serialize();
  }
}

Files MakeCurrent() {
  Files files;
  Make<QuantileSummary<std::uint32_t>, std::uint32_t>("quantile", 1, 0.1, files);
  Make<QuantileSummary<std::uint64_t>, std::uint64_t>("quantile", 1, 0.1, files);
  Make<FrequencySummary<std::uint32_t>, std::uint32_t>("frequency", 2, 0.02, files);
  Make<FrequencySummary<std::uint64_t>, std::uint64_t>("frequency", 2, 0.02, files);
  Make<WeightedKeys<std::uint32_t>, std::uint32_t>("weighted", 1, 0.02, files);
  Make<WeightedKeys<std::uint64_t>, std::uint64_t>("weighted", 1, 0.02, files);
  return files;
}

template <class Key>
void Describe(const QuantileSummary<Key>& summary, std::ostream& out) {
  const QuantileView<Key> view(summary.Snapshot());
  for (const double phi : {0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0}) {
    if (view.n() == 0) break;
    const auto answer = view.Quantile(phi);
    out << "quantile " << phi << ": " << answer.value << " [" << answer.rank_low << ", "
        << answer.rank_high << "]\n";
  }
  for (const Key key : {Key{0}, Key{1000}, static_cast<Key>(-1)}) {
    const RankBounds bounds = view.Bounds(key);
    out << "rank of " << key << ": [" << bounds.at_most_low << ", " << bounds.at_most_high << "]\n";
  }
}

template <class Key>
void DescribeItems(const FrequencyView<Key>& view, std::ostream& out) {
  for (const auto& item : view.HeavyHitters(0.02)) {
    out << "item " << item.key << ": [" << item.count_low << ", " << item.count_high << "]\n";
  }
  const auto absent = view.Count(12345);
  out << "item 12345: [" << absent.count_low << ", " << absent.count_high << "]\n";
}

template <class Key>
void Describe(const FrequencySummary<Key>& summary, std::ostream& out) {
  DescribeItems(FrequencyView<Key>(summary.Snapshot()), out);
}
template <class Key>
void Describe(const WeightedKeys<Key>& summary, std::ostream& out) {
  DescribeItems(FrequencyView<Key>(summary.Snapshot()), out);
}

/// What is read out of `bytes`; and that it comes back from being written again, and goes on.
template <class Summary, class Key>
std::string Read(const std::string& bytes) {
  auto summary = Summary::Deserialize(bytes);
  const auto describe = [](const Summary& of) {
    std::ostringstream out;
    out.precision(17);
    out << "n " << of.count() << "\nepsilon " << of.epsilon() << "\nexact " << of.exact() << '\n';
    Describe(of, out);
    return out.str();
  };
  std::string text = describe(summary);
  EXPECT_EQ(describe(Summary::Deserialize(summary.Serialize())), text);
  const std::uint64_t before = summary.count();
  summary.AddWindow(std::vector<Key>(8, Key{4}));
  EXPECT_EQ(summary.count(), before + 8);
  return text;
}

std::string ReadAny(const std::string& name, const std::string& bytes) {
  const bool narrow = name.find("-u32-") != std::string::npos;
  if (name.starts_with("quantile-")) {
    return narrow ? Read<QuantileSummary<std::uint32_t>, std::uint32_t>(bytes)
                  : Read<QuantileSummary<std::uint64_t>, std::uint64_t>(bytes);
  }
  if (name.starts_with("frequency-")) {
    return narrow ? Read<FrequencySummary<std::uint32_t>, std::uint32_t>(bytes)
                  : Read<FrequencySummary<std::uint64_t>, std::uint64_t>(bytes);
  }
  if (name.starts_with("weighted-")) {
    return narrow ? Read<WeightedKeys<std::uint32_t>, std::uint32_t>(bytes)
                  : Read<WeightedKeys<std::uint64_t>, std::uint64_t>(bytes);
  }
  return "no summary is called so";
}

fs::path Folder() { return fs::path(TIDEMARK_GOLDEN_DIR); }

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteIfAbsent(const fs::path& path, const std::string& contents) {
  if (fs::exists(path)) return;
  std::ofstream(path, std::ios::binary) << contents;
}

TEST(Golden, WhatIsWrittenTodayIsKept) {
  for (const auto& [name, bytes] : MakeCurrent()) {
    const fs::path path = Folder() / (name + ".bin");
    if (std::getenv("TIDEMARK_GOLDEN_WRITE") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
      WriteIfAbsent(path, bytes);
      WriteIfAbsent(Folder() / (name + ".answers"), ReadAny(name, bytes));
    }
    ASSERT_TRUE(fs::exists(path)) << path << " was removed, or was never written";
    EXPECT_EQ(Contents(path), bytes) << name << ": bytes have changed, so the version must";
  }
}

TEST(Golden, EveryVersionIsReadAndAnswersTheSame) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() != ".bin") continue;
    const std::string name = entry.path().stem().string();
    SCOPED_TRACE(name);
    fs::path answers = entry.path();
    answers.replace_extension(".answers");
    ASSERT_TRUE(fs::exists(answers));
    EXPECT_EQ(ReadAny(name, Contents(entry.path())), Contents(answers));
    ++read;
  }
  EXPECT_GE(read, 24);
}

}  // namespace
}  // namespace tidemark
