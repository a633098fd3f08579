#include "gpu/egl/headless_context.h"

#include <epoxy/egl.h>
#include <epoxy/gl.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/egl/display_registry.h"
#include "gpu/egl/egl_error.h"
#include "gpu/egl/software_renderer.h"

namespace tidemark::egl {
namespace {

// More devices than any machine that this will see; EGL wants the room for them ahead.
constexpr EGLint kDevicesMax = 64;

struct GlVersion {
  EGLint major;
  EGLint minor;
};
// 4.5 first; the sorters need integer textures, several render targets and GLSL 3.30: 3.3 has them.
constexpr std::array<GlVersion, 4> kVersions{{{4, 5}, {4, 3}, {4, 0}, {3, 3}}};

bool HasExtension(EGLDisplay display, const char* name) {
  return epoxy_has_egl_extension(display, name);
}

struct Devices {
  std::vector<EGLDeviceEXT> hardware;
  std::vector<EGLDeviceEXT> software;
  std::vector<int> hardware_index;
  std::vector<int> software_index;
};

// Throws EglError when devices cannot be enumerated at all.
Devices FindDevices() {
  if (std::string missing = MissingGlLibraries(); !missing.empty()) throw EglError(missing);
  const char* client = eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  if (client == nullptr) {
    throw EglError(DescribeEglError("eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS)"));
  }
  const bool can_enumerate = HasExtension(EGL_NO_DISPLAY, "EGL_EXT_device_base") ||
                             HasExtension(EGL_NO_DISPLAY, "EGL_EXT_device_enumeration");
  if (!can_enumerate || !HasExtension(EGL_NO_DISPLAY, "EGL_EXT_platform_base")) {
    throw EglError(
        "listing EGL devices failed: the EGL library has no EGL_EXT_device_base or "
        "EGL_EXT_platform_base (no vendor driver is installed beside it)");
  }
  std::array<EGLDeviceEXT, kDevicesMax> found{};
  EGLint count = 0;
  if (eglQueryDevicesEXT(kDevicesMax, found.data(), &count) != EGL_TRUE) {
    throw EglError(DescribeEglError("eglQueryDevicesEXT"));
  }
  Devices devices;
  for (int i = 0; i < count; ++i) {
    const char* extensions =
        eglQueryDeviceStringEXT(found[static_cast<std::size_t>(i)], EGL_EXTENSIONS);
    const bool software =
        extensions != nullptr &&
        std::string_view(extensions).find("EGL_MESA_device_software") != std::string_view::npos;
    (software ? devices.software : devices.hardware).push_back(found[static_cast<std::size_t>(i)]);
    (software ? devices.software_index : devices.hardware_index).push_back(i);
  }
  return devices;
}

// Some drivers give a software rasteriser for a hardware device whose own driver does not work.
bool RendererIsSoftware() {
  const GLubyte* raw = glGetString(GL_RENDERER);
  if (raw == nullptr) return false;
  return IsSoftwareRenderer(reinterpret_cast<const char*>(raw));
}

EGLContext CreateContext(EGLDisplay display, EGLConfig config, GlVersion version, bool robust) {
  std::vector<EGLint> attributes = {
      EGL_CONTEXT_MAJOR_VERSION_KHR,       version.major,
      EGL_CONTEXT_MINOR_VERSION_KHR,       version.minor,
      EGL_CONTEXT_OPENGL_PROFILE_MASK_KHR, EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT_KHR};
  if (robust) {
    attributes.insert(attributes.end(), {EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY_KHR,
                                         EGL_LOSE_CONTEXT_ON_RESET_KHR});
  }
  attributes.push_back(EGL_NONE);
  return eglCreateContext(display, config, EGL_NO_CONTEXT, attributes.data());
}

std::string JoinLines(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += "; ";
    out += part;
  }
  return out;
}

}  // namespace

std::vector<Device> ListDevices() {
  const Devices found = FindDevices();
  std::vector<Device> devices;
  const auto add = [&](EGLDeviceEXT device, int index, bool software) {
    // epoxy_has_egl_extension knows displays alone.
    const char* extensions = eglQueryDeviceStringEXT(device, EGL_EXTENSIONS);
    const char* file = nullptr;
    if (extensions != nullptr &&
        std::string_view(extensions).find("EGL_EXT_device_drm") != std::string_view::npos) {
      file = eglQueryDeviceStringEXT(device, EGL_DRM_DEVICE_FILE_EXT);
    }
    devices.push_back({index, software, file == nullptr ? "" : file});
  };
  for (std::size_t i = 0; i < found.hardware.size(); ++i) {
    add(found.hardware[i], found.hardware_index[i], false);
  }
  for (std::size_t i = 0; i < found.software.size(); ++i) {
    add(found.software[i], found.software_index[i], true);
  }
  std::sort(devices.begin(), devices.end(),
            [](const Device& a, const Device& b) { return a.index < b.index; });
  return devices;
}

DeviceCount CountDevices() {
  DeviceCount count;
  try {
    const Devices devices = FindDevices();
    count.hardware = static_cast<int>(devices.hardware.size());
    count.software = static_cast<int>(devices.software.size());
  } catch (const EglError& error) {
    count.error = error.what();
  }
  return count;
}

