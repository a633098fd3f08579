#include "gpu/gl/capabilities.h"

#include <epoxy/gl.h>

#include "gpu/egl/software_renderer.h"
#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

std::string Text(GLenum name) {
  const GLubyte* raw = glGetString(name);
  return raw == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(raw));
}

}  // namespace

Capabilities ReadCapabilities() {
  Capabilities out;
  out.vendor = Text(GL_VENDOR);
  out.renderer = Text(GL_RENDERER);
  out.version = Text(GL_VERSION);
  out.software = egl::IsSoftwareRenderer(out.renderer);
  glGetIntegerv(GL_MAX_TEXTURE_SIZE, &out.texture_size_max);
  glGetIntegerv(GL_MAX_DRAW_BUFFERS, &out.draw_buffers_max);
  CheckGl("reading the GL context's limits");
  return out;
}

}  // namespace tidemark::gl
