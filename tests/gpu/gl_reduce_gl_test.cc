// The reducers on a device against the same from whole channels, to the bit, on whatever GL there
// is. Fails, rather than skips, where no GL context can be opened.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/gl_check.h"
#include "gpu/reduce/gl_compute_reducer.h"
#include "gpu/reduce/gl_raster_reducer.h"

namespace tidemark::reduce {
namespace {

// A window of each channel, sorted, as texels; what lies behind its keys is arbitrary.
template <class Key>
struct Windows {
  std::array<std::vector<Key>, kReducedChannels> keys;
  gl::Texture high, low;
  SortedTexels texels;

  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  Windows(std::uint32_t width_log2, std::uint32_t height_log2,
          std::array<std::vector<Key>, kReducedChannels> keys_in)
      : keys(std::move(keys_in)), high(1 << width_log2, 1 << height_log2) {
    constexpr bool kWide = sizeof(Key) == 8;
    std::mt19937 random(9);
    const std::size_t size = std::size_t{1} << (width_log2 + height_log2);
    std::vector<std::uint32_t> high_words(kReducedChannels * size), low_words;
    for (std::uint32_t& word : high_words) word = random() % 4;
    if (kWide) low_words = high_words;
    texels.width_log2 = width_log2;
    texels.height_log2 = height_log2;
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      texels.lengths[c] = static_cast<std::uint32_t>(keys[c].size());
      std::sort(keys[c].begin(), keys[c].end());
      for (std::size_t i = 0; i < keys[c].size(); ++i) {
        if constexpr (kWide) {
          high_words[kReducedChannels * i + c] = static_cast<std::uint32_t>(keys[c][i] >> 32);
          low_words[kReducedChannels * i + c] = static_cast<std::uint32_t>(keys[c][i]);
        } else {
          high_words[kReducedChannels * i + c] = keys[c][i];
        }
      }
    }
    high.Upload(1 << width_log2, 1 << height_log2, high_words.data());
    texels.high = &high;
    if (kWide) {
      low = gl::Texture(1 << width_log2, 1 << height_log2);
      low.Upload(1 << width_log2, 1 << height_log2, low_words.data());
      texels.low = &low;
    }
    Pack();
  }

  // The same side by side, for the compute form.
  gl::Buffer packed_keys;
  SortedBuffer packed;

 private:
  void Pack() {
    std::vector<Key> all(3);  // the first window does not begin at the start
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      packed.lengths[c] = texels.lengths[c];
      packed.key_at[c] = all.size() * sizeof(Key);
      all.insert(all.end(), keys[c].begin(), keys[c].end());
    }
    packed_keys = gl::Buffer(all.size() * sizeof(Key), gl::Buffer::Use::kDevice);
    packed_keys.Write(reinterpret_cast<const std::byte*>(all.data()), all.size() * sizeof(Key));
    packed.keys = &packed_keys;
  }
};

template <class Key>
std::vector<Key> Draw(std::size_t n, std::uint64_t different, std::mt19937_64& random) {
  std::vector<Key> keys(n);
  for (Key& key : keys) {
    const std::uint64_t drawn = random() % different;
    // Spread over both words, the ends of the range among them.
    key = drawn == 0 ? Key{0} : static_cast<Key>(~(drawn * (~std::uint64_t{0} / different)));
  }
  return keys;
}

template <class Key>
void ExpectReduced(GlRasterReducer& reducer, const Windows<Key>& windows,
                   const RasterReduction& how) {
  const ReducedWords runs = reducer.Runs(windows.texels, how);
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    ASSERT_EQ(RunsOf<Key>(runs, c), RunsOf<Key>(std::span<const Key>(windows.keys[c])))
        << "channel " << c << " of " << windows.keys[c].size() << " keys";
  }
}

template <class Key>
void ExpectReduced(GlComputeReducer& reducer, const Windows<Key>& windows) {
  const auto runs = reducer.Runs<Key>(windows.packed);
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    ASSERT_EQ(runs[c], RunsOf<Key>(std::span<const Key>(windows.keys[c])))
        << "compute, channel " << c << " of " << windows.keys[c].size() << " keys";
  }
}

