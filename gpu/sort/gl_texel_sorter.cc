#include "gpu/sort/gl_texel_sorter.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <new>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_engine_start.h"
#include "gpu/sort/sorted_check.h"

namespace tidemark::sort {

template <class Key>
void CheckSorted(const Texels& texels, std::size_t channel, std::span<const Key> original) {
  const auto key_at = [&](std::size_t i) { return KeyAt<Key>(texels, channel, i); };
  if (!LooksSortedAt<Key>(key_at, original)) throw gl::GlError(kNotWhatWasGiven);
}
template void CheckSorted<std::uint32_t>(const Texels&, std::size_t,
                                         std::span<const std::uint32_t>);
template void CheckSorted<std::uint64_t>(const Texels&, std::size_t,
                                         std::span<const std::uint64_t>);

GlTexelSorter::GlTexelSorter(std::string name, TexelLayout layout, GlTexelOptions options,
                             MakeEngine make_engine)
    : name_(std::move(name)), layout_(layout), options_(std::move(options)) {
  auto started = StartEngine<TexelEngine>(
      options_.allow_software, [make_engine = std::move(make_engine),
                                observer = options_.observer] { return make_engine(observer); });
  thread_ = std::move(started.thread);
  engine_ = started.engine;
  gl_ = std::move(started.gl);
  window_max_ = std::size_t{1} << engine_->log2_keys_max();
}

GlTexelSorter::~GlTexelSorter() = default;

std::string_view GlTexelSorter::Sort(Channels<std::uint32_t> channels) {
  SortAll(channels);
  return name();
}
std::string_view GlTexelSorter::Sort(Channels<std::uint64_t> channels) {
  SortAll(channels);
  return name();
}

SortCounts GlTexelSorter::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void GlTexelSorter::ThrowIfBroken() const {
  const std::lock_guard lock(mutex_);
  if (first_failure_.empty()) return;
  throw SorterError(name_ + ": not used again since GL failed before: " + first_failure_);
}

void GlTexelSorter::RefuseBeyondMax(std::size_t keys) const {
  if (keys <= window_max_) return;
  throw SorterRefusal(name_ + ": a window of " + std::to_string(keys) +
                      " keys; this device takes at most " + std::to_string(window_max_));
}

std::shared_ptr<Texels> GlTexelSorter::MakeTexels(std::size_t channels, std::uint32_t log2_keys,
                                                  bool two_words) const {
  // Padding is the largest key: it ends up behind every key of the window, or equals it.
  constexpr std::uint32_t kPadding = std::numeric_limits<std::uint32_t>::max();
  const std::size_t wide =
      layout_ == TexelLayout::kInterleaved ? kChannels : std::bit_ceil(channels);
  try {
    auto texels = std::make_shared<Texels>();
    texels->layout = layout_;
    texels->log2_keys = log2_keys;
    texels->log2_channels = static_cast<std::uint32_t>(std::bit_width(wide) - 1);
    texels->high.assign(wide << log2_keys, kPadding);
    if (two_words) texels->low.assign(wide << log2_keys, kPadding);
    return texels;
  } catch (const std::bad_alloc&) {
    throw SorterRefusal(name_ + ": no memory for the copy of " +
                        std::to_string(std::size_t{1} << log2_keys) + " keys a channel");
  }
}

void GlTexelSorter::SortOnGl(const std::shared_ptr<Texels>& texels,
                             const std::function<void()>& check) {
  ThrowIfBroken();
  try {
    // The texels are shared with the task: a hung driver may go on reading them after this caller
    // has given up.
    thread_->Run([engine = engine_, texels] { engine->Sort(*texels); }, options_.time_limit);
    check();
  } catch (const gl::GlOutOfMemory& error) {
    throw SorterRefusal(name_ + ": " + error.what());
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    if (first_failure_.empty()) first_failure_ = error.what();
    throw SorterError(name_ + ": " + error.what());
  }
  const std::lock_guard lock(mutex_);
  counts_ += texels->counts;
}

template <class Key>
void GlTexelSorter::SortAll(Channels<Key> channels) {
  assert(channels.size() <= kChannels);
  std::size_t longest = 0;
  for (const std::span<Key> keys : channels) longest = std::max(longest, keys.size());
  if (longest < 2) return;
  RefuseBeyondMax(longest);
  ThrowIfBroken();
  const std::uint32_t log2_keys =
      std::max(static_cast<std::uint32_t>(std::bit_width(longest - 1)), engine_->log2_keys_min());
  const std::shared_ptr<Texels> texels = MakeTexels(channels.size(), log2_keys, sizeof(Key) == 8);
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (std::size_t i = 0; i < channels[c].size(); ++i) PutKey(*texels, c, i, channels[c][i]);
  }
  SortOnGl(texels, [&] {
    for (std::size_t c = 0; c < channels.size(); ++c) CheckSorted<Key>(*texels, c, channels[c]);
  });
  for (std::size_t c = 0; c < channels.size(); ++c) {
    for (std::size_t i = 0; i < channels[c].size(); ++i) channels[c][i] = KeyAt<Key>(*texels, c, i);
  }
}

}  // namespace tidemark::sort
