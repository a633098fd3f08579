#include "gpu/gl/capabilities.h"

#include <epoxy/gl.h>

#include <algorithm>

#include "gpu/egl/software_renderer.h"
#include "gpu/gl/gl_check.h"

namespace tidemark::gl {
namespace {

std::string Text(GLenum name) {
  const GLubyte* raw = glGetString(name);
  return raw == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(raw));
}

bool Has(int version, const char* extension) {
  return epoxy_gl_version() >= version || epoxy_has_gl_extension(extension);
}
// The extension alone does not do: shaders are of GLSL 4.30.
bool HasComputeShaders() { return epoxy_gl_version() >= 43; }
bool HasBufferStorage() { return Has(44, "GL_ARB_buffer_storage"); }

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

std::vector<Feature> ReadFeatures() {
  return {
      {"OpenGL 4.3", "compute shaders of gl-compute; without them gl-bitonic draws the network",
       HasComputeShaders()},
      {"GL_ARB_buffer_storage", "windows are written to mapped memory; without it they are copied",
       HasBufferStorage()},
      {"GL_KHR_robustness", "a reset GPU is noticed; without it by what comes back, or by time",
       Has(45, "GL_KHR_robustness") || epoxy_has_gl_extension("GL_ARB_robustness")},
  };
}

std::string ShadingLanguage() { return Text(GL_SHADING_LANGUAGE_VERSION); }

ComputeCapabilities ReadComputeCapabilities() {
  ComputeCapabilities out;
  if (!HasComputeShaders()) return out;
  out.available = true;
  out.buffer_storage = HasBufferStorage();
  GLint shared = 0;
  GLint invocations = 0;
  GLint first_axis = 0;
  GLint groups = 0;
  GLint64 storage_block = 0;
  glGetIntegerv(GL_MAX_COMPUTE_SHARED_MEMORY_SIZE, &shared);
  glGetIntegerv(GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS, &invocations);
  glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_SIZE, 0, &first_axis);
  glGetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, 0, &groups);
  glGetInteger64v(GL_MAX_SHADER_STORAGE_BLOCK_SIZE, &storage_block);
  CheckGl("reading the GL context's limits of compute shaders");
  out.shared_bytes = static_cast<std::size_t>(std::max(shared, 0));
  out.invocations_max = static_cast<std::uint32_t>(std::max(std::min(invocations, first_axis), 0));
  out.groups_max = static_cast<std::uint32_t>(std::max(groups, 0));
  out.storage_block_bytes = static_cast<std::size_t>(std::max<GLint64>(storage_block, 0));
  return out;
}

}  // namespace tidemark::gl
