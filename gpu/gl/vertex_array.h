// An empty vertex array: a core context draws nothing without one.
#ifndef TIDEMARK_GPU_GL_VERTEX_ARRAY_H_
#define TIDEMARK_GPU_GL_VERTEX_ARRAY_H_

#include <epoxy/gl.h>

namespace tidemark::gl {

/// Move-only; freed on the context's thread.
class VertexArray {
 public:
  VertexArray();
  VertexArray(VertexArray&& other) noexcept;
  VertexArray& operator=(VertexArray&& other) noexcept;
  VertexArray(const VertexArray&) = delete;
  VertexArray& operator=(const VertexArray&) = delete;
  ~VertexArray();

  void Bind() const;

 private:
  GLuint id_ = 0;
};

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_VERTEX_ARRAY_H_
