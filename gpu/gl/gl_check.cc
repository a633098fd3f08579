#include "gpu/gl/gl_check.h"

#include <epoxy/gl.h>

#include <string>

namespace tidemark::gl {
namespace {

// glGetError returns one flag at a time, and there is no end to it once the context is lost.
constexpr int kErrorFlagsMax = 8;

std::string ErrorText(GLenum error) {
  switch (error) {
    case GL_INVALID_ENUM:
      return "GL_INVALID_ENUM (the driver lacks a feature that its version promises)";
    case GL_INVALID_VALUE:
      return "GL_INVALID_VALUE (a size is beyond the driver's limits)";
    case GL_INVALID_OPERATION:
      return "GL_INVALID_OPERATION (the objects do not fit together on this driver)";
    case GL_INVALID_FRAMEBUFFER_OPERATION:
      return "GL_INVALID_FRAMEBUFFER_OPERATION (the driver cannot render to this format)";
    case GL_OUT_OF_MEMORY:
      return "GL_OUT_OF_MEMORY (the window does not fit the device's free memory)";
    case GL_CONTEXT_LOST:
      return "GL_CONTEXT_LOST (the GPU was reset or removed)";
    default:
      return "GL error " + std::to_string(error);
  }
}

}  // namespace

void CheckGl(std::string_view step) {
  const GLenum first = glGetError();
  if (first == GL_NO_ERROR) return;
  for (int i = 0; i < kErrorFlagsMax && glGetError() != GL_NO_ERROR; ++i) {
  }
  const std::string message = std::string(step) + " failed: " + ErrorText(first);
  if (first == GL_OUT_OF_MEMORY) throw GlOutOfMemory(message);
  throw GlError(message);
}

void CheckNotReset(std::string_view step) {
  GLenum status = GL_NO_ERROR;
  if (epoxy_gl_version() >= 45 || epoxy_has_gl_extension("GL_KHR_robustness")) {
    status = glGetGraphicsResetStatus();
  } else if (epoxy_has_gl_extension("GL_ARB_robustness")) {
    status = glGetGraphicsResetStatusARB();
  }
  if (status == GL_NO_ERROR) return;
  const char* who = status == GL_GUILTY_CONTEXT_RESET     ? "this context caused it"
                    : status == GL_INNOCENT_CONTEXT_RESET ? "another program caused it"
                                                          : "the driver does not say why";
  throw GlError(std::string(step) + " failed: the GPU was reset (" + who + ")");
}

}  // namespace tidemark::gl
