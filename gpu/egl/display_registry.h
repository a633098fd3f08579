// Initialises and terminates EGL displays.
//
// EGL gives every caller in the process the same display of a device, and eglTerminate ends it for
// all of them, so the users of a display are counted here.
#ifndef TIDEMARK_GPU_EGL_DISPLAY_REGISTRY_H_
#define TIDEMARK_GPU_EGL_DISPLAY_REGISTRY_H_

namespace tidemark::egl {

/// Initialises the display unless somebody has it already. False: eglInitialize failed and the EGL
/// error is set. Any thread.
bool AcquireDisplay(void* display);

/// Gives back one AcquireDisplay; the last one terminates the display. Any thread.
void ReleaseDisplay(void* display) noexcept;

}  // namespace tidemark::egl

#endif  // TIDEMARK_GPU_EGL_DISPLAY_REGISTRY_H_
