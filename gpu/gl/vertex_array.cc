#include "gpu/gl/vertex_array.h"

#include <utility>

namespace tidemark::gl {

VertexArray::VertexArray() { glGenVertexArrays(1, &id_); }

VertexArray::VertexArray(VertexArray&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

VertexArray& VertexArray::operator=(VertexArray&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

VertexArray::~VertexArray() {
  if (id_ != 0) glDeleteVertexArrays(1, &id_);
}

void VertexArray::Bind() const { glBindVertexArray(id_); }

}  // namespace tidemark::gl
