#include "gpu/gl/texture.h"

#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

struct Transfer {
  GLint internal_format;
  GLenum format;
  GLenum type;
  const char* name;
};

Transfer TransferOf(TexelFormat format) {
  switch (format) {
    case TexelFormat::kUint2:
      return {GL_RG32UI, GL_RG_INTEGER, GL_UNSIGNED_INT, "RG32UI"};
    case TexelFormat::kFloat4:
      return {GL_RGBA32F, GL_RGBA, GL_FLOAT, "RGBA32F"};
    case TexelFormat::kUint4:
      break;
  }
  return {GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT, "RGBA32UI"};
}

}  // namespace

Texture::Texture(int width, int height, TexelFormat format) : format_(format) {
  const Transfer transfer = TransferOf(format);
  glGenTextures(1, &id_);
  glBindTexture(GL_TEXTURE_2D, id_);
  // glTexImage2D, not glTexStorage2D, which 3.3 lacks.
  glTexImage2D(GL_TEXTURE_2D, 0, transfer.internal_format, width, height, 0, transfer.format,
               transfer.type, nullptr);
  // Without these a texture of one level is incomplete and reads as zero.
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAX_LEVEL, 0);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  try {
    CheckGl("making an " + std::string(transfer.name) + " texture");
  } catch (...) {
    glDeleteTextures(1, &id_);
    throw;
  }
}

Texture::Texture(Texture&& other) noexcept
    : id_(std::exchange(other.id_, 0)), format_(other.format_) {}

Texture& Texture::operator=(Texture&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(format_, other.format_);
  return *this;
}

Texture::~Texture() {
  if (id_ != 0) glDeleteTextures(1, &id_);
}

void Texture::Upload(int width, int height, const std::uint32_t* texels) {
  const Transfer transfer = TransferOf(format_);
  glBindTexture(GL_TEXTURE_2D, id_);
  glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, transfer.format, transfer.type, texels);
}

void Texture::BindToUnit(unsigned unit) const {
  glActiveTexture(GL_TEXTURE0 + unit);
  glBindTexture(GL_TEXTURE_2D, id_);
}

}  // namespace tidemark::gl
