// The `gl-bitonic` sorter: four windows at once on an OpenGL device.
#ifndef TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/gl/gl_thread.h"
#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

class GlBitonicEngine;

struct GlBitonicOptions {
  bool allow_software = false;
  /// A request that takes longer means that the GPU hangs. llvmpipe needed up to 5.3 s for four
  /// windows of 2^20 keys.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
  /// Called on the GL thread before each step of a sort; for tests.
  std::function<void(std::string_view step)> observer;
};

/// Windows of any length are padded with the largest key to a power of two, sorted in the channels
/// of RGBA32UI texels (two render targets for 64-bit keys), and cut again.
///
/// What comes back is checked (ascending, and the sum of the keys unchanged) before the caller's
/// memory is touched, since a lost context can also show itself as wrong texels; so a failed Sort
/// leaves every channel as it was.
///
/// Threads: any number of callers; one GL thread (gl::GlThread).
/// Errors: Sort throws SorterError for a window beyond window_max(), and for every failure of GL;
/// after a failure of GL the sorter is broken and every further Sort throws.
class GlBitonicSorter final : public WindowSorter {
 public:
  /// Throws SorterError when there is no context or it lacks what the sorter needs.
  explicit GlBitonicSorter(GlBitonicOptions options);
  ~GlBitonicSorter() override;

  std::string_view name() const override { return "gl-bitonic"; }
  std::string_view Sort(Channels<std::uint32_t> channels) override;
  std::string_view Sort(Channels<std::uint64_t> channels) override;

  bool SortsTogether(std::size_t /*width_index*/,
                     const std::array<std::size_t, kChannels>& /*lengths*/) const override {
    return true;
  }

  /// The GL that it runs on.
  const GlReport& gl() const { return gl_; }
  /// The longest window in keys.
  std::size_t window_max() const { return window_max_; }

 private:
  void ThrowIfBroken();
  template <class Key>
  void SortAll(Channels<Key> channels);

  const GlBitonicOptions options_;
  std::unique_ptr<gl::GlThread> thread_;
  GlBitonicEngine* engine_ = nullptr;  // owned by the GL thread
  GlReport gl_;
  std::size_t window_max_ = 0;
  std::mutex mutex_;
  std::string first_failure_;  // guarded by mutex_; empty while GL works
};

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_BITONIC_SORTER_H_
