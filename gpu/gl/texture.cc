#include "gpu/gl/texture.h"

#include <utility>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {

Texture::Texture(int width, int height) {
  glGenTextures(1, &id_);
  glBindTexture(GL_TEXTURE_2D, id_);
  // glTexImage2D, not glTexStorage2D, which 3.3 lacks.
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA32UI, width, height, 0, GL_RGBA_INTEGER, GL_UNSIGNED_INT,
               nullptr);
  // Without these a texture of one level is incomplete and reads as zero.
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  try {
    CheckGl("making an RGBA32UI texture");
  } catch (...) {
    glDeleteTextures(1, &id_);
    throw;
  }
}

Texture::Texture(Texture&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

Texture& Texture::operator=(Texture&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

Texture::~Texture() {
  if (id_ != 0) glDeleteTextures(1, &id_);
}

void Texture::Upload(int width, int height, const std::uint32_t* texels) {
  glBindTexture(GL_TEXTURE_2D, id_);
  glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, GL_RGBA_INTEGER, GL_UNSIGNED_INT, texels);
}

void Texture::BindToUnit(unsigned unit) const {
  glActiveTexture(GL_TEXTURE0 + unit);
  glBindTexture(GL_TEXTURE_2D, id_);
}

}  // namespace tidemark::gl
