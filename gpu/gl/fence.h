// A mark in the stream of GL commands, to wait for what was told before it.
#ifndef TIDEMARK_GPU_GL_FENCE_H_
#define TIDEMARK_GPU_GL_FENCE_H_

#include <epoxy/gl.h>

#include <chrono>

namespace tidemark::gl {

/// Move-only; freed on the context's thread.
class Fence {
 public:
  Fence() = default;
  Fence(Fence&& other) noexcept;
  Fence& operator=(Fence&& other) noexcept;
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;
  ~Fence();

  /// A fence behind all commands so far, which are sent off.
  static Fence Insert();
  /// Whether all before it is done, after waiting for at most `limit`. Throws GlError if the driver
  /// fails. REQUIRES: not a default one.
  bool Wait(std::chrono::nanoseconds limit) const;

 private:
  GLsync sync_ = nullptr;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_FENCE_H_
