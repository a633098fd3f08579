// The passes of compute_plan.h run by compute shaders, and the buffers that windows cross the bus
// in: the GL side of gl-compute.
#ifndef TIDEMARK_GPU_SORT_GL_COMPUTE_ENGINE_H_
#define TIDEMARK_GPU_SORT_GL_COMPUTE_ENGINE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/gl/buffer.h"
#include "gpu/gl/capabilities.h"
#include "gpu/gl/fence.h"
#include "gpu/gl/program.h"
#include "gpu/reduce/gl_compute_reducer.h"
#include "gpu/sort/compute_plan.h"
#include "gpu/sort/window_memory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

/// Up to kChannels windows of one kind and where they lie in a slot's memory: all keys, window by
/// window, then all payloads, as the host has them.
struct ComputeRequest {
  ElementKind kind;
  std::array<std::uint32_t, kChannels> lengths{};
  std::array<std::size_t, kChannels> key_at{};      ///< bytes from the slot's start
  std::array<std::size_t, kChannels> payload_at{};  ///< the same; 0 without payloads
  std::size_t bytes = 0;
  /// Where a channel's keys are mapped already, and not written to the slot.
  std::array<std::optional<MappedPlace>, kChannels> key_from{};
};

/// Each part begins at a multiple of 256 bytes, where every device lets a binding begin.
ComputeRequest LayOut(ElementKind kind, const std::array<std::uint32_t, kChannels>& lengths);

/// The same windows, and what is wanted of each in place of its keys.
///
/// It is read back in two steps, for nobody knows beforehand how many runs there are. After the
/// first, `out` holds at tail_at() four words, how many runs each channel has of which they are
/// needed; where windows lay, those that are needed whole, and the samples of channels of which no
/// runs are needed (of others they follow from the runs); at smallest_at() the smallest key of each
/// of the latter, and at checks_at() what to compare with all its keys. The second step brings runs
/// to where their window lay, their keys first and then their ends, or the sorted window.
struct ReduceRequest {
  ComputeRequest windows;
  std::array<WindowNeeds, kChannels> needs;

  std::size_t tail_at() const { return windows.bytes; }
  std::size_t smallest_at(std::size_t c) const {
    return tail_at() + kChannels * sizeof(std::uint32_t) + c * sizeof(std::uint64_t);
  }
  std::size_t checks_at(std::size_t c) const {
    return smallest_at(kChannels) + c * sizeof(reduce::KeyChecks);
  }
  /// Bytes of the slot.
  std::size_t bytes() const { return checks_at(kChannels); }
  /// Whether there is a second step.
  bool any_runs() const;
};

/// What is read of a channel in the second step.
struct SecondRead {
  bool whole = false;
  std::uint32_t runs = 0;
};

/// What tests may set; the defaults are for use.
struct ComputeOverrides {
  /// Shared memory that a workgroup takes at most; 0: what the device has.
  std::size_t shared_bytes = 0;
  /// Bytes that one binding may have at most; 0: what the device allows.
  std::size_t storage_block_bytes = 0;
  /// False: no buffer storage, as on a context of OpenGL 4.3 without the extension.
  bool buffer_storage = true;
};

/// Sorts requests in kSlots slots. A slot has memory that windows are written to (`in`) and read
/// from (`out`) on any thread, and a buffer of the device between them. With buffer storage `in`
/// and `out` are mapped buffers, which the device reads and writes itself, and so is memory that
/// windows may lie in from the start (AddWindowChunk): the CPU moves such a window once, from `out`
/// to where it was, if it comes back whole; others once more, into the slot. Without buffer
/// storage, both are ordinary memory and there are no chunks.
///
///   caller: writes `in` → Submit: in ⇒ device, passes, device ⇒ out, fence → Done → caller reads
///   `out`
///
/// Commands of one slot need not end before those of the next are told. Whether the bus and the
/// shaders then work at the same time is the driver's choice: the commands are in one queue.
///
/// A window must fit one binding (window_max()); the windows of a request need not fit it together:
/// they are then sorted one binding after the other.
///
/// Reduced requests go the same way, with the reducer behind the passes. What it finds stays in
/// buffers of the slot's own until it is read, up to 8 bytes a key (32-bit ones) or 12 in each
/// channel of the longest window's length.
///
/// Thread: the one on which the context is current, all of it but in(), out() and the constant
/// getters. Errors: throws gl::GlError, which names the step; the slot is then worthless, but
/// after gl::GlOutOfMemory it can be used again.
class GlComputeEngine {
 public:
  /// Two for the bus and the shaders to be busy at once, one for the CPU to write to or read from.
  static constexpr std::size_t kSlots = 3;

