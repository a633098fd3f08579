// Serialized summaries of every version that was ever written, kept as files: they are read for
// ever, and give the answers that are kept beside them.
//
// golden/KIND-vVERSION-KEY-CASE.bin holds the bytes, golden/….answers what is read out of them. A
// new version of a layout, or a new summary, adds files: MakeCurrent() names them, and
//   TIDEMARK_GOLDEN_WRITE=1 summaries_test --gtest_filter='Golden*'
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "summaries/compact_quantiles.h"
#include "summaries/frequency_summary.h"
#include "summaries/frequency_view.h"
#include "summaries/hierarchical_frequency.h"
#include "summaries/hierarchical_view.h"
#include "summaries/quantile_export.h"
#include "summaries/quantile_summary.h"
#include "summaries/quantile_view.h"
#include "tests/summaries/hierarchy_reference.h"
#include "tests/summaries/reference.h"
#include "tests/summaries/weighted_keys.h"
#include "tests/support/golden_files.h"

namespace tidemark {
namespace {

using testing::WeightedKeys;
namespace fs = std::filesystem;
using testing::Contents;
using testing::WriteIfAbsent;
using testing::WritesGolden;

using Files = std::map<std::string, std::string>;  ///< name without suffix to bytes

template <class Key>
std::string KeyName() {
  return sizeof(Key) == 4 ? "u32" : sizeof(Key) == 8 ? "u64" : "u128";
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
template <class Key, class Write>
void MakeCases(const std::string& kind, int version, Write write, Files& files) {
  const std::pair<const char*, std::size_t> cases[] = {
      {"empty", 0}, {"exact", 24}, {"lossy", 3000}};
  for (const auto& [name, count] : cases) {
    const auto keys = Skewed<Key>(count);
    files[kind + "-v" + std::to_string(version) + "-" + KeyName<Key>() + "-" + name] =
        write(std::span<const Key>(keys));
  }
}

/// The summary of windows of eight keys.
template <class Key, class Summary>
Summary Summarized(Summary summary, std::span<const Key> keys) {
  testing::ForEachWindow(
      keys, [] { return std::size_t{8}; },
      [&](std::span<const Key> window) { summary.AddWindow(window); });
  return summary;
}

template <class Summary, class Key>
void Make(const std::string& kind, int version, const Summary& empty, Files& files) {
  MakeCases<Key>(
      kind, version, [&](std::span<const Key> keys) { return Summarized(empty, keys).Serialize(); },
      files);
}

template <class Key>
void MakeOfKey(Files& files) {
  Make<QuantileSummary<Key>, Key>("quantile", 1, QuantileSummary<Key>(0.1), files);
  Make<CompactQuantiles<Key>, Key>("compact", 1, CompactQuantiles<Key>(0.1), files);
  Make<CompactQuantiles<Key>, Key>("tail", 1, CompactQuantiles<Key>(0.1, TailEnd::kUpper), files);
  Make<FrequencySummary<Key>, Key>("frequency", 2, FrequencySummary<Key>(0.02), files);
  Make<WeightedKeys<Key>, Key>("weighted", 1, WeightedKeys<Key>(0.02), files);
  MakeCases<Key>(
      "export", 1,
      [](std::span<const Key> keys) {
        const auto summary = Summarized(CompactQuantiles<Key>(0.1), keys);
        return ExportQuantiles(QuantileView<Key>(summary.Snapshot()));
      },
      files);
}

/// Networks of all sizes, in windows of eight keys.
template <class Key>
void MakeHierarchy(Files& files) {
  const HierarchicalFrequencySummary<Key> empty(0.02, PrefixLevels<Key>::Every(4));
  const std::pair<const char*, std::size_t> cases[] = {
      {"empty", 0}, {"exact", 24}, {"lossy", 3000}};
  for (const auto& [name, count] : cases) {
    std::mt19937_64 random(4);
    std::vector<Key> keys(count);
    for (Key& key : keys) {
      const int shift = static_cast<int>(random() % (8 * sizeof(Key)));
      key = static_cast<Key>(static_cast<Key>(random() % 7) << shift);
    }
    files["hierarchy-v1-" + KeyName<Key>() + "-" + name] = Summarized<Key>(empty, keys).Serialize();
  }
}

Files MakeCurrent() {
  Files files;
  MakeOfKey<std::uint32_t>(files);
  MakeOfKey<std::uint64_t>(files);
  MakeHierarchy<std::uint32_t>(files);
  MakeHierarchy<std::uint64_t>(files);
  MakeHierarchy<Key128>(files);
  return files;
}

template <class Key>
void DescribeQuantiles(const QuantileView<Key>& view, std::ostream& out) {
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
void Describe(const QuantileSummary<Key>& summary, std::ostream& out) {
  DescribeQuantiles(QuantileView<Key>(summary.Snapshot()), out);
}
template <class Key>
void Describe(const CompactQuantiles<Key>& summary, std::ostream& out) {
  DescribeQuantiles(QuantileView<Key>(summary.Snapshot()), out);
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

template <class Key>
void Describe(const HierarchicalFrequencySummary<Key>& summary, std::ostream& out) {
  out << "levels";
  for (const int length : summary.levels().lengths()) out << ' ' << length;
  out << '\n';
  const HierarchicalView<Key> view(summary.Snapshot());
  for (const auto& item : view.HeavyHitters(0.05)) {
    out << "prefix " << testing::Hex(item.prefix) << '/' << summary.levels().length(item.level)
        << ": [" << item.count_low << ", " << item.count_high << "] discounted ["
        << item.discounted_low << ", " << item.discounted_high << "]\n";
  }
  const auto absent = view.Count(3, Key{12345});
  out << "prefix " << testing::Hex(absent.key) << ": [" << absent.count_low << ", "
      << absent.count_high << "]\n";
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

/// Of an export.
template <class Key>
std::string ReadExport(const std::string& bytes) {
  const QuantileView<Key> view(ImportQuantiles<Key>(bytes));
  std::ostringstream out;
  out.precision(17);
  out << "n " << view.n() << "\nepsilon " << view.epsilon() << '\n';
  DescribeQuantiles(view, out);
  return out.str();
}

template <class Key>
std::string ReadOfKey(const std::string& kind, const std::string& bytes) {
  if (kind == "quantile") return Read<QuantileSummary<Key>, Key>(bytes);
  if (kind == "compact" || kind == "tail") return Read<CompactQuantiles<Key>, Key>(bytes);
  if (kind == "frequency") return Read<FrequencySummary<Key>, Key>(bytes);
  if (kind == "weighted") return Read<WeightedKeys<Key>, Key>(bytes);
  if (kind == "hierarchy") return Read<HierarchicalFrequencySummary<Key>, Key>(bytes);
  if (kind == "export") return ReadExport<Key>(bytes);
  return "no summary is called so";
}

std::string ReadAny(const std::string& name, const std::string& bytes) {
  const std::string kind = name.substr(0, name.find('-'));
  if (name.find("-u128-") != std::string::npos) {
    return Read<HierarchicalFrequencySummary<Key128>, Key128>(bytes);
  }
  return name.find("-u32-") != std::string::npos ? ReadOfKey<std::uint32_t>(kind, bytes)
                                                 : ReadOfKey<std::uint64_t>(kind, bytes);
}

fs::path Folder() { return fs::path(TIDEMARK_GOLDEN_DIR); }

TEST(Golden, EveryVersionThatIsWrittenIsKept) {
  for (const auto& [name, bytes] : MakeCurrent()) {
    const fs::path path = Folder() / (name + ".bin");
    if (WritesGolden()) {
      WriteIfAbsent(path, bytes);
      WriteIfAbsent(Folder() / (name + ".answers"), ReadAny(name, bytes));
    }
    ASSERT_TRUE(fs::exists(path)) << path << " was removed, or was never written";
    // Magic, version and key width. What is kept of a stream may change without its layout.
    EXPECT_EQ(Contents(path).substr(0, 8), bytes.substr(0, 8)) << name << ": has another version";
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
  EXPECT_GE(read, 51);
}

}  // namespace
}  // namespace tidemark
