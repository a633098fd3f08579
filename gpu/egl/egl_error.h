// Text of EGL errors.
#ifndef TIDEMARK_GPU_EGL_EGL_ERROR_H_
#define TIDEMARK_GPU_EGL_EGL_ERROR_H_

#include <string>
#include <string_view>

namespace tidemark::egl {

/// "eglInitialize failed: EGL_NOT_INITIALIZED (the device's driver could not be loaded…)". Reads
/// and so clears this thread's EGL error.
std::string DescribeEglError(std::string_view step);

/// Loads libEGL and the GL library ahead of libepoxy, which would end the process were they
/// missing. Returns why GL cannot be used, or an empty string. Any thread; the libraries stay
/// loaded.
std::string MissingGlLibraries();

}  // namespace tidemark::egl

#endif  // TIDEMARK_GPU_EGL_EGL_ERROR_H_
