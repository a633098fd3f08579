// The GL side of a sorter of textures, as its callers' side (gl_texel_sorter.h) sees it.
#ifndef TIDEMARK_GPU_SORT_GL_TEXEL_ENGINE_H_
#define TIDEMARK_GPU_SORT_GL_TEXEL_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "gpu/gl/capabilities.h"
#include "gpu/sort/sort_counts.h"

namespace tidemark::sort {

/// Where key i of channel c lies.
enum class TexelLayout : std::uint8_t {
  kInterleaved,   ///< word 4 i + c: the four channels are the components of a texel
  kConcatenated,  ///< word c 2^log2_keys + i: one channel after the other
};

/// Windows on their way to the GPU and back. 64-bit keys have their high words in `high` and their
/// low words in `low`; 32-bit keys leave `low` empty.
struct Texels {
  TexelLayout layout = TexelLayout::kInterleaved;
  std::uint32_t log2_keys = 0;      ///< keys a channel, padding included
  std::uint32_t log2_channels = 2;  ///< channels, empty ones included; interleaved: 2
  std::vector<std::uint32_t> high;
  std::vector<std::uint32_t> low;
  /// Every channel is two ascending halves, padding included: they are merged only (gl-bitonic).
  bool sorted_halves = false;
  SortCounts counts;  ///< of the last Sort

  std::size_t Word(std::size_t channel, std::size_t i) const {
    return layout == TexelLayout::kInterleaved ? 4 * i + channel : (channel << log2_keys) + i;
  }
};

/// Thread: the one on which the context is current.
class TexelEngine {
 public:
  TexelEngine() = default;
  TexelEngine(const TexelEngine&) = delete;
  TexelEngine& operator=(const TexelEngine&) = delete;
  virtual ~TexelEngine() = default;

  virtual const gl::Capabilities& capabilities() const = 0;
  /// The smallest log2_keys that Sort takes.
  virtual std::uint32_t log2_keys_min() const { return 1; }
  /// The largest log2_keys that the device's texture size allows.
  virtual std::uint32_t log2_keys_max() const = 0;
  /// Sorts every channel in place, ascending, and counts. Throws gl::GlError; the texels are then
  /// worthless.
  virtual void Sort(Texels& texels) = 0;
};

/// Called before each step of a sort ("upload", "draw", "read back"); tests disturb GL from it.
using StepObserver = std::function<void(std::string_view step)>;

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_TEXEL_ENGINE_H_
