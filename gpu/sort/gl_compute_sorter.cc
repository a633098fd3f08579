#include "gpu/sort/gl_compute_sorter.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_engine_start.h"
#include "gpu/sort/sorted_check.h"

namespace tidemark::sort {
namespace {

// How long the GL thread waits for one request before others get their turn: long against handing
// a task over, short against what windows that are worth a GPU take the CPU (four of 2^16: 1 ms).
constexpr std::chrono::microseconds kTurn{200};

template <class Key>
std::span<const Key> Part(const std::byte* memory, std::size_t at, std::size_t count) {
  return {reinterpret_cast<const Key*>(memory + at), count};
}

template <class Key>
void CopyIn(const ComputeRequest& request, PairChannels<Key> channels, std::byte* in) {
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto& [keys, payloads] = channels[c];
    if (keys.empty()) continue;
    std::memcpy(in + request.key_at[c], keys.data(), keys.size_bytes());
    if (!request.kind.payload) continue;
    std::memcpy(in + request.payload_at[c], payloads.data(), payloads.size_bytes());
  }
}

template <class Key>
bool AllLookSorted(const ComputeRequest& request, PairChannels<Key> channels,
                   const std::byte* out) {
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const std::size_t n = channels[c].keys.size();
    const auto keys = Part<Key>(out, request.key_at[c], n);
    const bool fine =
        request.kind.payload
            ? LooksSorted<Key>(keys, Part<std::uint32_t>(out, request.payload_at[c], n),
                               channels[c].keys, channels[c].payloads)
            : LooksSorted<Key>(keys, channels[c].keys);
    if (!fine) return false;
  }
  return true;
}

template <class Key>
void CopyOut(const ComputeRequest& request, PairChannels<Key> channels, const std::byte* out) {
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto& [keys, payloads] = channels[c];
    if (keys.empty()) continue;
    std::memcpy(keys.data(), out + request.key_at[c], keys.size_bytes());
    if (!request.kind.payload) continue;
    std::memcpy(payloads.data(), out + request.payload_at[c], payloads.size_bytes());
  }
}

}  // namespace

class GlComputeSorter::Lease {
 public:
  // Waits for a free slot. Throws SorterError if GL fails meanwhile.
  explicit Lease(GlComputeSorter& sorter) : sorter_(sorter) {
    std::unique_lock lock(sorter_.mutex_);
    const auto free = [&] {
      return std::find(sorter_.leased_.begin(), sorter_.leased_.end(), false);
    };
    sorter_.slot_free_.wait(
        lock, [&] { return !sorter_.first_failure_.empty() || free() != sorter_.leased_.end(); });
    sorter_.ThrowIfBroken();
    slot_ = static_cast<std::size_t>(free() - sorter_.leased_.begin());
    sorter_.leased_[slot_] = true;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    {
      const std::lock_guard lock(sorter_.mutex_);
      sorter_.leased_[slot_] = false;
    }
    sorter_.slot_free_.notify_one();
  }

  std::size_t slot() const { return slot_; }

 private:
  GlComputeSorter& sorter_;
  std::size_t slot_ = 0;
};

GlComputeSorter::GlComputeSorter(GlComputeOptions options) : options_(std::move(options)) {
  auto started = StartEngine<GlComputeEngine>(
      options_.allow_software, [overrides = options_.overrides, observer = options_.observer] {
        return std::make_shared<GlComputeEngine>(overrides, observer);
      });
  thread_ = std::move(started.thread);
  engine_ = started.engine;
  gl_ = std::move(started.gl);
  window_max_ = std::min(engine_->window_max({32, false}), engine_->window_max({64, false}));
}

GlComputeSorter::~GlComputeSorter() = default;

std::string_view GlComputeSorter::Sort(Channels<std::uint32_t> channels) {
  std::array<KeysWithPayloads<std::uint32_t>, kChannels> keys;
  assert(channels.size() <= kChannels);
  for (std::size_t c = 0; c < channels.size(); ++c) keys[c].keys = channels[c];
  SortAll(PairChannels<std::uint32_t>(keys.data(), channels.size()), false);
  return name();
}
std::string_view GlComputeSorter::Sort(Channels<std::uint64_t> channels) {
  std::array<KeysWithPayloads<std::uint64_t>, kChannels> keys;
  assert(channels.size() <= kChannels);
  for (std::size_t c = 0; c < channels.size(); ++c) keys[c].keys = channels[c];
  SortAll(PairChannels<std::uint64_t>(keys.data(), channels.size()), false);
  return name();
}
std::string_view GlComputeSorter::SortPairs(PairChannels<std::uint32_t> channels) {
  SortAll(channels, true);
  return name();
}
std::string_view GlComputeSorter::SortPairs(PairChannels<std::uint64_t> channels) {
  SortAll(channels, true);
  return name();
}

void GlComputeSorter::ThrowIfBroken() const {
  if (first_failure_.empty()) return;
  throw SorterError("gl-compute: not used again since GL failed before: " + first_failure_);
}

template <class Key>
void GlComputeSorter::SortAll(PairChannels<Key> channels, bool payloads) {
  assert(channels.size() <= kChannels);
  const ElementKind kind{static_cast<std::uint32_t>(8 * sizeof(Key)), payloads};
  std::size_t longest = 0;
  for (const auto& channel : channels) {
    assert(!payloads || channel.keys.size() == channel.payloads.size());
    longest = std::max(longest, channel.keys.size());
  }
  if (longest < 2) return;
  if (longest > engine_->window_max(kind)) {
    throw SorterRefusal("gl-compute: a window of " + std::to_string(longest) +
                        " keys; this device takes at most " +
                        std::to_string(engine_->window_max(kind)));
  }
  std::array<std::uint32_t, kChannels> lengths{};
  for (std::size_t c = 0; c < channels.size(); ++c) {
    lengths[c] = static_cast<std::uint32_t>(channels[c].keys.size());
  }
  const Lease lease(*this);
  try {
    RunRequest(lease.slot(), LayOut(kind, lengths), channels);
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      if (first_failure_.empty()) first_failure_ = error.what();
    }
    slot_free_.notify_all();
    throw SorterError(std::string("gl-compute: ") + error.what());
  }
}

template <class Key>
void GlComputeSorter::RunRequest(std::size_t slot, const ComputeRequest& request,
                                 PairChannels<Key> channels) {
  const auto run = [&](std::function<void()> task) {
    thread_->Run(std::move(task), options_.time_limit);
  };
  if (engine_->capacity(slot) < request.bytes) {
    run([engine = engine_, slot, bytes = request.bytes] { engine->Reserve(slot, bytes); });
  }
  CopyIn(request, channels, engine_->in(slot));
  run([engine = engine_, slot, request] { engine->Submit(slot, request); });

  const auto start = std::chrono::steady_clock::now();
  const auto done = std::make_shared<bool>(false);
  while (true) {
    run([engine = engine_, slot, done] { *done = engine->Done(slot, kTurn); });
    if (*done) break;
    if (std::chrono::steady_clock::now() - start > options_.time_limit) {
      throw gl::GlError("waiting for sorted windows failed: the GPU was not done within " +
                        std::to_string(options_.time_limit.count()) + " ms (it hangs)");
    }
  }
  if (!AllLookSorted(request, channels, engine_->out(slot))) {
    throw gl::GlError(kDoesNotLookSorted);
  }
  CopyOut(request, channels, engine_->out(slot));
}

}  // namespace tidemark::sort
