// The periodic balanced sorting network (Govindaraju, Raghuvanshi, Manocha (SIGMOD 2005)) by
// texture mapping and MIN/MAX blending: the GL side of gl-pbsn.
#ifndef TIDEMARK_GPU_SORT_GL_PBSN_ENGINE_H_
#define TIDEMARK_GPU_SORT_GL_PBSN_ENGINE_H_

#include <cstdint>

#include "gpu/gl/capabilities.h"
#include "gpu/gl/framebuffer.h"
#include "gpu/gl/program.h"
#include "gpu/gl/texture.h"
#include "gpu/gl/vertex_array.h"
#include "gpu/sort/gl_texel_engine.h"
#include "gpu/sort/pbsn_plan.h"

namespace tidemark::sort {

/// Sorts floats, given as their bits, which must be normal (blend_keys.h), in the four channels of
/// an RGBA32F texture, as pbsn_plan.h says. The fragment program does nothing but fetch: the
/// mapping is in the quads' texture coordinates, the comparison in the blending. The frame buffer
/// is a texture too, since it must hold floats; after each step it is copied to the one that is
/// read (routine 4.3, line 8). Device memory: 32 bytes a texel.
///
/// Thread: the one on which the context is current.
class GlPbsnEngine final : public TexelEngine {
 public:
  /// Throws gl::GlError.
  explicit GlPbsnEngine(StepObserver observer);

  const gl::Capabilities& capabilities() const override { return capabilities_; }
  std::uint32_t log2_keys_max() const override { return log2_keys_max_; }
  /// The words of texels.high are the floats; `low` is empty.
  void Sort(Texels& texels) override;

 private:
  void DrawQuads(const PbsnQuads& quads);

  StepObserver observer_;
  gl::Capabilities capabilities_;
  std::uint32_t log2_keys_max_ = 0;
  gl::VertexArray vertex_array_;
  gl::Program program_;
  GLint quad_ = -1;
  GLint texture_from_to_ = -1;
  GLint distance_ = -1;
  GLint target_size_ = -1;
  std::uint32_t log2_keys_made_ = 0;  // of the textures below; 0: there are none
  gl::Texture texture_;
  gl::Texture frame_;
  gl::Framebuffer frame_buffer_;
  SortCounts drawn_;  // passes, copies and draw calls of the sort under way
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_PBSN_ENGINE_H_