HeadlessContext HeadlessContext::OpenOnDisplay(void* display, std::string device) {
  if (display == EGL_NO_DISPLAY) {
    throw EglError(device + ": " + DescribeEglError("eglGetPlatformDisplayEXT"));
  }
  if (!AcquireDisplay(display)) {
    throw EglError(device + ": " + DescribeEglError("eglInitialize"));
  }
  HeadlessContext out;  // from here on its destructor cleans up
  out.display_ = display;
  out.device_ = std::move(device);
  if (eglBindAPI(EGL_OPENGL_API) != EGL_TRUE) {
    throw EglError(out.device_ + ": " + DescribeEglError("eglBindAPI(EGL_OPENGL_API)"));
  }

  const std::array<EGLint, 5> wanted = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                        EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint configs = 0;
  const bool chosen =
      eglChooseConfig(display, wanted.data(), &config, 1, &configs) == EGL_TRUE && configs > 0;
  if (!chosen) {
    // Nothing is drawn to a surface, so a context without a configuration does as well.
    if (!HasExtension(display, "EGL_KHR_no_config_context")) {
      throw EglError(out.device_ + ": " + DescribeEglError("eglChooseConfig(EGL_OPENGL_BIT)"));
    }
    config = nullptr;
  }

  for (const GlVersion version : kVersions) {
    for (const bool robust : {true, false}) {
      const EGLContext context = CreateContext(display, config, version, robust);
      if (context == EGL_NO_CONTEXT) continue;
      out.context_ = context;
      out.reports_reset_ = robust;
      break;
    }
    if (out.context_ != nullptr) break;
  }
  if (out.context_ == nullptr) {
    throw EglError(out.device_ + ": " +
                   DescribeEglError("eglCreateContext(OpenGL 4.5 to 3.3 core)"));
  }

  if (!HasExtension(display, "EGL_KHR_surfaceless_context")) {
    const std::array<EGLint, 5> size = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
    const EGLSurface surface = eglCreatePbufferSurface(display, config, size.data());
    if (surface == EGL_NO_SURFACE) {
      throw EglError(out.device_ + ": " + DescribeEglError("eglCreatePbufferSurface"));
    }
    out.surface_ = surface;
  }
  if (eglMakeCurrent(display, out.surface_, out.surface_, out.context_) != EGL_TRUE) {
    throw EglError(out.device_ + ": " + DescribeEglError("eglMakeCurrent"));
  }
  return out;
}

HeadlessContext HeadlessContext::OpenOnDevice(void* device, int index) {
  return OpenOnDisplay(eglGetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, device, nullptr),
                       "EGL device " + std::to_string(index));
}

HeadlessContext HeadlessContext::OpenDevice(int index) {
  const Devices devices = FindDevices();
  for (std::size_t i = 0; i < devices.hardware.size(); ++i) {
    if (devices.hardware_index[i] == index) return OpenOnDevice(devices.hardware[i], index);
  }
  for (std::size_t i = 0; i < devices.software.size(); ++i) {
    if (devices.software_index[i] == index) return OpenOnDevice(devices.software[i], index);
  }
  throw EglError("EGL lists no device " + std::to_string(index));
}

HeadlessContext HeadlessContext::Open(bool allow_software) {
  const Devices devices = FindDevices();
  std::vector<std::string> failures;
  for (std::size_t i = 0; i < devices.hardware.size(); ++i) {
    try {
      HeadlessContext context = OpenOnDevice(devices.hardware[i], devices.hardware_index[i]);
      // Not even where software is allowed: the next device may be a real one.
      if (!RendererIsSoftware()) return context;
      failures.push_back(context.device() + ": its driver falls back to a software rasteriser");
    } catch (const EglError& error) {
      failures.emplace_back(error.what());
    }
  }
  if (!allow_software) {
    const std::size_t software = devices.software.size();
    if (devices.hardware.empty() && software == 0) {
      throw EglError(
          "no EGL device: eglQueryDevicesEXT lists none (the GPU's driver was installed without "
          "its GL libraries, or its vendor file is missing from glvnd/egl_vendor.d)");
    }
    if (devices.hardware.empty()) {
      throw EglError("no hardware GL device: EGL lists " + std::to_string(software) +
                     (software == 1 ? " device, a software rasteriser"
                                    : " devices, all software rasterisers"));
    }
    throw EglError("no usable hardware GL device: " + JoinLines(failures));
  }
  for (std::size_t i = 0; i < devices.software.size(); ++i) {
    try {
      return OpenOnDevice(devices.software[i], devices.software_index[i]);
    } catch (const EglError& error) {
      failures.emplace_back(error.what());
    }
  }
  if (HasExtension(EGL_NO_DISPLAY, "EGL_MESA_platform_surfaceless")) {
    try {
      return OpenOnDisplay(
          eglGetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr),
          "EGL surfaceless platform");
    } catch (const EglError& error) {
      failures.emplace_back(error.what());
    }
  }
  if (failures.empty()) {
    failures.emplace_back(
        "eglQueryDevicesEXT lists none and there is no EGL_MESA_platform_surfaceless (no vendor "
        "driver is installed; Debian has Mesa's in libegl-mesa0 and libgl1-mesa-dri)");
  }
  throw EglError("no EGL device can be opened: " + JoinLines(failures));
}

HeadlessContext::HeadlessContext(HeadlessContext&& other) noexcept { *this = std::move(other); }

HeadlessContext& HeadlessContext::operator=(HeadlessContext&& other) noexcept {
  if (this == &other) return *this;
  Release();
  display_ = std::exchange(other.display_, nullptr);
  context_ = std::exchange(other.context_, nullptr);
  surface_ = std::exchange(other.surface_, nullptr);
  reports_reset_ = other.reports_reset_;
  device_ = std::move(other.device_);
  return *this;
}

HeadlessContext::~HeadlessContext() { Release(); }

void HeadlessContext::Release() noexcept {
  if (display_ == nullptr) return;
  eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
  if (surface_ != nullptr) eglDestroySurface(display_, surface_);
  if (context_ != nullptr) eglDestroyContext(display_, context_);
  eglReleaseThread();
  ReleaseDisplay(display_);
  display_ = context_ = surface_ = nullptr;
}

}  // namespace tidemark::egl
