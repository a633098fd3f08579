// A 2D texture of 32-bit words.
#ifndef TIDEMARK_GPU_GL_TEXTURE_H_
#define TIDEMARK_GPU_GL_TEXTURE_H_

#include <epoxy/gl.h>

#include <cstdint>

namespace tidemark::gl {

enum class TexelFormat : std::uint8_t {
  kUint4,   ///< RGBA32UI
  kUint2,   ///< RG32UI
  kFloat4,  ///< RGBA32F; the words are the floats' bits
};

/// Words of a texel.
constexpr int WordsOf(TexelFormat format) { return format == TexelFormat::kUint2 ? 2 : 4; }

/// One level, no filtering. Move-only; freed on the context's thread.
class Texture {
 public:
  Texture() = default;
  /// Throws GlError: out of device memory, too large.
  Texture(int width, int height, TexelFormat format = TexelFormat::kUint4);
  Texture(Texture&& other) noexcept;
  Texture& operator=(Texture&& other) noexcept;
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  ~Texture();

  /// Writes the rectangle of width × height texels at the origin; row by row.
  void Upload(int width, int height, const std::uint32_t* texels);
  void BindToUnit(unsigned unit) const;
  GLuint id() const { return id_; }
  TexelFormat format() const { return format_; }

 private:
  GLuint id_ = 0;
  TexelFormat format_ = TexelFormat::kUint4;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_TEXTURE_H_
