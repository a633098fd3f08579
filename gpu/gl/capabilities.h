// What the current context is and can do.
#ifndef TIDEMARK_GPU_GL_CAPABILITIES_H_
#define TIDEMARK_GPU_GL_CAPABILITIES_H_

#include <string>

namespace tidemark::gl {

struct Capabilities {
  std::string vendor;
  std::string renderer;
  std::string version;
  bool software = false;     ///< the renderer is a software rasteriser
  int texture_size_max = 0;  ///< texels along one edge
  int draw_buffers_max = 0;
};

/// Reads them from the context that is current. Throws GlError.
Capabilities ReadCapabilities();

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_CAPABILITIES_H_
