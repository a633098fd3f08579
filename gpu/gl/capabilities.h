// What the current context is and can do.
#ifndef TIDEMARK_GPU_GL_CAPABILITIES_H_
#define TIDEMARK_GPU_GL_CAPABILITIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

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

/// An extension or a version's part that this project uses where it is there.
struct Feature {
  const char* name = "";
  const char* use = "";  ///< what for, and what is done without it
  bool present = false;
};

/// All of them, as the context that is current has them.
std::vector<Feature> ReadFeatures();
/// The version of its shading language.
std::string ShadingLanguage();

/// What compute shaders may use.
struct ComputeCapabilities {
  bool available = false;       ///< OpenGL 4.3; the rest is 0 or false without
  bool buffer_storage = false;  ///< OpenGL 4.4 or ARB_buffer_storage: buffers that stay mapped
  std::size_t shared_bytes = 0;
  std::uint32_t invocations_max = 0;    ///< in a workgroup, along its first axis
  std::uint32_t groups_max = 0;         ///< along the first axis
  std::size_t storage_block_bytes = 0;  ///< that one binding of a buffer may have
};

/// Reads them from the context that is current. Throws GlError.
ComputeCapabilities ReadComputeCapabilities();

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_CAPABILITIES_H_
