// A buffer object: memory of the device, or memory that both sides see.
#ifndef TIDEMARK_GPU_GL_BUFFER_H_
#define TIDEMARK_GPU_GL_BUFFER_H_

#include <epoxy/gl.h>

#include <cstddef>

namespace tidemark::gl {

/// Move-only; freed on the context's thread.
///
/// A mapped buffer stays mapped as long as it lives: its memory may be written (kUpload, kWindows)
/// or read (kReadBack, kWindows) on any thread and without a GL call. Nothing keeps the two sides
/// apart but the caller and a Fence: what GL has been told to read may not be written before the
/// fence behind that command, and what GL writes is there only after CompleteReadBack(), a fence
/// behind it, and a wait for it.
class Buffer {
 public:
  enum class Use {
    kDevice,    ///< copied to and from, bound to shaders
    kUpload,    ///< mapped for writing; what is written is seen by later GL commands (coherent)
    kReadBack,  ///< mapped for reading, in memory that the CPU caches where the driver heeds the
                ///< hint
    kWindows,   ///< mapped for both, coherent, in memory that the CPU caches as above
  };

  Buffer() = default;
  /// kDevice needs OpenGL 3.1; the mapped ones need buffer storage
  /// (ComputeCapabilities::buffer_storage). Throws GlOutOfMemory.
  /// REQUIRES: bytes > 0.
  Buffer(std::size_t bytes, Use use);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::size_t bytes() const { return bytes_; }
  /// Null for kDevice.
  std::byte* mapped() const { return mapped_; }

  /// Copies from and to the caller's memory; Read waits for what was told before. `offset`: of the
  /// first byte in the buffer.
  void Write(const std::byte* from, std::size_t count, std::size_t offset = 0);
  void Read(std::byte* to, std::size_t count, std::size_t offset = 0) const;
  /// Tells GL to copy bytes of this buffer, from `offset` on, to another, to `to_offset` on.
  void CopyTo(Buffer& to, std::size_t count, std::size_t offset = 0,
              std::size_t to_offset = 0) const;
  /// Tells GL to fill it with zeros. Needs OpenGL 4.3.
  void Clear();
  /// Binds a part to shaders' storage blocks of this binding; `offset` is a multiple of 256, which
  /// suits every device.
  void BindStorage(unsigned binding, std::size_t offset, std::size_t count) const;

 private:
  GLuint id_ = 0;
  std::size_t bytes_ = 0;
  std::byte* mapped_ = nullptr;
};

/// Makes what shaders wrote before visible to shaders after it.
void OrderStorage();
/// Makes what shaders wrote before visible to copies and reads after it.
void OrderStorageBeforeCopies();
/// Makes what GL copied into mapped buffers before visible to the CPU once a later fence is passed.
void CompleteReadBack();

}  // namespace tidemark::gl

#endif  // TIDEMARK_GPU_GL_BUFFER_H_
