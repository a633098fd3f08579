// Tells a software rasteriser by the name that it gives in GL_RENDERER.
#ifndef TIDEMARK_GPU_EGL_SOFTWARE_RENDERER_H_
#define TIDEMARK_GPU_EGL_SOFTWARE_RENDERER_H_

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

namespace tidemark::egl {

/// Mesa's llvmpipe and softpipe (older ones say swrast), SwiftShader, and what calls itself so.
inline bool IsSoftwareRenderer(std::string_view gl_renderer) {
  constexpr std::array<std::string_view, 5> kNames = {"llvmpipe", "softpipe", "swrast",
                                                      "swiftshader", "software"};
  std::string lower(gl_renderer);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return lower.find(name) != std::string::npos; });
}

}  // namespace tidemark::egl

#endif  // TIDEMARK_GPU_EGL_SOFTWARE_RENDERER_H_