  /// `observer` is called before each of the steps "reserve" (of a slot's first request and of ones
  /// larger than any before), "upload", "sort", "reduce" (of reduced
  /// requests), "read back", "wait" and "read found" (the second step of those); tests disturb GL
  /// from it. Throws gl::GlError where the context lacks compute shaders, or shared memory and
  /// invocations enough.
  GlComputeEngine(const ComputeOverrides& overrides,
                  std::function<void(std::string_view step)> observer);

  const gl::Capabilities& capabilities() const { return capabilities_; }
  bool maps_buffers() const { return compute_.buffer_storage; }
  ComputeShape shape(ElementKind kind) const { return programs_[IndexOf(kind)].shape; }
  /// The longest window of this kind.
  std::size_t window_max(ElementKind kind) const;

  /// Makes room in a slot; what it held is lost. REQUIRES: nothing of it is under way.
  void Reserve(std::size_t slot, std::size_t bytes);
  std::size_t capacity(std::size_t slot) const { return slots_[slot].capacity; }
  std::byte* in(std::size_t slot) const { return slots_[slot].in; }
  const std::byte* out(std::size_t slot) const { return slots_[slot].out; }

  struct WindowChunk {
    std::size_t number = 0;  ///< for MappedPlace
    std::byte* data = nullptr;
  };
  /// Maps memory for windows, which stays until the engine ends. REQUIRES: maps_buffers().
  WindowChunk AddWindowChunk(std::size_t bytes);
  /// Makes what reduced requests need beside, which compiles programs: a while. Once is enough.
  void PrepareToReduce();
  bool reduces() const { return reduces_.load(std::memory_order_acquire); }

  /// Tells GL to sort what was written to in(slot), laid out as in the request, and to the chunks.
  void Submit(std::size_t slot, const ComputeRequest& request);
  /// Whether SubmitReduced takes it: what it binds must fit one binding.
  bool TakesReduced(const ComputeRequest& windows) const;
  /// The same for a request to be reduced, and its second step: of each channel what is said there.
  /// REQUIRES: reduces().
  void SubmitReduced(std::size_t slot, const ReduceRequest& request);
  void ReadFound(std::size_t slot, const ReduceRequest& request,
                 const std::array<SecondRead, kChannels>& reads);
  /// Whether out(slot) is ready, after waiting for at most `limit`.
  bool Done(std::size_t slot, std::chrono::nanoseconds limit);

 private:
  struct PassProgram {
    ComputeShape shape;
    gl::Program program;
    bool ready = false;  // compiled; those with payloads are when they are first used
    GLint first_channel = -1, key_at = -1, payload_at = -1, lengths = -1;
    GLint column_bits = -1, row_shift = -1, row_bits = -1, pass_mirrored = -1;
    GLint round_count = -1, rounds = -1;
  };
  // Bytes that go to `out` of a slot.
  struct Read {
    const gl::Buffer* from;
    std::size_t bytes, at, to;
  };
  struct Slot {
    std::size_t capacity = 0;
    gl::Buffer device, upload, read_back;  // the last two mapped, or unused
    std::vector<std::byte> memory_in, memory_out;
    std::byte* in = nullptr;
    const std::byte* out = nullptr;
    std::vector<Read> reads;  // of the request under way
    gl::Fence fence;
    reduce::FoundRuns runs;
    reduce::FoundSamples samples;
  };

  static constexpr std::size_t IndexOf(ElementKind kind) {
    return (kind.key_bits == 64 ? 1 : 0) + (kind.payload ? 2 : 0);
  }
  const PassProgram& ProgramFor(ElementKind kind);
  void Upload(Slot& slot, const ComputeRequest& request);
  void SortOnDevice(Slot& slot, const ComputeRequest& request);
  template <class Key>
  void ReduceOnDevice(Slot& slot, const ReduceRequest& request);
  /// Tells GL to read what slot.reads says, and marks where that ends.
  void TellReads(Slot& slot);
  void RunPasses(const PassProgram& program, const Slot& slot, const ComputeRequest& request);
  void RunPassesOn(const PassProgram& program, const Slot& slot, const ComputeRequest& request,
                   std::size_t first, std::size_t end);
  void Observe(std::string_view step) const;

  std::function<void(std::string_view)> observer_;
  gl::Capabilities capabilities_;
  gl::ComputeCapabilities compute_;
  std::array<PassProgram, 4> programs_;  // [IndexOf(kind)]
  std::array<Slot, kSlots> slots_;
  std::vector<gl::Buffer> window_chunks_;
  std::optional<reduce::GlComputeReducer> reducer_;
  std::atomic<bool> reduces_{false};  // reducer_ is there
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_COMPUTE_ENGINE_H_
