#include "gpu/gl/fence.h"

#include <utility>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {

Fence::Fence(Fence&& other) noexcept : sync_(std::exchange(other.sync_, nullptr)) {}

Fence& Fence::operator=(Fence&& other) noexcept {
  std::swap(sync_, other.sync_);
  return *this;
}

Fence::~Fence() {
  if (sync_ != nullptr) glDeleteSync(sync_);
}

Fence Fence::Insert() {
  Fence out;
  out.sync_ = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  if (out.sync_ == nullptr) {
    CheckGl("inserting a fence");
    throw GlError("inserting a fence failed: the driver made none");
  }
  glFlush();  // a fence that is not sent off is never passed
  return out;
}

bool Fence::Wait(std::chrono::nanoseconds limit) const {
  const GLenum state = glClientWaitSync(sync_, 0, static_cast<GLuint64>(limit.count()));
  if (state == GL_WAIT_FAILED) {
    CheckGl("waiting for the GPU");
    throw GlError("waiting for the GPU failed: the driver does not say why");
  }
  return state == GL_ALREADY_SIGNALED || state == GL_CONDITION_SATISFIED;
}

}  // namespace tidemark::gl
