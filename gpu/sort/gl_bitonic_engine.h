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
#include "gpu/sort/gl_texel_engine.h"

namespace tidemark::sort {

/// Sorts texels. Key i lies at x = i mod W, y = i / W of a texture with W = 2^ceil(k/2) columns.
/// One draw call a step (Govindaraju et al. (Cache-Efficient Sorting, 2005), §4.2.2: few calls, no
/// state changes that can be avoided), two textures that swap roles (§4.2.1); the rasteriser's own
/// tiles give the locality for which the paper cuts its quads into tiles by hand.
///
/// Deviation from the paper: no stencil and no MIN/MAX blending. One fragment program computes the
/// minimum or the maximum from the texel's index, so that one triangle covers all regions of a step
/// and integer keys of 32 and 64 bits are compared exactly.
///
/// Thread: the one on which the context is current.
class GlBitonicEngine final : public TexelEngine {
 public:
  /// Throws gl::GlError.
  explicit GlBitonicEngine(StepObserver observer);

  const gl::Capabilities& capabilities() const override { return capabilities_; }
  std::uint32_t log2_keys_max() const override { return log2_keys_max_; }
  void Sort(Texels& texels) override;

 private:
  struct StepProgram {
    gl::Program program;
    GLint partner_mask = -1;
    GLint distance = -1;
    GLint width_log2 = -1;
  };
  // The textures of one key width, both roles, and their framebuffers: [role].
  struct Targets {
    int width = 0;
    int height = 0;
    std::array<std::array<gl::Texture, 2>, 2> texture;  // [role][word]
    std::array<gl::Framebuffer, 2> framebuffer;
  };

  static StepProgram MakeProgram(std::string_view name, std::string_view fragment_source,
                                 bool two_words);
  Targets& TargetsFor(int width, int height, unsigned words);

  StepObserver observer_;
  gl::Capabilities capabilities_;
  std::uint32_t log2_keys_max_ = 0;
  gl::VertexArray vertex_array_;
  std::array<StepProgram, 2> program_;  // for one word and for two words a key
  std::array<Targets, 2> targets_;
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_BITONIC_ENGINE_H_
