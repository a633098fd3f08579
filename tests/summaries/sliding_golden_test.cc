// Serialized sliding windows of every version that was ever written, kept as files: they are read
// for ever, give the answers that are kept beside them, and go on.
//
// golden/sliding/vVERSION-KEY-CASE.record, .quantiles and .frequencies hold the bytes of one
// stream, .answers what is read out of them; golden/sliding_hierarchy has .record and .hierarchy.
// As in golden_test.cc,
//   TIDEMARK_GOLDEN_WRITE=1 summaries_test --gtest_filter='GoldenSliding*'
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_hierarchical_view.h"
#include "summaries/sliding_hierarchy.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"
#include "tests/summaries/hierarchy_reference.h"
#include "tests/support/golden_files.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using testing::Contents;
using testing::WriteIfAbsent;
using testing::WritesGolden;

using Files = std::map<std::string, std::string>;  ///< name or suffix to bytes

/// Quantiles and counts of a stream: few heavy items and many light ones.
template <class Key>
class Items {
 public:
  explicit Items(const SlidingRecord<Key>& record)
      : quantiles_(record.shared_rule()), frequencies_(record.shared_rule()) {}
  explicit Items(const Files& parts)
      : quantiles_(SlidingQuantiles<Key>::Deserialize(parts.at(".quantiles"))),
        frequencies_(SlidingFrequencies<Key>::Deserialize(parts.at(".frequencies"))) {}

  static Key Draw(std::mt19937_64& random) {
    const std::uint64_t range = 1 + random() % 200;
    return static_cast<Key>(random() % range * 0x9E3779B1u);
  }
  void Add(std::span<const Key> sorted, std::uint64_t expired) {
    quantiles_.AddBlock(sorted, expired);
    frequencies_.AddBlock(sorted, expired);
  }
  Files Serialize() const {
    return {{".quantiles", quantiles_.Serialize()}, {".frequencies", frequencies_.Serialize()}};
  }
  void Describe(const SlidingRange& range, const SlidingRecord<Key>& record,
                std::ostream& out) const {
    const auto quantiles = quantiles_.Cover(range, record).View({});
    for (const double phi : {0.0, 0.25, 0.5, 0.99, 1.0}) {
      if (range.end == range.begin) break;
      const auto answer = quantiles.Quantile(phi);
      out << "quantile " << phi << ": " << answer.value << " [" << answer.rank_low << ", "
          << answer.rank_high << "]\n";
    }
    const auto frequencies = frequencies_.Cover(range, record).View({});
    for (const auto& item : frequencies.TopK(3).items) {
      out << "item " << item.key << ": [" << item.count_low << ", " << item.count_high << "]\n";
    }
  }

 private:
  SlidingQuantiles<Key> quantiles_;
  SlidingFrequencies<Key> frequencies_;
};

/// Prefixes of a stream: networks of all sizes.
template <class Key>
class Prefixes {
 public:
  explicit Prefixes(const SlidingRecord<Key>& record)
      : hierarchy_(record.shared_rule(), PrefixLevels<Key>::Every(8)) {}
  explicit Prefixes(const Files& parts)
      : hierarchy_(SlidingHierarchy<Key>::Deserialize(parts.at(".hierarchy"))) {}

  static Key Draw(std::mt19937_64& random) {
    Key key = 0;
    bool apart = false;  // from the one network that holds most of the others
    for (std::size_t byte = 0; byte < sizeof(Key); ++byte) {
      apart = apart || random() % 4 == 0;
      key = static_cast<Key>(key << 8 | (apart ? random() % 200 : 10));
    }
    return key;
  }
  void Add(std::span<const Key> sorted, std::uint64_t expired) {
    hierarchy_.AddBlock(sorted, expired);
  }
  Files Serialize() const { return {{".hierarchy", hierarchy_.Serialize()}}; }
  void Describe(const SlidingRange& range, const SlidingRecord<Key>& record,
                std::ostream& out) const {
    const SlidingHierarchicalView<Key> view(hierarchy_.Cover(range, record), {});
    if (!view.Serves(0.25)) return;
    for (const auto& item : view.HeavyHitters(0.25)) {
      out << "prefix " << testing::Hex(item.prefix) << '/' << view.levels().length(item.level)
          << ": [" << item.count_low << ", " << item.count_high << "] discounted ["
          << item.discounted_low << ", " << item.discounted_high << "]\n";
    }
    const auto absent = view.Count(2, Key{12345});
    out << "prefix " << testing::Hex(absent.key) << ": [" << absent.count_low << ", "
        << absent.count_high << "]\n";
  }

 private:
  SlidingHierarchy<Key> hierarchy_;
};

/// A record and what is summarised beside it.
template <class Key, template <class> class Summaries>
class Windows {
 public:
  explicit Windows(const SlidingOptions& options) : record_(options), summaries_(record_) {}
  explicit Windows(const Files& parts)
      : record_(SlidingRecord<Key>::Deserialize(parts.at(".record"))), summaries_(parts) {}

  /// The next block; the same on every machine, as no library draws it.
  void Add(std::mt19937_64& random) {
    const std::size_t size = record_.rule().block_size();
    auto arrived = std::make_shared_for_overwrite<Key[]>(size);
    for (std::size_t i = 0; i < size; ++i) arrived[i] = Summaries<Key>::Draw(random);
    std::vector<Key> sorted(arrived.get(), arrived.get() + size);
    std::sort(sorted.begin(), sorted.end());
    const auto time = static_cast<std::int64_t>(record_.end() / size) * 10;
    const std::vector<TimedCount> times{{size / 4, time}, {size - size / 4, time + 7}};
    record_.AddBlock(std::move(arrived), times);
    summaries_.Add(sorted, record_.expired());
  }

