// Turns GL's error state into exceptions that say what failed.
#ifndef TIDEMARK_GPU_GL_GL_CHECK_H_
#define TIDEMARK_GPU_GL_GL_CHECK_H_

#include <stdexcept>
#include <string_view>

namespace tidemark::gl {

/// A GL call failed or the context was lost. The message names the step, GL's error and its usual
/// cause.
class GlError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// GL had no memory for an object; what was there before works on.
class GlOutOfMemory : public GlError {
 public:
  using GlError::GlError;
};

/// Throws GlError if GL reports an error since the last check, GlOutOfMemory where it is that.
void CheckGl(std::string_view step);

/// Throws GlError if the GPU was reset since the context was made. Needs GL 4.5 or one of the
/// robustness extensions; does nothing without.
void CheckNotReset(std::string_view step);

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_GL_CHECK_H_
