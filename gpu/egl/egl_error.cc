#include "gpu/egl/egl_error.h"

#include <dlfcn.h>
#include <epoxy/egl.h>

#include <array>

namespace tidemark::egl {
namespace {

struct ErrorText {
  EGLint code;
  std::string_view text;
};

constexpr std::array<ErrorText, 10> kErrors{{
    {EGL_SUCCESS, "EGL reports no error (the function returned nothing usable)"},
    {EGL_NOT_INITIALIZED,
     "EGL_NOT_INITIALIZED (the driver of this device could not be loaded: it is not installed, "
     "lacks "
     "its GL part, or the device file cannot be opened by this user)"},
    {EGL_BAD_ACCESS, "EGL_BAD_ACCESS (the context is current on another thread)"},
    {EGL_BAD_ALLOC, "EGL_BAD_ALLOC (out of memory, or no free device)"},
    {EGL_BAD_ATTRIBUTE, "EGL_BAD_ATTRIBUTE (the driver does not know an attribute)"},
    {EGL_BAD_CONFIG, "EGL_BAD_CONFIG (the driver refuses the configuration)"},
    {EGL_BAD_DISPLAY, "EGL_BAD_DISPLAY (no such display; the EGL library is older than 1.5)"},
    {EGL_BAD_MATCH, "EGL_BAD_MATCH (the driver does not offer this GL version or profile)"},
    {EGL_BAD_PARAMETER, "EGL_BAD_PARAMETER (the device or platform is not supported)"},
    {EGL_CONTEXT_LOST, "EGL_CONTEXT_LOST (the GPU was reset or removed)"},
}};

// The library stays loaded: libepoxy finds it by the same name later.
bool CanLoad(const char* name, std::string& why) {
  if (dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr) return true;
  const char* text = dlerror();
  why = text != nullptr ? text : "unknown error";
  return false;
}

}  // namespace

std::string DescribeEglError(std::string_view step) {
  const EGLint code = eglGetError();
  std::string out = std::string(step) + " failed: ";
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return out.append(error.text);
  }
  return out + "EGL error " + std::to_string(code);
}

std::string MissingGlLibraries() {
  std::string why;
  if (!CanLoad("libEGL.so.1", why)) {
    return "loading libEGL.so.1 failed: " + why +
           " (no EGL library is installed; Debian has it in libegl1)";
  }
  if (!CanLoad("libOpenGL.so.0", why) && !CanLoad("libGL.so.1", why)) {
    return "loading libOpenGL.so.0 or libGL.so.1 failed: " + why +
           " (no GL library is installed; Debian has it in libopengl0 and libgl1)";
  }
  return {};
}

}  // namespace tidemark::egl
