// The `gl-compute` sorter: four windows at once in compute shaders, the production sorter of
// hardware GPUs.
#ifndef TIDEMARK_GPU_SORT_GL_COMPUTE_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_COMPUTE_SORTER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "gpu/gl/gl_thread.h"
#include "gpu/sort/gl_compute_engine.h"
#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_memory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

struct GlComputeOptions {
  bool allow_software = false;
  /// A request that takes longer means that the GPU hangs. llvmpipe needs seconds for four windows
  /// of 2^20 keys.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
  /// Of mapped memory for windows (window_memory.h) at most; mapped as it is asked for.
  std::size_t window_memory_bytes = std::size_t{256} << 20;
  /// For tests: what GL lacks, and what is called on the GL thread before each step of a sort.
  ComputeOverrides overrides;
  std::function<void(std::string_view step)> observer;
};

/// A window of keys with 32 bits beside each: an index, a pointer, a small weight.
template <class Key>
struct KeysWithPayloads {
  std::span<Key> keys;
  std::span<std::uint32_t> payloads;  ///< as many
};
template <class Key>
using PairChannels = std::span<const KeysWithPayloads<Key>>;

/// Sorts keys of 32 and 64 bits, windows of any lengths, each by itself: no key is added. Needs
/// OpenGL 4.3 and no extension; buffer storage (4.4) is used where there is some. A window that
/// lies in window_memory() is read by the device where it is; another is first copied into a slot,
/// on the caller's thread. One that comes back whole is copied out of a slot there; samples and
/// runs are all that is copied of reduced ones (gl_compute_engine.h).
///
/// What comes back is checked (sorted_check.h, reduced_window.h) before the caller's memory is
/// touched, so that a failed Sort or SortReduced leaves every channel as it was.
///
/// Not used: subgroup operations. Exchanges inside a subgroup would replace some of the trips
/// through shared memory; up to r = 4 steps of each round are in registers already, and no GPU has
/// been measured that is held up there.
///
/// Threads: any number of callers, of whom kSlots have a request under way; one GL thread.
/// Errors: Sort, SortPairs and SortReduced throw SorterRefusal for a window beyond what the device
/// takes of its kind and for a request that GL has no memory for, and SorterError for every other
/// failure of GL; after that the sorter is broken and every further call throws.
/// Memory: for each slot in use three times its largest request, on the device and in mapped
/// memory; reduced requests take as much as gl_compute_engine.h says beside.
class GlComputeSorter final : public WindowSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlComputeSorter(GlComputeOptions options);
  ~GlComputeSorter() override;

  std::string_view name() const override { return "gl-compute"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override;
  std::string_view Sort(Channels<std::uint64_t> channels) override;

  /// Sorts up to four windows ascending by key and, of equal keys, by payload: the result is the
  /// same whatever the plan. With indices as payloads the order is that of a stable sort. This is
  /// what pair_sort.h makes composites for (keys whose span leaves no room for an index in 64
  /// bits), and the key/pointer pairs of GPU-ABiSort. REQUIRES: as many payloads as keys in each.
  /// Errors: as Sort.
  std::string_view SortPairs(PairChannels<std::uint32_t> channels);
  std::string_view SortPairs(PairChannels<std::uint64_t> channels);

  /// Takes windows whose request fits one binding of the device, the runs of four windows of the
  /// longest length too, and refuses others.
  std::string_view SortReduced(Channels<std::uint32_t> channels, std::span<const WindowNeeds> needs,
                               std::span<ReducedWindow<std::uint32_t>> reduced) override;
  std::string_view SortReduced(Channels<std::uint64_t> channels, std::span<const WindowNeeds> needs,
                               std::span<ReducedWindow<std::uint64_t>> reduced) override;
  bool Reduces(std::size_t width_index,
               const std::array<std::size_t, kChannels>& lengths) const override;

  bool SortsTogether(std::size_t /*width_index*/,
                     const std::array<std::size_t, kChannels>& /*lengths*/) const override {
    return true;
  }

  /// Null without buffer storage.
  std::shared_ptr<std::pmr::memory_resource> window_memory() const override {
    return window_memory_;
  }
  /// Keys that the device read from there so far.
  std::uint64_t mapped_keys() const { return mapped_keys_.load(std::memory_order_relaxed); }

  /// The GL that it runs on.
  const GlReport& gl() const { return gl_; }
  /// The longest window, whatever its keys' width.
  std::size_t window_max() const { return window_max_; }
  /// Whether windows are written straight into memory that the device reads.
  bool maps_buffers() const { return engine_->maps_buffers(); }
  ComputeShape shape(ElementKind kind) const { return engine_->shape(kind); }

 private:
  // A slot for as long as a request is under way.
  class Lease;
  // The line of those who wait for the GPU.
  class Turn;

  template <class Key>
  void SortAll(PairChannels<Key> channels, bool payloads);
  template <class Key>
  void RunRequest(std::size_t slot, ComputeRequest request, PairChannels<Key> channels);
  template <class Key>
  void SortReducedAll(Channels<Key> channels, std::span<const WindowNeeds> needs,
                      std::span<ReducedWindow<Key>> reduced);
  template <class Key>
  void RunReduced(std::size_t slot, ReduceRequest request, PairChannels<Key> channels,
                  std::span<ReducedWindow<Key>> reduced);
  void CheckLength(ElementKind kind, std::size_t longest) const;
  /// Calls work(slot) with a slot of its own; what it throws breaks the sorter.
  void WithSlot(const std::function<void(std::size_t slot)>& work);
  void RunTask(std::function<void()> task) { thread_->Run(std::move(task), options_.time_limit); }
  /// Room in the slot, and in it what is not mapped already.
  template <class Key>
  void Prepare(std::size_t slot, std::size_t bytes, ComputeRequest& request,
               PairChannels<Key> channels);
  void WaitUntilRead(std::size_t slot);
  void ThrowIfBroken() const;  // with mutex_ held

  const GlComputeOptions options_;
  std::shared_ptr<gl::GlThread> thread_;  // shared with window_memory_
  std::function<bool()> others_wait_;     // for the GL thread
  GlComputeEngine* engine_ = nullptr;     // owned by the GL thread
  GlReport gl_;
  std::size_t window_max_ = 0;
  std::shared_ptr<WindowMemory> window_memory_;
  std::atomic<std::uint64_t> mapped_keys_{0};

  std::mutex mutex_;
  std::condition_variable slot_free_;
  std::array<bool, GlComputeEngine::kSlots> leased_{};  // guarded by mutex_
  std::string first_failure_;                           // the same; empty while GL works
  std::condition_variable turn_ended_;
  std::set<std::uint64_t> turns_;  // guarded by mutex_
  std::uint64_t next_turn_ = 0;    // the same
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_COMPUTE_SORTER_H_
