#include "gpu/reduce/gl_compute_reducer.h"

#include <algorithm>
#include <cassert>
#include <sstream>
#include <string>

#include "gpu/gl/gl_check.h"
#include "tidemark_shaders.h"

namespace tidemark::reduce {
namespace {

// A block of 2^11 keys of two words takes half of the 32 KiB that OpenGL 4.3 promises.
constexpr std::uint32_t kInvocations = 256;
constexpr std::uint32_t kPerInvocation = 8;
constexpr std::uint32_t kBlock = kInvocations * kPerInvocation;

constexpr std::size_t kWordBytes = sizeof(std::uint32_t);

enum Stage : int { kCount = 0, kAddUp = 1, kWrite = 2, kSamples = 3, kCheck = 4 };

gl::Program Make(int key_words, Stage stage) {
  std::ostringstream source;
  source << "#version 430 core\n#define KEY_WORDS " << key_words << "\n#define INVOCATIONS "
         << kInvocations << "\n#define PER_INVOCATION " << kPerInvocation << "\n#define STAGE "
         << stage << "\n#line 1\n"
         << shaders::kReduceChannelsComp;
  return gl::Program("reduce_channels", source.str());
}

constexpr std::uint32_t Blocks(std::uint32_t length) { return (length + kBlock - 1) / kBlock; }

// Uniforms that a stage does not use are not there.
void Set(const gl::Program& program, const char* uniform, std::uint32_t value) {
  glUniform1ui(program.Uniform(uniform), value);
}
void Set(const gl::Program& program, const char* uniform,
         const std::array<std::uint32_t, kReducedChannels>& values) {
  glUniform4ui(program.Uniform(uniform), values[0], values[1], values[2], values[3]);
}

template <class Key>
std::array<std::uint32_t, kReducedChannels> KeyIndices(const SortedBuffer& windows) {
  std::array<std::uint32_t, kReducedChannels> at{};
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    assert(windows.key_at[c] % sizeof(Key) == 0);
    at[c] = static_cast<std::uint32_t>(windows.key_at[c] / sizeof(Key));
  }
  return at;
}

std::uint32_t Longest(const std::array<std::uint32_t, kReducedChannels>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

void BindKeys(const SortedBuffer& windows) {
  windows.keys->BindStorage(0, 0, windows.bytes != 0 ? windows.bytes : windows.keys->bytes());
}

template <class Element>
std::vector<Element> Read(const gl::Buffer& from, std::size_t first, std::size_t count) {
  std::vector<Element> elements(count);
  if (count > 0) {
    from.Read(reinterpret_cast<std::byte*>(elements.data()), count * sizeof(Element),
              first * sizeof(Element));
  }
  return elements;
}

}  // namespace

GlComputeReducer::GlComputeReducer() {
  const gl::ComputeCapabilities compute = gl::ReadComputeCapabilities();
  if (!compute.available) {
    throw gl::GlError("setting up the reducer failed: compute shaders need OpenGL 4.3");
  }
  binding_bytes_max_ = compute.storage_block_bytes;
  for (const int words : {1, 2}) {
    programs_[words - 1] = {Make(words, kCount), Make(words, kAddUp), Make(words, kWrite),
                            Make(words, kSamples), Make(words, kCheck)};
  }
  gl::CheckGl("setting up the reducer");
}

void GlComputeReducer::Provide(gl::Buffer& buffer, std::size_t bytes) const {
  if (bytes > binding_bytes_max_) {
    throw gl::GlError("reducing windows failed: they need a buffer of " + std::to_string(bytes) +
                      " bytes; a binding of this device has at most " +
                      std::to_string(binding_bytes_max_));
  }
  if (buffer.bytes() < bytes) buffer = gl::Buffer(bytes, gl::Buffer::Use::kDevice);
}

template <class Key>
const GlComputeReducer::Programs& GlComputeReducer::ProgramsFor() const {
  return programs_[sizeof(Key) / kWordBytes - 1];
}

template <class Key>
void GlComputeReducer::WriteRuns(const SortedBuffer& windows, FoundRuns& found) const {
  const std::uint32_t room = std::max(1U, Longest(windows.lengths));
  const std::uint32_t blocks = Blocks(room);
  const Programs& programs = ProgramsFor<Key>();
  found.room = room;
  Provide(found.counts, (kReducedChannels + std::size_t{blocks} * kReducedChannels) * kWordBytes);
  Provide(found.keys, FoundBytes<Key>(room));
  Provide(found.ends, FoundBytes<std::uint32_t>(room));
  BindKeys(windows);
  found.counts.BindStorage(1, 0, found.counts.bytes());
  found.keys.BindStorage(2, 0, found.keys.bytes());
  found.ends.BindStorage(3, 0, found.ends.bytes());
  const auto key_at = KeyIndices<Key>(windows);

  programs.count.Use();
  Set(programs.count, "key_at", key_at);
  Set(programs.count, "lengths", windows.lengths);
  Set(programs.count, "blocks", blocks);
  gl::OrderStorage();  // what sorted the windows
  glDispatchCompute(blocks, kReducedChannels, 1);

  programs.add_up.Use();
  Set(programs.add_up, "blocks", blocks);
  gl::OrderStorage();
  glDispatchCompute(1, kReducedChannels, 1);

  programs.write.Use();
  Set(programs.write, "key_at", key_at);
  Set(programs.write, "lengths", windows.lengths);
  Set(programs.write, "blocks", blocks);
  Set(programs.write, "room", room);
  gl::OrderStorage();
  glDispatchCompute(blocks, kReducedChannels, 1);
  gl::OrderStorageBeforeCopies();
  gl::CheckGl("reducing windows");
}

template <class Key>
void GlComputeReducer::WriteSamples(const SortedBuffer& windows,
                                    const std::array<SamplePlaces, kReducedChannels>& places,
                                    FoundSamples& found) const {
  std::array<std::uint32_t, kReducedChannels> counts{}, firsts{}, strides{};
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    assert(places[c].stride > 0);
    counts[c] = places[c].Count(windows.lengths[c]);
    firsts[c] = places[c].first;
    strides[c] = places[c].stride;
  }
  const std::uint32_t room = std::max(1U, Longest(counts));
  found.room = room;
  Provide(found.keys, FoundBytes<Key>(room));
  BindKeys(windows);
  found.keys.BindStorage(2, 0, found.keys.bytes());
  const gl::Program& program = ProgramsFor<Key>().samples;
  program.Use();
  Set(program, "key_at", KeyIndices<Key>(windows));
  Set(program, "lengths", windows.lengths);
  Set(program, "room", room);
  Set(program, "first", firsts);
  Set(program, "stride", strides);
  gl::OrderStorage();
  glDispatchCompute((room + kInvocations - 1) / kInvocations, kReducedChannels, 1);
  WriteChecks<Key>(windows, found);
  gl::OrderStorageBeforeCopies();
  gl::CheckGl("taking samples");
}

