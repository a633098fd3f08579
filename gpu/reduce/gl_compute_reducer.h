// Reduces sorted windows on the device by compute shaders: what production uses.
//
// Runs: each workgroup counts those that end in its block, one workgroup adds up the blocks of a
// channel, and each writes its runs where they belong, which is a scattered write: the search and
// the lines of the raster form (gl_raster_reducer.h) are for devices without. So Roger, Assarson,
// Holzschuch (Efficient Stream Reduction on the GPU, 2007), §VI, expected of such devices. Keys are
// read twice and what is kept is written once; then the number of runs is read back, and after it
// the runs alone.
#ifndef TIDEMARK_GPU_REDUCE_GL_COMPUTE_REDUCER_H_
#define TIDEMARK_GPU_REDUCE_GL_COMPUTE_REDUCER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/gl/buffer.h"
#include "gpu/gl/capabilities.h"
#include "gpu/gl/program.h"
#include "gpu/reduce/reduced_channel.h"

namespace tidemark::reduce {

/// Sorted windows in a buffer of the device, each by itself and ascending; keys of 64 bits as the
/// host has them.
struct SortedBuffer {
  const gl::Buffer* keys = nullptr;
  std::array<std::uint32_t, kReducedChannels> lengths{};
  /// Bytes from the buffer's start; multiples of a key's size.
  std::array<std::size_t, kReducedChannels> key_at{};
};

/// Thread: the one on which the context is current. Errors: throws gl::GlError: no compute shaders,
/// a request larger than a binding may be, or what GL says.
/// Memory on the device: room for as many runs as the longest window has keys, in each channel: up
/// to 8 bytes (keys of 32 bits) or 12 a key. Kept for the next time.
class GlComputeReducer {
 public:
  GlComputeReducer();

  /// The run-length encoding of each channel.
  template <class Key>
  std::array<std::vector<KeyRun<Key>>, kReducedChannels> Runs(const SortedBuffer& windows);
  /// The keys at `places` of each channel.
  template <class Key>
  std::array<std::vector<Key>, kReducedChannels> Samples(const SortedBuffer& windows,
                                                         const SamplePlaces& places);

 private:
  struct Programs {
    gl::Program count, add_up, write, samples;
  };

  template <class Key>
  const Programs& Bind(const SortedBuffer& windows, std::size_t room);
  void Provide(gl::Buffer& buffer, std::size_t bytes) const;

  std::size_t binding_bytes_max_;
  Programs programs_[2];  // for keys of one word and of two
  gl::Buffer counts_, found_keys_, found_ends_;
};

extern template std::array<std::vector<KeyRun<std::uint32_t>>, kReducedChannels>
GlComputeReducer::Runs(const SortedBuffer&);
extern template std::array<std::vector<KeyRun<std::uint64_t>>, kReducedChannels>
GlComputeReducer::Runs(const SortedBuffer&);
extern template std::array<std::vector<std::uint32_t>, kReducedChannels> GlComputeReducer::Samples(
    const SortedBuffer&, const SamplePlaces&);
extern template std::array<std::vector<std::uint64_t>, kReducedChannels> GlComputeReducer::Samples(
    const SortedBuffer&, const SamplePlaces&);

}  // namespace tidemark::reduce

#endif  // TIDEMARK_GPU_REDUCE_GL_COMPUTE_REDUCER_H_
