#include "gpu/sort/gl_compute_engine.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "tidemark_shaders.h"

namespace tidemark::sort {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the shader takes a 64-bit key's low word first");

// The largest value that GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT may have.
constexpr std::size_t kAlignment = 256;
constexpr std::size_t kPayloadBytes = 4;
constexpr std::size_t kEndBytes = 4;  // of a run

constexpr std::size_t Aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr std::array<ElementKind, 4> kKinds = {
    ElementKind{32, false}, {64, false}, {32, true}, {64, true}};

std::string Source(ElementKind kind, const ComputeShape& shape) {
  std::ostringstream source;
  source << "#version 430 core\n#define KEY_WORDS " << kind.key_bits / 32 << "\n#define PAYLOAD "
         << (kind.payload ? 1 : 0) << "\n#define BLOCK_LOG2 " << shape.block_log2
         << "\n#define REGISTERS_LOG2 " << shape.registers_log2 << "\n#define INVOCATIONS "
         << shape.Invocations() << "\n#define ROUNDS_MAX " << kRoundsMax << "\n#line 1\n"
         << shaders::kBitonicPassComp;
  return source.str();
}

// Where a window's part ends, in bytes of the slot.
std::size_t KeyEnd(const ComputeRequest& request, std::size_t c) {
  return request.key_at[c] + request.lengths[c] * request.kind.KeyBytes();
}
std::size_t PayloadEnd(const ComputeRequest& request, std::size_t c) {
  return request.payload_at[c] + request.lengths[c] * kPayloadBytes;
}

}  // namespace

ComputeRequest LayOut(ElementKind kind, const std::array<std::uint32_t, kChannels>& lengths) {
  ComputeRequest request;
  request.kind = kind;
  request.lengths = lengths;
  for (std::size_t c = 0; c < kChannels; ++c) {
    request.key_at[c] = request.bytes;
    request.bytes = Aligned(KeyEnd(request, c));
  }
  for (std::size_t c = 0; c < kChannels && kind.payload; ++c) {
    request.payload_at[c] = request.bytes;
    request.bytes = Aligned(PayloadEnd(request, c));
  }
  return request;
}

bool ReduceRequest::any_runs() const {
  return std::any_of(needs.begin(), needs.end(), [](const WindowNeeds& of) { return of.runs; });
}

GlComputeEngine::GlComputeEngine(const ComputeOverrides& overrides,
                                 std::function<void(std::string_view)> observer)
    : observer_(std::move(observer)),
      capabilities_(gl::ReadCapabilities()),
      compute_(gl::ReadComputeCapabilities()) {
  if (!compute_.available) {
    throw gl::GlError("setting up gl-compute failed: " + capabilities_.renderer +
                      " offers OpenGL " + capabilities_.version + "; compute shaders need 4.3");
  }
  if (overrides.shared_bytes != 0) compute_.shared_bytes = overrides.shared_bytes;
  if (overrides.storage_block_bytes != 0) {
    compute_.storage_block_bytes = overrides.storage_block_bytes;
  }
  compute_.buffer_storage = compute_.buffer_storage && overrides.buffer_storage;
  for (const ElementKind kind : kKinds) {
    try {
      programs_[IndexOf(kind)].shape =
          ChooseShape(kind, {compute_.shared_bytes, compute_.invocations_max});
    } catch (const std::invalid_argument& error) {
      throw gl::GlError(std::string("setting up gl-compute failed: ") + error.what());
    }
  }
  ProgramFor({32, false});
  ProgramFor({64, false});
  gl::CheckGl("setting up gl-compute");
}

const GlComputeEngine::PassProgram& GlComputeEngine::ProgramFor(ElementKind kind) {
  PassProgram& out = programs_[IndexOf(kind)];
  if (out.ready) return out;
  out.program = gl::Program("bitonic_pass", Source(kind, out.shape));
  out.first_channel = out.program.Uniform("first_channel");
  out.key_at = out.program.Uniform("key_at");
  if (kind.payload) out.payload_at = out.program.Uniform("payload_at");
  out.lengths = out.program.Uniform("lengths");
  out.column_bits = out.program.Uniform("column_bits");
  out.row_shift = out.program.Uniform("row_shift");
  out.row_bits = out.program.Uniform("row_bits");
  out.pass_mirrored = out.program.Uniform("pass_mirrored");
  out.round_count = out.program.Uniform("round_count");
  out.rounds = out.program.Uniform("rounds");
  out.ready = true;
  return out;
}

