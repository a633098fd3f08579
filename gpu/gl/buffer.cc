#include "gpu/gl/buffer.h"

#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"

namespace tidemark::gl {

// GL_COPY_WRITE_BUFFER throughout: the one binding that no other state depends on.
Buffer::Buffer(std::size_t bytes, Use use) : bytes_(bytes) {
  const auto size = static_cast<GLsizeiptr>(bytes);
  glGenBuffers(1, &id_);
  glBindBuffer(GL_COPY_WRITE_BUFFER, id_);
  if (use == Use::kDevice) {
    // GPU-side copies and shaders alone touch it; glBufferData, which 4.3 has, too.
    glBufferData(GL_COPY_WRITE_BUFFER, size, nullptr, GL_DYNAMIC_COPY);
  } else {
    GLbitfield flags = GL_MAP_PERSISTENT_BIT;
    if (use != Use::kReadBack) flags |= GL_MAP_WRITE_BIT | GL_MAP_COHERENT_BIT;
    if (use != Use::kUpload) flags |= GL_MAP_READ_BIT;
    // What the CPU reads is in the client's memory, and not coherent where it need not be: other
    // memory may be write-combined, which the CPU reads at a fraction of the bus's rate.
    const GLbitfield hint = use == Use::kUpload ? 0 : GL_CLIENT_STORAGE_BIT;
    glBufferStorage(GL_COPY_WRITE_BUFFER, size, nullptr, flags | hint);
    mapped_ = static_cast<std::byte*>(glMapBufferRange(GL_COPY_WRITE_BUFFER, 0, size, flags));
  }
  try {
    const std::string step = "making a buffer of " + std::to_string(bytes) + " bytes";
    CheckGl(step);
    if (use != Use::kDevice && mapped_ == nullptr) throw GlError(step + " failed: not mapped");
  } catch (...) {
    glDeleteBuffers(1, &id_);
    throw;
  }
}

Buffer::Buffer(Buffer&& other) noexcept
    : id_(std::exchange(other.id_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_(std::exchange(other.mapped_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Buffer::~Buffer() {
  if (id_ != 0) glDeleteBuffers(1, &id_);  // unmaps it, too
}

void Buffer::Write(const std::byte* from, std::size_t count, std::size_t offset) {
  glBindBuffer(GL_COPY_WRITE_BUFFER, id_);
  glBufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(offset),
                  static_cast<GLsizeiptr>(count), from);
}

void Buffer::Read(std::byte* to, std::size_t count, std::size_t offset) const {
  glBindBuffer(GL_COPY_READ_BUFFER, id_);
  glGetBufferSubData(GL_COPY_READ_BUFFER, static_cast<GLintptr>(offset),
                     static_cast<GLsizeiptr>(count), to);
}

void Buffer::CopyTo(Buffer& to, std::size_t count, std::size_t offset,
                    std::size_t to_offset) const {
  glBindBuffer(GL_COPY_READ_BUFFER, id_);
  glBindBuffer(GL_COPY_WRITE_BUFFER, to.id_);
  glCopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(offset),
                      static_cast<GLintptr>(to_offset), static_cast<GLsizeiptr>(count));
}

void Buffer::Clear() {
  glBindBuffer(GL_COPY_WRITE_BUFFER, id_);
  glClearBufferData(GL_COPY_WRITE_BUFFER, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, nullptr);
}

void Buffer::BindStorage(unsigned binding, std::size_t offset, std::size_t count) const {
  glBindBufferRange(GL_SHADER_STORAGE_BUFFER, binding, id_, static_cast<GLintptr>(offset),
                    static_cast<GLsizeiptr>(count));
}

void OrderStorage() { glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT); }

void OrderStorageBeforeCopies() { glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT); }

void CompleteReadBack() { glMemoryBarrier(GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT); }

}  // namespace tidemark::gl