  Files Serialize() const {
    Files parts = summaries_.Serialize();
    parts[".record"] = record_.Serialize();
    return parts;
  }

  std::string Describe() const {
    std::ostringstream out;
    out.precision(17);
    const SlidingOptions& options = record_.rule().options();
    out << "epsilon " << options.epsilon << "\nvalues " << record_.end() << '\n';
    const auto describe = [&](const SlidingRange& range) {
      out << ": " << range.n_low() << " to " << range.n_high() << " values\n";
      summaries_.Describe(range, record_, out);
    };
    for (std::uint64_t width = 7; width <= options.max_values; width *= 5) {
      out << "last " << width;
      describe(record_.Last(width, 0));
    }
    for (std::int64_t age = 20; age <= options.max_age_us; age *= 3) {
      out << "within " << age;
      describe(record_.Within(age, record_.now_us() + 5, {}));
    }
    return out.str();
  }

  std::uint64_t end() const { return record_.end(); }
  std::size_t block_size() const { return record_.rule().block_size(); }

 private:
  SlidingRecord<Key> record_;
  Summaries<Key> summaries_;
};

template <class Key>
const char* KeyName() {
  return sizeof(Key) == 4 ? "u32" : sizeof(Key) == 8 ? "u64" : "u128";
}

/// What is read out of the files of a stream; and that they come back from being written again, and
/// go on.
template <class Key, template <class> class Summaries>
std::string Read(const fs::path& answers) {
  Files parts;
  for (const char* suffix : {".record", ".quantiles", ".frequencies", ".hierarchy"}) {
    const fs::path path = fs::path(answers).replace_extension(suffix);
    if (fs::exists(path)) parts[suffix] = Contents(path);
  }
  Windows<Key, Summaries> windows(parts);
  std::string text = windows.Describe();
  const Windows<Key, Summaries> again(windows.Serialize());
  EXPECT_EQ(again.Describe(), text);
  std::mt19937_64 random(5);
  const std::uint64_t before = windows.end();
  for (int i = 0; i < 40; ++i) windows.Add(random);
  EXPECT_EQ(windows.end(), before + 40 * windows.block_size());
  return text;
}

/// The streams of one key width, as they are written today.
template <class Key, template <class> class Summaries>
void Keep(const fs::path& folder) {
  const bool write = WritesGolden();
  const struct {
    const char* name;
    std::uint64_t max_values;
    std::int64_t max_age_us;
    int blocks;
  } kCases[] = {{"empty", 5000, 0, 0},
                {"count", 5000, 0, 150},
                {"time", 0, 700, 150},
                {"both", 3000, 300, 101}};
  for (const auto& c : kCases) {
    SlidingOptions options;
    options.epsilon = 0.2;
    options.max_values = c.max_values;
    options.max_age_us = c.max_age_us;
    options.block_size = 64;
    Windows<Key, Summaries> windows(options);
    std::mt19937_64 random(4);
    for (int i = 0; i < c.blocks; ++i) windows.Add(random);
    const fs::path stem = folder / ("v1-" + std::string(KeyName<Key>()) + "-" + c.name);
    for (const auto& [suffix, bytes] : windows.Serialize()) {
      const fs::path path = fs::path(stem).replace_extension(suffix);
      if (write) WriteIfAbsent(path, bytes);
      ASSERT_TRUE(fs::exists(path)) << path << " was removed, or was never written";
      // Magic, version and key width. What is kept of a stream may change without its layout.
      EXPECT_EQ(Contents(path).substr(0, 8), bytes.substr(0, 8)) << path << ": of another version";
    }
    const fs::path answers = fs::path(stem).replace_extension(".answers");
    if (write) WriteIfAbsent(answers, Read<Key, Summaries>(answers));
  }
}

/// Returns how many of this key width there are.
template <class Key, template <class> class Summaries>
int AnswerTheSame(const fs::path& folder) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".answers") continue;
    const std::string name = entry.path().stem().string();
    if (name.find("-" + std::string(KeyName<Key>()) + "-") == std::string::npos) continue;
    SCOPED_TRACE(name);
    EXPECT_EQ((Read<Key, Summaries>(entry.path())), Contents(entry.path()));
    ++read;
  }
  return read;
}

fs::path ItemsFolder() { return fs::path(TIDEMARK_GOLDEN_DIR) / "sliding"; }
fs::path PrefixesFolder() { return fs::path(TIDEMARK_GOLDEN_DIR) / "sliding_hierarchy"; }

TEST(GoldenSliding, EveryVersionThatIsWrittenIsKept) {
  Keep<std::uint32_t, Items>(ItemsFolder());
  Keep<std::uint64_t, Items>(ItemsFolder());
  Keep<std::uint32_t, Prefixes>(PrefixesFolder());
  Keep<std::uint64_t, Prefixes>(PrefixesFolder());
  Keep<Key128, Prefixes>(PrefixesFolder());
}

TEST(GoldenSliding, EveryVersionIsReadAndAnswersTheSame) {
  EXPECT_GE((AnswerTheSame<std::uint32_t, Items>(ItemsFolder())), 4);
  EXPECT_GE((AnswerTheSame<std::uint64_t, Items>(ItemsFolder())), 4);
  EXPECT_GE((AnswerTheSame<std::uint32_t, Prefixes>(PrefixesFolder())), 4);
  EXPECT_GE((AnswerTheSame<std::uint64_t, Prefixes>(PrefixesFolder())), 4);
  EXPECT_GE((AnswerTheSame<Key128, Prefixes>(PrefixesFolder())), 4);
}

}  // namespace
}  // namespace tidemark
