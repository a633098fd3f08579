// Serialized sliding windows of every version that was ever written, kept as files: they are read
// for ever, give the answers that are kept beside them, and go on.
//
// golden/sliding/vVERSION-KEY-CASE.record, .quantiles and .frequencies hold the bytes of one
// stream, .answers what is read out of them. As in golden_test.cc,
//   TIDEMARK_GOLDEN_WRITE=1 summaries_test --gtest_filter='GoldenSliding*'
// writes those that are not there yet. A file that is there is never written again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "summaries/sliding_frequencies.h"
#include "summaries/sliding_quantiles.h"
#include "summaries/sliding_record.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

template <class Key>
struct Windows {
  explicit Windows(const SlidingOptions& options)
      : record(options), quantiles(record.shared_rule()), frequencies(record.shared_rule()) {}
  Windows(const std::string& record_bytes, const std::string& quantile_bytes,
          const std::string& frequency_bytes)
      : record(SlidingRecord<Key>::Deserialize(record_bytes)),
        quantiles(SlidingQuantiles<Key>::Deserialize(quantile_bytes)),
        frequencies(SlidingFrequencies<Key>::Deserialize(frequency_bytes)) {}

  /// Few heavy items and many light ones; the same on every machine, as no library draws them.
  void Add(std::mt19937_64& random) {
    const std::size_t size = record.rule().block_size();
    auto arrived = std::make_shared_for_overwrite<Key[]>(size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t range = 1 + random() % 200;
      arrived[i] = static_cast<Key>(random() % range * 0x9E3779B1u);
    }
    std::vector<Key> sorted(arrived.get(), arrived.get() + size);
    std::sort(sorted.begin(), sorted.end());
    const auto time = static_cast<std::int64_t>(record.end() / size) * 10;
    const std::vector<TimedCount> times{{size / 4, time}, {size - size / 4, time + 7}};
    record.AddBlock(std::move(arrived), times);
    quantiles.AddBlock(sorted, record.expired());
    frequencies.AddBlock(sorted, record.expired());
  }

  SlidingRecord<Key> record;
  SlidingQuantiles<Key> quantiles;
  SlidingFrequencies<Key> frequencies;
};

using Files = std::map<std::string, std::string>;  ///< name with suffix to bytes

template <class Key>
Windows<Key> Made(std::uint64_t max_values, std::int64_t max_age_us, int blocks) {
  SlidingOptions options;
  options.epsilon = 0.2;
  options.max_values = max_values;
  options.max_age_us = max_age_us;
  options.block_size = 64;
  Windows<Key> windows(options);
  std::mt19937_64 random(4);
  for (int i = 0; i < blocks; ++i) windows.Add(random);
  return windows;
}

template <class Key>
void MakeOfKey(const std::string& name, Files& files) {
  const auto put = [&](const char* of, const Windows<Key>& windows) {
    const std::string stem = "v1-" + name + "-" + of;
    files[stem + ".record"] = windows.record.Serialize();
    files[stem + ".quantiles"] = windows.quantiles.Serialize();
    files[stem + ".frequencies"] = windows.frequencies.Serialize();
  };
  put("empty", Made<Key>(5000, 0, 0));
  put("count", Made<Key>(5000, 0, 150));
  put("time", Made<Key>(0, 700, 150));
  put("both", Made<Key>(3000, 300, 101));
}

Files MakeCurrent() {
  Files files;
  MakeOfKey<std::uint32_t>("u32", files);
  MakeOfKey<std::uint64_t>("u64", files);
  return files;
}

template <class Key>
void DescribeWindow(const Windows<Key>& windows, const SlidingRange& range, std::ostream& out) {
  out << ": " << range.n_low() << " to " << range.n_high() << " values\n";
  const auto quantiles = windows.quantiles.Cover(range, windows.record).View({});
  for (const double phi : {0.0, 0.25, 0.5, 0.99, 1.0}) {
    if (range.end == range.begin) break;
    const auto answer = quantiles.Quantile(phi);
    out << "quantile " << phi << ": " << answer.value << " [" << answer.rank_low << ", "
        << answer.rank_high << "]\n";
  }
  const auto frequencies = windows.frequencies.Cover(range, windows.record).View({});
  for (const auto& item : frequencies.TopK(3).items) {
    out << "item " << item.key << ": [" << item.count_low << ", " << item.count_high << "]\n";
  }
}

template <class Key>
std::string Describe(const Windows<Key>& windows) {
  std::ostringstream out;
  out.precision(17);
  const SlidingOptions& options = windows.record.rule().options();
  out << "epsilon " << options.epsilon << "\nvalues " << windows.record.end() << '\n';
  for (std::uint64_t width = 7; width <= options.max_values; width *= 5) {
    out << "last " << width;
    DescribeWindow(windows, windows.record.Last(width, 0), out);
  }
  for (std::int64_t age = 20; age <= options.max_age_us; age *= 3) {
    out << "within " << age;
    DescribeWindow(windows, windows.record.Within(age, windows.record.now_us() + 5, {}), out);
  }
  return out.str();
}

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteIfAbsent(const fs::path& path, const std::string& contents) {
  if (fs::exists(path)) return;
  std::ofstream(path, std::ios::binary) << contents;
}

/// What is read out of the files of a stream; and that they come back from being written again, and
/// go on.
template <class Key>
std::string Read(fs::path path) {
  const auto bytes = [&](const char* suffix) { return Contents(path.replace_extension(suffix)); };
  Windows<Key> windows(bytes(".record"), bytes(".quantiles"), bytes(".frequencies"));
  std::string text = Describe(windows);
  const Windows<Key> again(windows.record.Serialize(), windows.quantiles.Serialize(),
                           windows.frequencies.Serialize());
  EXPECT_EQ(Describe(again), text);
  std::mt19937_64 random(5);
  const std::uint64_t before = windows.record.end();
  for (int i = 0; i < 40; ++i) windows.Add(random);
  EXPECT_EQ(windows.record.end(), before + 40 * windows.record.rule().block_size());
  return text;
}

std::string ReadAny(const fs::path& path) {
  return path.stem().string().find("-u32-") != std::string::npos ? Read<std::uint32_t>(path)
                                                                 : Read<std::uint64_t>(path);
}

fs::path Folder() { return fs::path(TIDEMARK_GOLDEN_DIR) / "sliding"; }

TEST(GoldenSliding, EveryVersionThatIsWrittenIsKept) {
  const bool write =
      std::getenv("TIDEMARK_GOLDEN_WRITE") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  for (const auto& [name, bytes] : MakeCurrent()) {
    const fs::path path = Folder() / name;
    if (write) WriteIfAbsent(path, bytes);
    ASSERT_TRUE(fs::exists(path)) << path << " was removed, or was never written";
    // Magic, version and key width. What is kept of a stream may change without its layout.
    EXPECT_EQ(Contents(path).substr(0, 8), bytes.substr(0, 8)) << name << ": has another version";
  }
  if (!write) return;
  for (const auto& [name, bytes] : MakeCurrent()) {
    WriteIfAbsent((Folder() / name).replace_extension(".answers"), ReadAny(Folder() / name));
  }
}

TEST(GoldenSliding, EveryVersionIsReadAndAnswersTheSame) {
  int read = 0;
  for (const auto& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() != ".answers") continue;
    SCOPED_TRACE(entry.path().stem().string());
    EXPECT_EQ(ReadAny(entry.path()), Contents(entry.path()));
    ++read;
  }
  EXPECT_GE(read, 8);
}

}  // namespace
}  // namespace tidemark