template <class Key>
class GlReduceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      context_.emplace(egl::HeadlessContext::Open(true));
      reducer_ = std::make_unique<GlRasterReducer>();
      compute_ = std::make_unique<GlComputeReducer>();
    } catch (const std::runtime_error& error) {
      why_not_ = error.what();
    }
  }
  static void TearDownTestSuite() {
    reducer_.reset();
    compute_.reset();
    context_.reset();
  }
  void SetUp() override {
    ASSERT_NE(compute_, nullptr) << "these tests need an EGL driver, Mesa's software rasteriser "
                                    "will do (Debian: libegl1 libegl-mesa0 libgl1-mesa-dri "
                                    "libopengl0): "
                                 << why_not_;
  }
  static GlRasterReducer& reducer() { return *reducer_; }
  static GlComputeReducer& compute() { return *compute_; }

 private:
  static inline std::optional<egl::HeadlessContext> context_;
  static inline std::unique_ptr<GlRasterReducer> reducer_;
  static inline std::unique_ptr<GlComputeReducer> compute_;
  static inline std::string why_not_;
};

using Keys = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(GlReduceTest, Keys);

TYPED_TEST(GlReduceTest, EveryShapeBlockAndScan) {
  std::mt19937_64 random(1);
  for (std::uint32_t log2_keys = 0; log2_keys <= 12; ++log2_keys) {
    const std::size_t size = std::size_t{1} << log2_keys;
    for (int round = 0; round < 6; ++round) {
      std::array<std::vector<TypeParam>, kReducedChannels> keys;
      for (auto& channel : keys) {
        const std::size_t n = round == 0 ? size : random() % (size + 1);
        channel = Draw<TypeParam>(n, 1 + random() % (round % 2 == 0 ? 10 : 4 * size), random);
      }
      const Windows<TypeParam> windows((log2_keys + 1) / 2, log2_keys / 2, std::move(keys));
      ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), windows));
      for (const ScanMethod scan : {ScanMethod::kHillisSteele, ScanMethod::kBlelloch}) {
        const auto block = static_cast<std::uint32_t>(random() % 9);
        SCOPED_TRACE("2^" + std::to_string(log2_keys) + " keys, blocks of 2^" +
                     std::to_string(block) + ", round " + std::to_string(round));
        ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), windows, {true, block, scan}));
        ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), windows, {false, 0, scan}));
      }
    }
  }
}

TYPED_TEST(GlReduceTest, ExtremeWindows) {
  constexpr std::uint32_t kLog2 = 10;
  constexpr std::size_t kSize = std::size_t{1} << kLog2;
  std::vector<TypeParam> ascending(kSize), same(kSize, 7), largest(kSize, TypeParam(~TypeParam{0}));
  for (std::size_t i = 0; i < kSize; ++i) ascending[i] = static_cast<TypeParam>(i);
  const Windows<TypeParam> full(5, 5, {ascending, same, largest, ascending});
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), full, {}));
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), full));
  const Windows<TypeParam> mixed(5, 5, {ascending, {}, {3}, {~TypeParam{0}, ~TypeParam{0}, 0}});
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), mixed, {}));
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), mixed));
  const Windows<TypeParam> empty(5, 5, {});
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), empty, {}));
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), empty));
}

TYPED_TEST(GlReduceTest, SmallAfterLarge) {
  std::mt19937_64 random(2);
  for (const std::uint32_t log2_keys : {14U, 3U, 9U, 13U, 1U}) {
    std::array<std::vector<TypeParam>, kReducedChannels> keys;
    for (auto& channel : keys) {
      channel = Draw<TypeParam>(random() % ((1U << log2_keys) + 1), 1U << log2_keys, random);
    }
    const Windows<TypeParam> windows((log2_keys + 1) / 2, log2_keys / 2, std::move(keys));
    ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), windows, {}));
    ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), windows));
  }
}

