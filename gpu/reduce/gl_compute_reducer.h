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
#include <span>
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
  /// Where the last window ends: what is bound. 0: the buffer's end.
  std::size_t bytes = 0;
};

/// What was found, on the device: element i of channel c at c * room + i. The buffers grow as they
/// must and are kept for the next time.
struct FoundRuns {
  gl::Buffer counts;  ///< begins with how many runs each channel has: four words
  gl::Buffer keys;
  gl::Buffer ends;  ///< words
  std::size_t room = 0;
};
struct FoundSamples {
  gl::Buffer keys;
  std::size_t room = 0;
  gl::Buffer checks;  ///< kReducedChannels of KeyChecks
};

/// What the host can compare with the window that it sent, of which it sees samples alone.
struct KeyChecks {
  std::uint32_t low_sum = 0;   ///< of the keys' low words, modulo 2^32
  std::uint32_t high_sum = 0;  ///< the same of their high words; 0 for keys of 32 bits
  std::uint32_t descents = 0;  ///< keys greater than the next one

  friend bool operator==(const KeyChecks&, const KeyChecks&) = default;
};

/// What the device finds if it sorted these.
template <class Key>
KeyChecks ChecksOf(std::span<const Key> keys) {
  KeyChecks checks;
  for (const Key key : keys) {
    checks.low_sum += static_cast<std::uint32_t>(key);
    checks.high_sum += static_cast<std::uint32_t>(std::uint64_t{key} >> 32);
  }
  return checks;
}

/// Thread: the one on which the context is current. Errors: throws gl::GlError: no compute shaders,
/// a request larger than a binding may be, or what GL says.
/// Memory on the device: room for as many runs as the longest window has keys, in each channel: up
/// to 8 bytes (keys of 32 bits) or 12 a key. Kept for the next time.
class GlComputeReducer {
 public:
  GlComputeReducer();

  /// Tells GL to write the runs, or the keys at `places`, of each channel to buffers of the
  /// caller's, and makes them visible to copies. A channel of which nothing is wanted has length 0.
  /// With samples come the checks of the keys that they were taken from, for one more reading of
  /// all keys on the device.
  /// For a caller that has several such requests under way.
  template <class Key>
  void WriteRuns(const SortedBuffer& windows, FoundRuns& found) const;
  template <class Key>
  void WriteSamples(const SortedBuffer& windows,
                    const std::array<SamplePlaces, kReducedChannels>& places,
                    FoundSamples& found) const;
  /// The most bytes that FoundRuns has in one buffer for windows so long, which a binding must
  /// hold.
  template <class Key>
  static constexpr std::size_t FoundBytes(std::size_t longest) {
    return longest * kReducedChannels * sizeof(Key);
  }

  /// The run-length encoding of each channel, read back.
  template <class Key>
  std::array<std::vector<KeyRun<Key>>, kReducedChannels> Runs(const SortedBuffer& windows);
  /// The keys at `places` of each channel, read back.
  template <class Key>
  std::array<std::vector<Key>, kReducedChannels> Samples(const SortedBuffer& windows,
                                                         const SamplePlaces& places);

 private:
  struct Programs {
    gl::Program count, add_up, write, samples, check;
  };

  template <class Key>
  const Programs& ProgramsFor() const;
  /// Adds the checks of all windows to found.checks.
  template <class Key>
  void WriteChecks(const SortedBuffer& windows, FoundSamples& found) const;
  void Provide(gl::Buffer& buffer, std::size_t bytes) const;

  std::size_t binding_bytes_max_;
  Programs programs_[2];  // for keys of one word and of two
  FoundRuns runs_;
  FoundSamples samples_;
};

extern template void GlComputeReducer::WriteRuns<std::uint32_t>(const SortedBuffer&,
                                                                FoundRuns&) const;
extern template void GlComputeReducer::WriteRuns<std::uint64_t>(const SortedBuffer&,
                                                                FoundRuns&) const;
extern template void GlComputeReducer::WriteSamples<std::uint32_t>(
    const SortedBuffer&, const std::array<SamplePlaces, kReducedChannels>&, FoundSamples&) const;
extern template void GlComputeReducer::WriteSamples<std::uint64_t>(
    const SortedBuffer&, const std::array<SamplePlaces, kReducedChannels>&, FoundSamples&) const;
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
