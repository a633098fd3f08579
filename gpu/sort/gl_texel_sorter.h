// What the sorters that run on textures have in common on their callers' side: the GL thread, the
// copy of the windows, the check of what comes back, and what happens after a failure.
#ifndef TIDEMARK_GPU_SORT_GL_TEXEL_SORTER_H_
#define TIDEMARK_GPU_SORT_GL_TEXEL_SORTER_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "gpu/gl/gl_thread.h"
#include "gpu/sort/gl_texel_engine.h"
#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

struct GlTexelOptions {
  bool allow_software = false;
  /// A request that takes longer means that the GPU hangs. llvmpipe needed up to 5.3 s for four
  /// windows of 2^20 keys with gl-bitonic.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
  /// Called on the GL thread before each step of a sort; for tests.
  StepObserver observer;
};

/// Windows of any length are padded with the largest key to a power of two, sorted by the engine,
/// and cut again.
///
/// What comes back is checked (ascending, and the sum of the keys unchanged) before the caller's
/// memory is touched, since a lost context can also show itself as wrong texels; so a failed Sort
/// leaves every channel as it was.
///
/// Threads: any number of callers; one GL thread (gl::GlThread).
/// Errors: Sort throws SorterRefusal for a window beyond window_max() and for what there is no
/// memory for, and SorterError for every other failure of GL; after a failure of GL the sorter is
/// broken and every further Sort throws.
class GlTexelSorter : public WindowSorter {
 public:
  ~GlTexelSorter() override;

  std::string_view name() const override { return name_; }
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
  /// All that was counted in requests that succeeded.
  SortCounts counts() const;

 protected:
  using MakeEngine = std::function<std::shared_ptr<TexelEngine>(const StepObserver& observer)>;

  /// `make_engine` runs on the GL thread, and may still run after a throw: it owns what it uses.
  /// Throws SorterError when there is no context or it lacks what the engine needs.
  GlTexelSorter(std::string name, TexelLayout layout, GlTexelOptions options,
                MakeEngine make_engine);

  /// Throws SorterRefusal beyond window_max().
  void RefuseBeyondMax(std::size_t keys) const;
  /// Makes room for `channels` channels of 2^log2_keys keys, all of them the largest key. Throws
  /// SorterRefusal without memory.
  std::shared_ptr<Texels> MakeTexels(std::size_t channels, std::uint32_t log2_keys,
                                     bool two_words) const;
  /// The engine's Sort on the GL thread, then `check` on this one; counts if neither throws.
  /// Throws SorterError for whatever they throw, and from then on at once, but SorterRefusal where
  /// GL had no memory.
  void SortOnGl(const std::shared_ptr<Texels>& texels, const std::function<void()>& check);

 private:
  void ThrowIfBroken() const;
  template <class Key>
  void SortAll(Channels<Key> channels);

  const std::string name_;
  const TexelLayout layout_;
  const GlTexelOptions options_;
  std::unique_ptr<gl::GlThread> thread_;
  TexelEngine* engine_ = nullptr;  // owned by the GL thread
  GlReport gl_;
  std::size_t window_max_ = 0;
  mutable std::mutex mutex_;
  std::string first_failure_;  // guarded by mutex_; empty while GL works
  SortCounts counts_;          // guarded by mutex_
};

/// Key i of a channel, put together from its words.
template <class Key>
Key KeyAt(const Texels& texels, std::size_t channel, std::size_t i) {
  const std::size_t word = texels.Word(channel, i);
  if constexpr (sizeof(Key) == 8) {
    return (Key{texels.high[word]} << 32) | texels.low[word];
  } else {
    return texels.high[word];
  }
}

template <class Key>
void PutKey(Texels& texels, std::size_t channel, std::size_t i, Key key) {
  const std::size_t word = texels.Word(channel, i);
  if constexpr (sizeof(Key) == 8) {
    texels.high[word] = static_cast<std::uint32_t>(key >> 32);
    texels.low[word] = static_cast<std::uint32_t>(key);
  } else {
    texels.high[word] = key;
  }
}

/// Throws gl::GlError unless the texels hold the channel's keys in ascending order, as far as a sum
/// can tell.
template <class Key>
void CheckSorted(const Texels& texels, std::size_t channel, std::span<const Key> original);

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_TEXEL_SORTER_H_