template <class Key>
void GlComputeReducer::WriteChecks(const SortedBuffer& windows, FoundSamples& found) const {
  static_assert(sizeof(KeyChecks) == 3 * kWordBytes, "as the shader writes them");
  Provide(found.checks, kReducedChannels * sizeof(KeyChecks));
  gl::OrderStorageBeforeCopies();  // the checks of the request before
  found.checks.Clear();
  found.checks.BindStorage(4, 0, found.checks.bytes());
  const gl::Program& program = ProgramsFor<Key>().check;
  program.Use();
  Set(program, "key_at", KeyIndices<Key>(windows));
  Set(program, "lengths", windows.lengths);
  glDispatchCompute(Blocks(std::max(1U, Longest(windows.lengths))), kReducedChannels, 1);
}

template <class Key>
std::array<std::vector<KeyRun<Key>>, kReducedChannels> GlComputeReducer::Runs(
    const SortedBuffer& windows) {
  WriteRuns<Key>(windows, runs_);
  const auto totals = Read<std::uint32_t>(runs_.counts, 0, kReducedChannels);
  std::array<std::vector<KeyRun<Key>>, kReducedChannels> runs;
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    if (totals[c] > windows.lengths[c]) {
      throw gl::GlError("reducing windows failed: " + std::to_string(totals[c]) + " runs of " +
                        std::to_string(windows.lengths[c]) + " keys (a driver error)");
    }
    const auto keys = Read<Key>(runs_.keys, c * runs_.room, totals[c]);
    const auto ends = Read<std::uint32_t>(runs_.ends, c * runs_.room, totals[c]);
    runs[c].resize(totals[c]);
    for (std::size_t i = 0; i < totals[c]; ++i) runs[c][i] = {keys[i], ends[i]};
  }
  gl::CheckGl("reading runs back from the GPU");
  gl::CheckNotReset("reading runs back from the GPU");
  return runs;
}

template <class Key>
std::array<std::vector<Key>, kReducedChannels> GlComputeReducer::Samples(
    const SortedBuffer& windows, const SamplePlaces& places) {
  std::array<SamplePlaces, kReducedChannels> all;
  all.fill(places);
  WriteSamples<Key>(windows, all, samples_);
  std::array<std::vector<Key>, kReducedChannels> samples;
  for (std::size_t c = 0; c < kReducedChannels; ++c) {
    samples[c] = Read<Key>(samples_.keys, c * samples_.room, places.Count(windows.lengths[c]));
  }
  gl::CheckGl("reading samples back from the GPU");
  gl::CheckNotReset("reading samples back from the GPU");
  return samples;
}

template void GlComputeReducer::WriteRuns<std::uint32_t>(const SortedBuffer&, FoundRuns&) const;
template void GlComputeReducer::WriteRuns<std::uint64_t>(const SortedBuffer&, FoundRuns&) const;
template void GlComputeReducer::WriteSamples<std::uint32_t>(
    const SortedBuffer&, const std::array<SamplePlaces, kReducedChannels>&, FoundSamples&) const;
template void GlComputeReducer::WriteSamples<std::uint64_t>(
    const SortedBuffer&, const std::array<SamplePlaces, kReducedChannels>&, FoundSamples&) const;
template std::array<std::vector<KeyRun<std::uint32_t>>, kReducedChannels> GlComputeReducer::Runs(
    const SortedBuffer&);
template std::array<std::vector<KeyRun<std::uint64_t>>, kReducedChannels> GlComputeReducer::Runs(
    const SortedBuffer&);
template std::array<std::vector<std::uint32_t>, kReducedChannels> GlComputeReducer::Samples(
    const SortedBuffer&, const SamplePlaces&);
template std::array<std::vector<std::uint64_t>, kReducedChannels> GlComputeReducer::Samples(
    const SortedBuffer&, const SamplePlaces&);

}  // namespace tidemark::reduce