// More blocks than a workgroup adds up in one go.
TYPED_TEST(GlReduceTest, ManyBlocks) {
  std::mt19937_64 random(4);
  std::array<std::vector<TypeParam>, kReducedChannels> keys;
  keys[0] = Draw<TypeParam>((1 << 20) - 5, 1 << 20, random);
  keys[2] = Draw<TypeParam>(600'001, 40, random);
  const Windows<TypeParam> windows(10, 10, std::move(keys));
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->compute(), windows));
}

TYPED_TEST(GlReduceTest, SamplesAtAnyStride) {
  std::mt19937_64 random(3);
  for (std::uint32_t log2_keys = 0; log2_keys <= 12; ++log2_keys) {
    for (int round = 0; round < 8; ++round) {
      std::array<std::vector<TypeParam>, kReducedChannels> keys;
      const std::size_t size = std::size_t{1} << log2_keys;
      for (auto& channel : keys) {
        channel = Draw<TypeParam>(round == 0 ? size : random() % (size + 1), 1'000'000, random);
      }
      const Windows<TypeParam> windows((log2_keys + 1) / 2, log2_keys / 2, std::move(keys));
      const auto stride = static_cast<std::uint32_t>(1 + random() % (size + 3));
      const SamplePlaces places{static_cast<std::uint32_t>(random() % (stride + 2)), stride};
      const ReducedWords words = this->reducer().Samples(windows.texels, places);
      const auto computed = this->compute().template Samples<TypeParam>(windows.packed, places);
      for (std::size_t c = 0; c < kReducedChannels; ++c) {
        ASSERT_EQ(SamplesOf<TypeParam>(words, c),
                  SamplesOf<TypeParam>(std::span<const TypeParam>(windows.keys[c]), places))
            << "stride " << stride << " of " << windows.keys[c].size();
        ASSERT_EQ(SamplesOf<TypeParam>(words, c), computed[c]);
      }
    }
  }
}

// Each channel at places of its own, some with nothing wanted, in the caller's buffers.
TYPED_TEST(GlReduceTest, SamplesOfEachChannelAtItsPlaces) {
  std::mt19937_64 random(5);
  FoundSamples found;
  for (int round = 0; round < 40; ++round) {
    std::array<std::vector<TypeParam>, kReducedChannels> keys;
    for (auto& channel : keys) channel = Draw<TypeParam>(random() % 4096, 1'000'000, random);
    Windows<TypeParam> windows(6, 6, std::move(keys));
    std::array<SamplePlaces, kReducedChannels> places;
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      const auto stride = static_cast<std::uint32_t>(1 + random() % (random() % 2 ? 5 : 5000));
      places[c] = {random() % 2 ? stride - 1 : 0, stride};
      if (random() % 4 == 0) windows.packed.lengths[c] = 0;
    }
    places[0].stride = ~std::uint32_t{0};
    this->compute().template WriteSamples<TypeParam>(windows.packed, places, found);
    for (std::size_t c = 0; c < kReducedChannels; ++c) {
      const auto wanted = std::span<const TypeParam>(windows.keys[c]);
      std::vector<TypeParam> read(places[c].Count(windows.packed.lengths[c]));
      if (!read.empty()) {
        found.keys.Read(reinterpret_cast<std::byte*>(read.data()), read.size() * sizeof(TypeParam),
                        c * found.room * sizeof(TypeParam));
      }
      ASSERT_EQ(read, SamplesOf<TypeParam>(wanted.first(windows.packed.lengths[c]), places[c]))
          << "round " << round << ", channel " << c;
    }
  }
}

TYPED_TEST(GlReduceTest, AFailingCallIsAnErrorThatNamesTheStep) {
  const Windows<TypeParam> windows(3, 3, {std::vector<TypeParam>{1, 1, 2}});
  glBindTexture(GL_ARRAY_BUFFER, 0);  // GL_INVALID_ENUM
  try {
    this->reducer().Runs(windows.texels);
    FAIL() << "no exception";
  } catch (const gl::GlError& error) {
    EXPECT_NE(std::string(error.what()).find("failed: GL_INVALID_ENUM"), std::string::npos)
        << error.what();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectReduced(this->reducer(), windows, {}));
}

}  // namespace
}  // namespace tidemark::reduce
