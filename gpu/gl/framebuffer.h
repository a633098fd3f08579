// A framebuffer object over one or more textures.
#ifndef TIDEMARK_GPU_GL_FRAMEBUFFER_H_
#define TIDEMARK_GPU_GL_FRAMEBUFFER_H_

#include <epoxy/gl.h>

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/gl/texture.h"

namespace tidemark::gl {

/// Render target k is texture k. The textures must outlive it. Move-only; freed on the context's
/// thread.
class Framebuffer {
 public:
  Framebuffer() = default;
  /// Throws GlError: the driver cannot render to these textures.
  explicit Framebuffer(std::span<const Texture* const> targets);
  Framebuffer(Framebuffer&& other) noexcept;
  Framebuffer& operator=(Framebuffer&& other) noexcept;
  Framebuffer(const Framebuffer&) = delete;
  Framebuffer& operator=(const Framebuffer&) = delete;
  ~Framebuffer();

  void BindForDrawing() const;
  /// Reads the rectangle of width × height texels at the origin of one target, four words a texel,
  /// row by row; waits for what was drawn. Not for targets of kUint2.
  void Read(unsigned target, int width, int height, std::uint32_t* texels) const;
  /// Copies the same rectangle of target 0 to a texture that is no target of this framebuffer.
  void CopyTo(const Texture& texture, int width, int height) const;

 private:
  GLuint id_ = 0;
  std::vector<TexelFormat> formats_;  // of the targets
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_FRAMEBUFFER_H_
