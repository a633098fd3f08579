#include "gpu/gl/framebuffer.h"

#include <string>
#include <utility>
#include <vector>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {

Framebuffer::Framebuffer(std::span<const Texture* const> targets) {
  glGenFramebuffers(1, &id_);
  glBindFramebuffer(GL_FRAMEBUFFER, id_);
  std::vector<GLenum> buffers;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto attachment = static_cast<GLenum>(GL_COLOR_ATTACHMENT0 + i);
    glFramebufferTexture2D(GL_FRAMEBUFFER, attachment, GL_TEXTURE_2D, targets[i]->id(), 0);
    buffers.push_back(attachment);
    formats_.push_back(targets[i]->format());
  }
  glDrawBuffers(static_cast<GLsizei>(buffers.size()), buffers.data());
  const GLenum status = glCheckFramebufferStatus(GL_FRAMEBUFFER);
  try {
    CheckGl("making a framebuffer of textures of 32-bit words");
    if (status != GL_FRAMEBUFFER_COMPLETE) {
      throw GlError("making a framebuffer of textures of 32-bit words failed: status " +
                    std::to_string(status) +
                    " (the driver cannot render to integer or float textures)");
    }
  } catch (...) {
    glDeleteFramebuffers(1, &id_);
    throw;
  }
}

Framebuffer::Framebuffer(Framebuffer&& other) noexcept
    : id_(std::exchange(other.id_, 0)), formats_(std::move(other.formats_)) {}

Framebuffer& Framebuffer::operator=(Framebuffer&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(formats_, other.formats_);
  return *this;
}

Framebuffer::~Framebuffer() {
  if (id_ != 0) glDeleteFramebuffers(1, &id_);
}

void Framebuffer::BindForDrawing() const { glBindFramebuffer(GL_DRAW_FRAMEBUFFER, id_); }

void Framebuffer::Read(unsigned target, int width, int height, std::uint32_t* texels) const {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, id_);
  glReadBuffer(GL_COLOR_ATTACHMENT0 + target);
  if (formats_[target] == TexelFormat::kFloat4) {
    glReadPixels(0, 0, width, height, GL_RGBA, GL_FLOAT, texels);
  } else {
    glReadPixels(0, 0, width, height, GL_RGBA_INTEGER, GL_UNSIGNED_INT, texels);
  }
}

void Framebuffer::CopyTo(const Texture& texture, int width, int height) const {
  glBindFramebuffer(GL_READ_FRAMEBUFFER, id_);
  glReadBuffer(GL_COLOR_ATTACHMENT0);
  glBindTexture(GL_TEXTURE_2D, texture.id());
  glCopyTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, 0, 0, width, height);
}

}  // namespace tidemark::gl