std::size_t GlComputeEngine::window_max(ElementKind kind) const {
  // Groups: a strided pass starts up to twice as many as the window fills.
  const std::size_t by_groups = std::size_t{compute_.groups_max} / 2
                                << programs_[IndexOf(kind)].shape.block_log2;
  return std::min(
      {compute_.storage_block_bytes / kind.KeyBytes(), by_groups, std::size_t{1} << kMaxLog2Keys});
}

void GlComputeEngine::Observe(std::string_view step) const {
  if (observer_) observer_(step);
}

void GlComputeEngine::Reserve(std::size_t index, std::size_t bytes) {
  if (bytes <= slots_[index].capacity) return;
  Observe("reserve");
  // The old one stays if there is no memory for both: smaller requests still fit it.
  Slot slot;
  slot.device = gl::Buffer(bytes, gl::Buffer::Use::kDevice);
  if (compute_.buffer_storage) {
    slot.upload = gl::Buffer(bytes, gl::Buffer::Use::kUpload);
    slot.read_back = gl::Buffer(bytes, gl::Buffer::Use::kReadBack);
    slot.in = slot.upload.mapped();
    slot.out = slot.read_back.mapped();
  } else {
    slot.memory_in.resize(bytes);
    slot.memory_out.resize(bytes);
    slot.in = slot.memory_in.data();
    slot.out = slot.memory_out.data();
  }
  slot.capacity = bytes;
  slots_[index] = std::move(slot);
}

GlComputeEngine::WindowChunk GlComputeEngine::AddWindowChunk(std::size_t bytes) {
  window_chunks_.emplace_back(bytes, gl::Buffer::Use::kWindows);
  return {window_chunks_.size() - 1, window_chunks_.back().mapped()};
}

void GlComputeEngine::PrepareToReduce() {
  if (!reducer_) reducer_.emplace();
  reduces_.store(true, std::memory_order_release);
}

// What lies in the slot from one mapped window to the next is copied at once.
void GlComputeEngine::Upload(Slot& slot, const ComputeRequest& request) {
  if (!compute_.buffer_storage) {
    slot.device.Write(slot.in, request.bytes);
    return;
  }
  std::size_t begin = 0;
  const auto copy_slot = [&](std::size_t end, std::size_t next) {
    if (end > begin) slot.upload.CopyTo(slot.device, end - begin, begin, begin);
    begin = next;
  };
  for (std::size_t c = 0; c < kChannels; ++c) {
    if (!request.key_from[c]) continue;
    const auto& [chunk, offset] = *request.key_from[c];
    copy_slot(request.key_at[c], Aligned(KeyEnd(request, c)));
    window_chunks_[chunk].CopyTo(slot.device, KeyEnd(request, c) - request.key_at[c], offset,
                                 request.key_at[c]);
  }
  copy_slot(request.bytes, request.bytes);
}

void GlComputeEngine::SortOnDevice(Slot& slot, const ComputeRequest& request) {
  Observe("upload");
  Upload(slot, request);
  gl::CheckGl("uploading windows to the GPU");

  Observe("sort");
  RunPasses(ProgramFor(request.kind), slot, request);
  gl::CheckGl("running the passes of the network");
}

// Without buffer storage GL reads when Done says that there is something: reading waits.
void GlComputeEngine::TellReads(Slot& slot) {
  if (compute_.buffer_storage) {
    for (const Read& read : slot.reads) {
      read.from->CopyTo(slot.read_back, read.bytes, read.at, read.to);
    }
    gl::CompleteReadBack();
  }
  slot.fence = gl::Fence::Insert();
}

