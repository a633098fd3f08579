// Reduces sorted windows on the device by drawing: the faithful form of Roger, Assarson, Holzschuch
// (Efficient Stream Reduction on the GPU, 2007), for contexts without compute shaders and as the
// baseline of the compute form.
//
// Four channels at once up to the search; the lines of the last step lie elsewhere in each channel,
// so that each is drawn for one channel, the others masked. stream_reduction.h has the same steps
// without GL.
#ifndef TIDEMARK_GPU_REDUCE_GL_RASTER_REDUCER_H_
#define TIDEMARK_GPU_REDUCE_GL_RASTER_REDUCER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/gl/framebuffer.h"
#include "gpu/gl/program.h"
#include "gpu/gl/texture.h"
#include "gpu/gl/vertex_array.h"
#include "gpu/reduce/prefix_scan.h"
#include "gpu/reduce/reduced_channel.h"

namespace tidemark::reduce {

/// Sorted windows on the device, one a channel. Key i of each lies at column i mod 2^width_log2.
struct SortedTexels {
  const gl::Texture* high = nullptr;
  const gl::Texture* low = nullptr;  ///< of keys of 64 bits; null for 32
  std::uint32_t width_log2 = 0;
  std::uint32_t height_log2 = 0;
  /// Keys of each channel; what lies behind them is not looked at.
  std::array<std::uint32_t, kReducedChannels> lengths{};
};

/// Words of four channels, as read back; `low` is empty for keys of 32 bits.
struct ReducedWords {
  std::array<std::vector<std::uint32_t>, kReducedChannels> high, low;
  /// Of runs: keys up to the last one of each. Empty for samples.
  std::array<std::vector<std::uint32_t>, kReducedChannels> end;
};

/// How the runs are found.
struct RasterReduction {
  bool by_blocks = true;         ///< else the whole stream at once, with plain searches (Horn)
  std::uint32_t block_log2 = 6;  ///< 64 was best in all of the paper's measurements
  ScanMethod scan = ScanMethod::kHillisSteele;
};

/// Thread: the one on which the context is current. Errors: throws gl::GlError.
/// Memory on the device: textures of up to eight times the windows' size, kept for the next time.
class GlRasterReducer {
 public:
  /// `observer` is called before each of the steps "sum inside blocks", "search", "sum of blocks",
  /// "lines" and "read back" of Runs, on the context's thread; benchmarks time them from it.
  explicit GlRasterReducer(std::function<void(std::string_view step)> observer = {});

  /// The run-length encoding of each channel.
  ReducedWords Runs(const SortedTexels& windows, const RasterReduction& how = {});
  /// The keys at `places` of each channel.
  ReducedWords Samples(const SortedTexels& windows, const SamplePlaces& places);

 private:
  // A texture of one kind of number, or of a key's words and a number, that is drawn to.
  struct Target {
    std::array<gl::Texture, 3> texture;
    gl::Framebuffer framebuffer;
    int width = 0, height = 0;
    std::size_t words = 0;
  };
  // What a texture holds: 2^width_log2 columns.
  struct Shape {
    std::uint32_t width_log2 = 0, height_log2 = 0;
  };

  static void Provide(Target& target, Shape shape, std::size_t words);
  void Draw(const Target& target, Shape shape);
  // Sums of the blocks of sums_[from]; which of both holds them then.
  std::size_t Scan(std::array<Target, 2>& sums, Shape shape, std::uint32_t block_log2,
                   ScanMethod method);
  void Gather(const SortedTexels& windows, const gl::Texture& sums, std::uint32_t block_log2,
              bool improved);
  void Concatenate(const gl::Texture& block_sums, Shape blocks, std::uint32_t block_log2,
                   Shape shape, std::size_t words);
  static void BindKeys(const SortedTexels& windows, unsigned unit);
  static ReducedWords ReadRuns(const Target& target, Shape shape,
                               const std::array<std::uint32_t, kReducedChannels>& counts,
                               bool wide);

  void Observe(std::string_view step) const {
    if (observer_) observer_(step);
  }

  const std::function<void(std::string_view)> observer_;
  gl::VertexArray vertex_array_;
  gl::Program unwanted_, scan_step_, block_sum_, gather_, lines_, samples_;
  std::array<Target, 2> sums_, block_sums_;
  Target found_, moved_, sampled_;
};

/// One channel as runs or as samples. REQUIRES: of keys of that width.
template <class Key>
Key KeyOf(const ReducedWords& words, std::size_t channel, std::size_t i) {
  if constexpr (sizeof(Key) == sizeof(std::uint32_t)) {
    return words.high[channel][i];
  } else {
    return (Key{words.high[channel][i]} << 32) | words.low[channel][i];
  }
}
template <class Key>
std::vector<KeyRun<Key>> RunsOf(const ReducedWords& words, std::size_t channel) {
  std::vector<KeyRun<Key>> runs;
  for (std::size_t i = 0; i < words.end[channel].size(); ++i) {
    runs.push_back({KeyOf<Key>(words, channel, i), words.end[channel][i]});
  }
  return runs;
}
template <class Key>
std::vector<Key> SamplesOf(const ReducedWords& words, std::size_t channel) {
  std::vector<Key> samples;
  for (std::size_t i = 0; i < words.high[channel].size(); ++i) {
    samples.push_back(KeyOf<Key>(words, channel, i));
  }
  return samples;
}

}  // namespace tidemark::reduce

#endif  // TIDEMARK_GPU_REDUCE_GL_RASTER_REDUCER_H_
