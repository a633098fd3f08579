#include "gpu/sort/gl_bitonic_sorter.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_bitonic_engine.h"

namespace tidemark::sort {
namespace {

// Compiling two programs takes milliseconds; a driver that needs this long hangs.
constexpr std::chrono::seconds kSetUpLimit{60};

template <class Key>
Texels Interleave(Channels<Key> channels, std::size_t longest) {
  constexpr bool kTwoWords = sizeof(Key) == 8;
  Texels texels;
  const std::size_t padded = std::bit_ceil(longest);
  texels.log2_keys = static_cast<std::uint32_t>(std::bit_width(padded) - 1);
  // Padding is the largest key: it ends up behind every key of the window, or equals it.
  constexpr std::uint32_t kPadding = std::numeric_limits<std::uint32_t>::max();
  texels.high.assign(padded * kChannels, kPadding);
  if constexpr (kTwoWords) texels.low.assign(padded * kChannels, kPadding);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::span<Key> keys = channels[c];
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if constexpr (kTwoWords) {
        texels.high[kChannels * i + c] = static_cast<std::uint32_t>(keys[i] >> 32);
        texels.low[kChannels * i + c] = static_cast<std::uint32_t>(keys[i]);
      } else {
        texels.high[kChannels * i + c] = keys[i];
      }
    }
  }
  return texels;
}

template <class Key>
Key KeyAt(const Texels& texels, std::size_t channel, std::size_t i) {
  const std::size_t word = kChannels * i + channel;
  if constexpr (sizeof(Key) == 8) {
    return (Key{texels.high[word]} << 32) | texels.low[word];
  } else {
    return texels.high[word];
  }
}

// Whether the texels hold the channel's keys in ascending order, as far as a sum can tell.
template <class Key>
bool LooksSorted(const Texels& texels, std::size_t channel, std::span<const Key> original) {
  Key before = 0;
  Key after = 0;
  Key previous = 0;
  bool ascending = true;
  for (std::size_t i = 0; i < original.size(); ++i) {
    const Key key = KeyAt<Key>(texels, channel, i);
    before = static_cast<Key>(before + original[i]);
    after = static_cast<Key>(after + key);
    ascending &= previous <= key;
    previous = key;
  }
  return ascending && before == after;
}

}  // namespace

GlBitonicSorter::GlBitonicSorter(GlBitonicOptions options) : options_(std::move(options)) {
  try {
    thread_ = std::make_unique<gl::GlThread>(options_.allow_software);
    // Owned by the task, not by this object: a driver that hangs here may go on after the throw.
    const auto made = std::make_shared<std::shared_ptr<GlBitonicEngine>>();
    thread_->Run(
        [made, observer = options_.observer] {
          *made = std::make_shared<GlBitonicEngine>(observer);
        },
        kSetUpLimit);
    engine_ = made->get();
    thread_->Keep(std::move(*made));
  } catch (const egl::EglError& error) {
    throw SorterError(error.what());
  } catch (const gl::GlError& error) {
    throw SorterError(error.what());
  }
  const gl::Capabilities& capabilities = engine_->capabilities();
  gl_.available = true;
  gl_.vendor = capabilities.vendor;
  gl_.renderer = capabilities.renderer;
  gl_.version = capabilities.version;
  gl_.software = capabilities.software;
  window_max_ = std::size_t{1} << engine_->log2_keys_max();
}

GlBitonicSorter::~GlBitonicSorter() = default;

std::string_view GlBitonicSorter::Sort(Channels<std::uint32_t> channels) {
  SortAll(channels);
  return name();
}
std::string_view GlBitonicSorter::Sort(Channels<std::uint64_t> channels) {
  SortAll(channels);
  return name();
}

void GlBitonicSorter::ThrowIfBroken() {
  const std::lock_guard lock(mutex_);
  if (first_failure_.empty()) return;
  throw SorterError("gl-bitonic: not used again since GL failed before: " + first_failure_);
}

template <class Key>
void GlBitonicSorter::SortAll(Channels<Key> channels) {
  assert(channels.size() <= kChannels);
  std::size_t longest = 0;
  for (const std::span<Key> keys : channels) longest = std::max(longest, keys.size());
  if (longest < 2) return;
  if (longest > window_max_) {
    throw SorterError("gl-bitonic: a window of " + std::to_string(longest) +
                      " keys; this device takes at most " + std::to_string(window_max_));
  }
  ThrowIfBroken();
  // Shared with the task: a hung driver may go on reading it after this caller has given up.
  std::shared_ptr<Texels> texels;
  try {
    texels = std::make_shared<Texels>(Interleave(channels, longest));
  } catch (const std::bad_alloc&) {
    throw SorterError("gl-bitonic: no memory for the copy of " + std::to_string(longest) +
                      " keys a channel");
  }
  try {
    thread_->Run([engine = engine_, texels] { engine->Sort(*texels); }, options_.time_limit);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (!LooksSorted<Key>(*texels, c, channels[c])) {
        throw gl::GlError(
            "checking the sorted windows failed: what the GPU returned is not what it was given (a "
            "driver error, or a context lost without notice)");
      }
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    if (first_failure_.empty()) first_failure_ = error.what();
    throw SorterError(std::string("gl-bitonic: ") + error.what());
  }
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (std::size_t i = 0; i < channels[c].size(); ++i) channels[c][i] = KeyAt<Key>(*texels, c, i);
  }
}

}  // namespace tidemark::sort