void GlComputeEngine::Submit(std::size_t index, const ComputeRequest& request) {
  Slot& slot = slots_[index];
  SortOnDevice(slot, request);
  Observe("read back");
  gl::OrderStorageBeforeCopies();
  slot.reads = {{&slot.device, request.bytes, 0, 0}};
  TellReads(slot);
  gl::CheckGl("reading sorted windows back from the GPU");
}

bool GlComputeEngine::TakesReduced(const ComputeRequest& windows) const {
  const std::size_t longest = *std::max_element(windows.lengths.begin(), windows.lengths.end());
  return windows.bytes <= compute_.storage_block_bytes &&
         longest * kChannels * windows.kind.KeyBytes() <= compute_.storage_block_bytes;
}

template <class Key>
void GlComputeEngine::ReduceOnDevice(Slot& slot, const ReduceRequest& request) {
  const ComputeRequest& windows = request.windows;
  reduce::SortedBuffer sorted;
  sorted.keys = &slot.device;
  sorted.key_at = windows.key_at;
  sorted.bytes = windows.bytes;
  slot.reads.clear();
  for (std::size_t c = 0; c < kChannels; ++c) {
    if (request.needs[c].whole() && windows.lengths[c] > 0) {
      slot.reads.push_back(
          {&slot.device, windows.lengths[c] * sizeof(Key), windows.key_at[c], windows.key_at[c]});
    }
  }
  if (request.any_runs()) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      sorted.lengths[c] = request.needs[c].runs ? windows.lengths[c] : 0;
    }
    reducer_->WriteRuns<Key>(sorted, slot.runs);
    slot.reads.push_back(
        {&slot.runs.counts, kChannels * sizeof(std::uint32_t), 0, request.tail_at()});
  }
  std::array<reduce::SamplePlaces, kChannels> places;
  bool any_samples = false;
  for (std::size_t c = 0; c < kChannels; ++c) {
    const WindowNeeds& needs = request.needs[c];
    const bool sampled = needs.samples && !needs.runs;
    sorted.lengths[c] = sampled ? windows.lengths[c] : 0;
    if (sampled) places[c] = *needs.samples;
    any_samples |= sampled;
  }
  if (!any_samples) return;
  reducer_->WriteSamples<Key>(sorted, places, slot.samples);
  for (std::size_t c = 0; c < kChannels; ++c) {
    const std::size_t count = places[c].Count(sorted.lengths[c]);
    if (count > 0) {
      slot.reads.push_back({&slot.samples.keys, count * sizeof(Key),
                            c * slot.samples.room * sizeof(Key), windows.key_at[c]});
    }
    if (sorted.lengths[c] > 0) {
      slot.reads.push_back({&slot.device, sizeof(Key), windows.key_at[c], request.smallest_at(c)});
    }
  }
  slot.reads.push_back(
      {&slot.samples.checks, kChannels * sizeof(reduce::KeyChecks), 0, request.checks_at(0)});
}

void GlComputeEngine::SubmitReduced(std::size_t index, const ReduceRequest& request) {
  Slot& slot = slots_[index];
  SortOnDevice(slot, request.windows);
  Observe("reduce");
  if (request.windows.kind.key_bits == 64) {
    ReduceOnDevice<std::uint64_t>(slot, request);
  } else {
    ReduceOnDevice<std::uint32_t>(slot, request);
  }
  Observe("read back");
  gl::OrderStorageBeforeCopies();
  TellReads(slot);
  gl::CheckGl("reading reduced windows back from the GPU");
}

void GlComputeEngine::ReadFound(std::size_t index, const ReduceRequest& request,
                                const std::array<SecondRead, kChannels>& reads) {
  Slot& slot = slots_[index];
  const ComputeRequest& windows = request.windows;
  const std::size_t key_bytes = windows.kind.KeyBytes();
  Observe("read found");
  slot.reads.clear();
  for (std::size_t c = 0; c < kChannels; ++c) {
    const std::size_t to = windows.key_at[c];
    if (reads[c].whole) {
      slot.reads.push_back({&slot.device, windows.lengths[c] * key_bytes, to, to});
    } else if (const std::size_t runs = reads[c].runs; runs > 0) {
      const std::size_t first = c * slot.runs.room;
      slot.reads.push_back({&slot.runs.keys, runs * key_bytes, first * key_bytes, to});
      slot.reads.push_back(
          {&slot.runs.ends, runs * kEndBytes, first * kEndBytes, to + runs * key_bytes});
    }
  }
  gl::OrderStorageBeforeCopies();
  TellReads(slot);
  gl::CheckGl("reading runs back from the GPU");
}

