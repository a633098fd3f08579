// A 2D texture of four unsigned 32-bit integers a texel.
#ifndef TIDEMARK_GPU_GL_TEXTURE_H_
#define TIDEMARK_GPU_GL_TEXTURE_H_

#include <epoxy/gl.h>

#include <cstdint>

namespace tidemark::gl {

/// RGBA32UI, one level, no filtering. Move-only; freed on the context's thread.
class Texture {
 public:
  Texture() = default;
  /// Throws GlError: out of device memory, too large.
  Texture(int width, int height);
  Texture(Texture&& other) noexcept;
  Texture& operator=(Texture&& other) noexcept;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  ~Texture();

  /// Writes the rectangle of width × height texels at the origin; 4 words a texel, row by row.
  void Upload(int width, int height, const std::uint32_t* texels);
  void BindToUnit(unsigned unit) const;
  GLuint id() const { return id_; }

 private:
  GLuint id_ = 0;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_TEXTURE_H_
