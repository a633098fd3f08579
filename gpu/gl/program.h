// A linked GLSL program.
#ifndef TIDEMARK_GPU_GL_PROGRAM_H_
#define TIDEMARK_GPU_GL_PROGRAM_H_

#include <epoxy/gl.h>

#include <string_view>

namespace tidemark::gl {

/// Move-only; freed on the context's thread.
class Program {
 public:
  Program() = default;
  /// `name` is for messages. Throws GlError with the compiler's log.
  Program(std::string_view name, std::string_view vertex_source, std::string_view fragment_source);
  /// A compute program. The same; REQUIRES: OpenGL 4.3.
  Program(std::string_view name, std::string_view compute_source);
  Program(Program&& other) noexcept;
  Program& operator=(Program&& other) noexcept;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  void Use() const;
  /// The location of a uniform. Throws GlError if the program has none of this name.
  GLint Uniform(const char* uniform) const;
  /// The same, but -1, which GL ignores, where the program does not use it.
  GLint UniformIfUsed(const char* uniform) const;

 private:
  void CheckLinked(std::string_view name);

  GLuint id_ = 0;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_PROGRAM_H_