bool GlComputeEngine::Done(std::size_t index, std::chrono::nanoseconds limit) {
  Slot& slot = slots_[index];
  Observe("wait");
  if (!slot.fence.Wait(limit)) return false;
  if (!compute_.buffer_storage) {
    for (const Read& read : slot.reads) {
      read.from->Read(slot.memory_out.data() + read.to, read.bytes, read.at);
    }
  }
  gl::CheckGl("waiting for sorted windows");
  gl::CheckNotReset("waiting for sorted windows");
  return true;
}

// As many windows at a time as one binding holds.
void GlComputeEngine::RunPasses(const PassProgram& program, const Slot& slot,
                                const ComputeRequest& request) {
  for (std::size_t first = 0; first < kChannels;) {
    std::size_t end = first + 1;
    while (end < kChannels &&
           KeyEnd(request, end) - request.key_at[first] <= compute_.storage_block_bytes &&
           PayloadEnd(request, end) - request.payload_at[first] <= compute_.storage_block_bytes) {
      ++end;
    }
    RunPassesOn(program, slot, request, first, end);
    first = end;
  }
}

void GlComputeEngine::RunPassesOn(const PassProgram& program, const Slot& slot,
                                  const ComputeRequest& request, std::size_t first,
                                  std::size_t end) {
  const std::uint32_t longest =
      *std::max_element(request.lengths.begin() + static_cast<std::ptrdiff_t>(first),
                        request.lengths.begin() + static_cast<std::ptrdiff_t>(end));
  if (longest < 2) return;
  std::array<GLuint, kChannels> key_at{};
  std::array<GLuint, kChannels> payload_at{};
  for (std::size_t c = first; c < end; ++c) {
    key_at[c] =
        static_cast<GLuint>((request.key_at[c] - request.key_at[first]) / request.kind.KeyBytes());
    payload_at[c] =
        static_cast<GLuint>((request.payload_at[c] - request.payload_at[first]) / kPayloadBytes);
  }
  slot.device.BindStorage(0, request.key_at[first],
                          KeyEnd(request, end - 1) - request.key_at[first]);
  program.program.Use();
  if (request.kind.payload) {
    slot.device.BindStorage(1, request.payload_at[first],
                            PayloadEnd(request, end - 1) - request.payload_at[first]);
    glUniform4uiv(program.payload_at, 1, payload_at.data());
  }
  glUniform1ui(program.first_channel, static_cast<GLuint>(first));
  glUniform4uiv(program.key_at, 1, key_at.data());
  glUniform4uiv(program.lengths, 1, request.lengths.data());
  for (const ComputePass& pass : MakeComputePlan(program.shape, Log2Keys(longest)).passes) {
    std::array<GLuint, kRoundsMax> rounds{};
    std::transform(pass.rounds.begin(), pass.rounds.end(), rounds.begin(),
                   [](const ComputeRound& round) { return round.Code(); });
    glUniform1ui(program.column_bits, pass.column_bits);
    glUniform1ui(program.row_shift, pass.row_shift);
    glUniform1ui(program.row_bits, pass.row_bits);
    glUniform1ui(program.pass_mirrored, pass.mirrored ? 1 : 0);
    glUniform1ui(program.round_count, static_cast<GLuint>(pass.rounds.size()));
    glUniform1uiv(program.rounds, static_cast<GLsizei>(pass.rounds.size()), rounds.data());
    glDispatchCompute(pass.Groups(longest), static_cast<GLuint>(end - first), 1);
    gl::OrderStorage();
  }
}

}  // namespace tidemark::sort
