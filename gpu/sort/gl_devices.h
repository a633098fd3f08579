// The graphics devices of this machine, as one who looks for a GPU wants to see them. Implemented
// by gl_devices.cc where the project is built with libepoxy, and by gl_sorters_absent.cc where it
// is not.
#ifndef TIDEMARK_GPU_SORT_GL_DEVICES_H_
#define TIDEMARK_GPU_SORT_GL_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::sort {

/// Something optional of a context.
struct GlFeature {
  std::string name;
  std::string use;  ///< what for, and what is done without it
  bool present = false;
};

struct GlDevice {
  std::string name;       ///< "EGL device 0"
  bool software = false;  ///< a software rasteriser
  std::string drm_file;   ///< empty where the driver does not say
  /// Why no context could be opened: step, error, usual cause. All below is empty then.
  std::string error;
  std::string vendor, renderer, version, shading_language;
  bool reports_reset = false;  ///< the context tells of a GPU reset
  int texture_size_max = 0;    ///< texels along one edge
  int draw_buffers_max = 0;
  bool compute = false;                 ///< compute shaders; the rest is 0 without
  std::size_t shared_bytes = 0;         ///< of a workgroup
  std::uint32_t invocations_max = 0;    ///< in a workgroup
  std::uint32_t groups_max = 0;         ///< along one axis
  std::size_t storage_block_bytes = 0;  ///< that one binding may have
  std::vector<GlFeature> features;
};

struct GlDevices {
  std::vector<GlDevice> devices;  ///< in EGL's order
  /// The one that a GL sorter would use, an index of `devices`; -1: none. Hardware comes first, in
  /// EGL's order; software where no hardware opens.
  int chosen = -1;
  std::string error;  ///< why no device could be listed; empty otherwise
};

/// Opens a context on each device and closes it again. Never throws. Thread: one without a current
/// context.
GlDevices DescribeGlDevices();

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_DEVICES_H_
