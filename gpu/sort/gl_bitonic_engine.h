// The improved bitonic network (Govindaraju et al. (Cache-Efficient Sorting, 2005)) run by fragment
// programs: the GL side of gl-bitonic.
#ifndef TIDEMARK_GPU_SORT_GL_BITONIC_ENGINE_H_
#define TIDEMARK_GPU_SORT_GL_BITONIC_ENGINE_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "gpu/gl/capabilities.h"
#include "gpu/gl/framebuffer.h"
#include "gpu/gl/program.h"
#include "gpu/gl/texture.h"
#include "gpu/gl/vertex_array.h"
#include "gpu/sort/bitonic_tiles.h"
#include "gpu/sort/gl_texel_engine.h"
#include "gpu/sort/network_schedule.h"

namespace tidemark::sort {

/// Sorts texels. Key i lies at x = i mod W, y = i / W of a texture with W = 2^ceil(k/2) columns.
/// Two textures swap roles (Govindaraju et al. (Cache-Efficient Sorting, 2005), §4.2.1); every
/// texel is written by the step itself, from the one that is read, so that no half of the keys is
/// ever copied: where the paper blends, it must copy the half that the blending does not touch. One
/// draw call a step, two where it is drawn as tiles (§4.2.2: few calls, few state changes).
///
/// Tiles are off unless asked for (BitonicDrawing): the rasteriser cuts one triangle over all into
/// tiles of its own, and where they were measured they gained nothing (docs/measurements.md).
///
/// Deviations from the paper: no stencil and no MIN/MAX blending. One fragment program computes the
/// minimum or the maximum from the texel's index, so that one triangle may cover all regions of a
/// step, narrow ones too, and integer keys of 32 and 64 bits are compared exactly.
///
/// Counts: with n keys a channel, k = log n: 4 n k (k + 1) / 2 comparisons (n k to merge a
/// channel), k (k + 1) / 2 passes, no copies.
///
/// Thread: the one on which the context is current.
class GlBitonicEngine final : public TexelEngine {
 public:
  /// Throws gl::GlError.
  GlBitonicEngine(StepObserver observer, const BitonicDrawing& drawing);

  const gl::Capabilities& capabilities() const override { return capabilities_; }
  std::uint32_t log2_keys_max() const override { return log2_keys_max_; }
  void Sort(Texels& texels) override;

 private:
  struct StepProgram {
    gl::Program program;
    GLint partner_mask = -1;
    GLint distance = -1;
    GLint width_log2 = -1;
    // Of the program that draws tiles alone.
    GLint tile = -1;
    GLint group = -1;
    GLint group_size = -1;
    GLint columns = -1;
    GLint first_tile = -1;
    GLint target_size = -1;
  };
  struct Size {
    std::uint32_t width_log2 = 0;
    std::uint32_t height_log2 = 0;
    int width() const { return 1 << width_log2; }
    int height() const { return 1 << height_log2; }
  };
  // The textures of one key width, both roles, and their framebuffers: [role].
  struct Targets {
    int width = 0;
    int height = 0;
    std::array<std::array<gl::Texture, 2>, 2> texture;  // [role][word]
    std::array<gl::Framebuffer, 2> framebuffer;
  };

  static StepProgram MakeProgram(std::string_view name, std::string_view vertex_source,
                                 std::string_view fragment_source, bool two_words);
  /// Draws one step over the bound target; returns the number of draw calls.
  std::uint64_t DrawStep(const NetworkStep& step, const Size& size, unsigned words) const;
  std::uint64_t DrawTiles(const NetworkStep& step, const Size& size,
                          const StepProgram& program) const;
  Targets& TargetsFor(int width, int height, unsigned words);

  StepObserver observer_;
  gl::Capabilities capabilities_;
  std::uint32_t log2_keys_max_ = 0;
  gl::VertexArray vertex_array_;
  const BitonicDrawing drawing_;
  std::array<StepProgram, 2> program_;       // for one word and for two words a key
  std::array<StepProgram, 2> tile_program_;  // empty where no step is drawn as tiles
  std::array<Targets, 2> targets_;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_BITONIC_ENGINE_H_
