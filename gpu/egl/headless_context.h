// An OpenGL core context without a window system, on a chosen kind of device.
//
// Devices are enumerated (EGL_EXT_device_base) and opened through EGL_EXT_platform_device; Mesa's
// surfaceless platform is the last resort for a software context. EGL_DEFAULT_DISPLAY, GBM, X11 and
// Wayland all need something that a server does not have.
#ifndef TIDEMARK_GPU_EGL_HEADLESS_CONTEXT_H_
#define TIDEMARK_GPU_EGL_HEADLESS_CONTEXT_H_

#include <stdexcept>
#include <string>
#include <vector>

namespace tidemark::egl {

/// A step of opening a context failed. The message names the step, the EGL error and its usual
/// cause, for every device that was tried.
class EglError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What EGL lists, without opening a display or a context.
struct DeviceCount {
  int hardware = 0;
  int software = 0;   ///< devices that are a software rasteriser (EGL_MESA_device_software)
  std::string error;  ///< why nothing could be listed; empty otherwise
};

/// Never throws. Any thread.
DeviceCount CountDevices();

/// A device that EGL lists, in its order.
struct Device {
  int index = 0;
  bool software = false;  ///< a software rasteriser (EGL_MESA_device_software)
  std::string drm_file;   ///< "/dev/dri/card0"; empty where the driver does not say
};

/// Errors: throws EglError. Any thread.
std::vector<Device> ListDevices();

/// A context of OpenGL 4.5 core, or the highest that the device has down to 3.3 core.
///
/// Thread: made current, used, released and destroyed on one thread. Move-only.
class HeadlessContext {
 public:
  /// Opens a context on the first hardware device that works; with `allow_software`, on a software
  /// rasteriser where no hardware device works. The context is current on the calling thread.
  /// Errors: throws EglError.
  static HeadlessContext Open(bool allow_software);
  /// The same on the device of that index. Errors: throws EglError.
  static HeadlessContext OpenDevice(int index);

  HeadlessContext(HeadlessContext&& other) noexcept;
  HeadlessContext& operator=(HeadlessContext&& other) noexcept;
  HeadlessContext(const HeadlessContext&) = delete;
  HeadlessContext& operator=(const HeadlessContext&) = delete;
  ~HeadlessContext();

  /// "EGL device 0" or "EGL surfaceless platform": where the context was found.
  const std::string& device() const { return device_; }
  /// Whether the context tells of a GPU reset (robust context), rather than ending the process or
  /// returning garbage.
  bool reports_reset() const { return reports_reset_; }

 private:
  HeadlessContext() = default;
  static HeadlessContext OpenOnDevice(void* device, int index);
  static HeadlessContext OpenOnDisplay(void* display, std::string device);
  void Release() noexcept;

  // EGLDisplay, EGLContext and EGLSurface are pointers; the header keeps epoxy out of its users.
  void* display_ = nullptr;
  void* context_ = nullptr;
  void* surface_ = nullptr;
  bool reports_reset_ = false;
  std::string device_;
};

}  // namespace tidemark::egl

#endif  // TIDEMARK_GPU_EGL_HEADLESS_CONTEXT_H_
