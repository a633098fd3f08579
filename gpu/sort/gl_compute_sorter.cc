#include "gpu/sort/gl_compute_sorter.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/gl_engine_start.h"
#include "gpu/sort/sorted_check.h"
#include "gpu/sort/window_class.h"

namespace tidemark::sort {
namespace {

// How long the GL thread waits for a request at a time, and how long before it looks whether
// somebody has something to tell GL meanwhile: long against handing a task over, and short against
// the 0.4 ms that a fast GPU takes for four windows of 2^20.
constexpr std::chrono::microseconds kTurn{1000};
constexpr std::chrono::microseconds kLook{20};

// Of window memory: a chunk holds sixteen of the largest usual windows (2^18 keys of 64 bits), all
// chunks what a pool keeps and several hundred streams fill.
constexpr std::size_t kChunkBytes = std::size_t{32} << 20;

// What programs may take to compile, once, however short the limit of a request.
constexpr std::chrono::seconds kSetUpLimit{60};

template <class Key>
std::span<const Key> Part(const std::byte* memory, std::size_t at, std::size_t count) {
  return {reinterpret_cast<const Key*>(memory + at), count};
}

template <class Key>
void CopyIn(const ComputeRequest& request, PairChannels<Key> channels, std::byte* in) {
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto& [keys, payloads] = channels[c];
    if (keys.empty()) continue;
    if (!request.key_from[c]) {
      std::memcpy(in + request.key_at[c], keys.data(), keys.size_bytes());
    }
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

// What is still to be read of a reduced request, by what its first step brought. Throws GlError.
template <class Key>
std::array<SecondRead, kChannels> SecondReads(const ReduceRequest& request, const std::byte* out) {
  std::array<SecondRead, kChannels> reads;
  const auto counts = Part<std::uint32_t>(out, request.tail_at(), kChannels);
  for (std::size_t c = 0; c < kChannels; ++c) {
    const std::uint32_t length = request.windows.lengths[c];
    if (!request.needs[c].runs || length == 0) continue;
    if (counts[c] == 0 || counts[c] > length) {
      throw gl::GlError("reducing windows failed: " + std::to_string(counts[c]) + " runs of " +
                        std::to_string(length) +
                        " keys (a driver error, or a context lost without notice)");
    }
    const std::size_t run_bytes = sizeof(Key) + sizeof(std::uint32_t);
    reads[c].whole = counts[c] * run_bytes > length * sizeof(Key);
    reads[c].runs = reads[c].whole ? 0 : counts[c];
  }
  return reads;
}

// What was read of one channel; false if it cannot be of `keys`.
template <class Key>
bool TakeReduced(const ReduceRequest& request, std::size_t c, const SecondRead& read,
                 std::span<const Key> keys, const std::byte* out, ReducedWindow<Key>& to) {
  const WindowNeeds& needs = request.needs[c];
  const std::size_t at = request.windows.key_at[c];
  to.whole = needs.whole() || read.whole;
  if (to.whole) return LooksSorted<Key>(Part<Key>(out, at, keys.size()), keys);
  if (keys.empty()) return true;
  if (needs.runs) {
    const auto run_keys = Part<Key>(out, at, read.runs);
    const auto ends = Part<std::uint32_t>(out, at + run_keys.size_bytes(), read.runs);
    if (!LooksLikeRuns<Key>(run_keys, ends, keys)) return false;
    to.smallest = run_keys.front();
    to.runs.resize(read.runs);
    for (std::size_t i = 0; i < to.runs.size(); ++i) to.runs[i] = {run_keys[i], ends[i]};
    if (needs.samples) to.samples = SamplesOf<Key>(to.runs, *needs.samples);
    return true;
  }
  std::memcpy(&to.smallest, out + request.smallest_at(c), sizeof(Key));
  const auto samples =
      Part<Key>(out, at, needs.samples->Count(static_cast<std::uint32_t>(keys.size())));
  to.samples.assign(samples.begin(), samples.end());
  reduce::KeyChecks checks;
  std::memcpy(&checks, out + request.checks_at(c), sizeof(checks));
  return checks == reduce::ChecksOf<Key>(keys) &&
         LooksLikeSamples<Key>(to.smallest, samples, *needs.samples, keys);
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

// The place in the line of those who wait for the GPU: requests end in the order in which they were
// told, so that waiting for the first of them is enough.
class GlComputeSorter::Turn {
 public:
  explicit Turn(GlComputeSorter& sorter) : sorter_(sorter) {
    std::unique_lock lock(sorter_.mutex_);
    number_ = sorter_.next_turn_++;
    sorter_.turns_.insert(number_);
    sorter_.turn_ended_.wait(lock, [&] { return *sorter_.turns_.begin() == number_; });
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::lock_guard lock(sorter_.mutex_);
      sorter_.turns_.erase(number_);
    }
    sorter_.turn_ended_.notify_all();
  }

 private:
  GlComputeSorter& sorter_;
  std::uint64_t number_ = 0;
};

GlComputeSorter::GlComputeSorter(GlComputeOptions options) : options_(std::move(options)) {
  auto started = StartEngine<GlComputeEngine>(
      options_.allow_software, [overrides = options_.overrides, observer = options_.observer] {
        return std::make_shared<GlComputeEngine>(overrides, observer);
      });
  thread_ = std::move(started.thread);
  others_wait_ = thread_->WaitingProbe();
  engine_ = started.engine;
  gl_ = std::move(started.gl);
  window_max_ = std::min(engine_->window_max({32, false}), engine_->window_max({64, false}));
  if (!engine_->maps_buffers() || options_.window_memory_bytes < kChunkBytes) return;
  // Owns the thread, and by it the mapping, for as long as somebody keeps a window there. The GL
  // thread adds chunks when it has time.
  const auto memory = std::make_shared<std::weak_ptr<WindowMemory>>();
  const auto map = [engine = engine_, memory] {
    const std::shared_ptr<WindowMemory> to = memory->lock();
    if (to == nullptr) return;
    try {
      const auto [number, data] = engine->AddWindowChunk(kChunkBytes);
      to->Add(number, data);
    } catch (const std::exception&) {  // the heap will do; a GL that fails is told of by Sort
      to->AddNone();
    }
  };
  window_memory_ = std::make_shared<WindowMemory>(kChunkBytes, options_.window_memory_bytes,
                                                  [thread = thread_, map, memory] {
                                                    if (thread->Post(map)) return;
                                                    if (const auto to = memory->lock())
                                                      to->AddNone();
                                                  });
  *memory = window_memory_;
  thread_->Run(map, kSetUpLimit);
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
std::string_view GlComputeSorter::SortReduced(Channels<std::uint32_t> channels,
                                              std::span<const WindowNeeds> needs,
                                              std::span<ReducedWindow<std::uint32_t>> reduced) {
  SortReducedAll(channels, needs, reduced);
  return name();
}
std::string_view GlComputeSorter::SortReduced(Channels<std::uint64_t> channels,
                                              std::span<const WindowNeeds> needs,
                                              std::span<ReducedWindow<std::uint64_t>> reduced) {
  SortReducedAll(channels, needs, reduced);
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

void GlComputeSorter::CheckLength(ElementKind kind, std::size_t longest) const {
  if (longest <= engine_->window_max(kind)) return;
  throw SorterRefusal("gl-compute: a window of " + std::to_string(longest) +
                      " keys; this device takes at most " +
                      std::to_string(engine_->window_max(kind)));
}

void GlComputeSorter::WithSlot(const std::function<void(std::size_t slot)>& work) {
  const Lease lease(*this);
  try {
    work(lease.slot());
  } catch (const gl::GlOutOfMemory& error) {
    throw SorterRefusal(std::string("gl-compute: ") + error.what());
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      if (first_failure_.empty()) first_failure_ = error.what();
    }
    slot_free_.notify_all();
    if (window_memory_ != nullptr) window_memory_->Close();
    throw SorterError(std::string("gl-compute: ") + error.what());
  }
}

template <class Key>
void GlComputeSorter::Prepare(std::size_t slot, std::size_t bytes, ComputeRequest& request,
                              PairChannels<Key> channels) {
  for (std::size_t c = 0; c < channels.size() && window_memory_ != nullptr; ++c) {
    const std::span<const Key> keys = channels[c].keys;
    if (keys.empty()) continue;
    request.key_from[c] = window_memory_->Find(keys.data(), keys.size_bytes());
    if (request.key_from[c]) mapped_keys_.fetch_add(keys.size(), std::memory_order_relaxed);
  }
  if (engine_->capacity(slot) < bytes) {
    RunTask([engine = engine_, slot, bytes] { engine->Reserve(slot, bytes); });
  }
  CopyIn(request, channels, engine_->in(slot));
}

void GlComputeSorter::WaitUntilRead(std::size_t slot) {
  // From before the turn: they are on the same GPU, and where it hangs all give up within one
  // limit.
  const auto start = std::chrono::steady_clock::now();
  const Turn turn(*this);
  const auto done = std::make_shared<bool>(false);
  while (true) {
    RunTask([engine = engine_, others_wait = others_wait_, slot, done] {
      for (auto waited = kLook; !*done && waited <= kTurn; waited += kLook) {
        *done = engine->Done(slot, kLook);
        if (others_wait()) break;
      }
    });
    if (*done) return;
    if (std::chrono::steady_clock::now() - start > options_.time_limit) {
      throw gl::GlError("waiting for sorted windows failed: the GPU was not done within " +
                        std::to_string(options_.time_limit.count()) + " ms (it hangs)");
    }
  }
}

template <class Key>
void GlComputeSorter::SortAll(PairChannels<Key> channels, bool payloads) {
  assert(channels.size() <= kChannels);
  const ElementKind kind{static_cast<std::uint32_t>(8 * sizeof(Key)), payloads};
  std::array<std::uint32_t, kChannels> lengths{};
  for (std::size_t c = 0; c < channels.size(); ++c) {
    assert(!payloads || channels[c].keys.size() == channels[c].payloads.size());
    CheckLength(kind, channels[c].keys.size());
    lengths[c] = static_cast<std::uint32_t>(channels[c].keys.size());
  }
  if (*std::max_element(lengths.begin(), lengths.end()) < 2) return;
  WithSlot([&](std::size_t slot) { RunRequest(slot, LayOut(kind, lengths), channels); });
}

template <class Key>
void GlComputeSorter::RunRequest(std::size_t slot, ComputeRequest request,
                                 PairChannels<Key> channels) {
  Prepare(slot, request.bytes, request, channels);
  RunTask([engine = engine_, slot, request] { engine->Submit(slot, request); });
  WaitUntilRead(slot);
  if (!AllLookSorted(request, channels, engine_->out(slot))) throw gl::GlError(kNotWhatWasGiven);
  CopyOut(request, channels, engine_->out(slot));
}

bool GlComputeSorter::Reduces(std::size_t width_index,
                              const std::array<std::size_t, kChannels>& lengths) const {
  if (width_index >= kGlKeyWidths) return false;
  const ElementKind kind{static_cast<std::uint32_t>(WidthBits(width_index)), false};
  std::array<std::uint32_t, kChannels> narrow{};
  for (std::size_t c = 0; c < kChannels; ++c) {
    if (lengths[c] > engine_->window_max(kind)) return false;
    narrow[c] = static_cast<std::uint32_t>(lengths[c]);
  }
  return engine_->TakesReduced(LayOut(kind, narrow));
}

template <class Key>
void GlComputeSorter::SortReducedAll(Channels<Key> channels, std::span<const WindowNeeds> needs,
                                     std::span<ReducedWindow<Key>> reduced) {
  assert(channels.size() <= kChannels && needs.size() == channels.size() &&
         reduced.size() == channels.size());
  const ElementKind kind{static_cast<std::uint32_t>(8 * sizeof(Key)), false};
  std::array<KeysWithPayloads<Key>, kChannels> keys;
  std::array<std::uint32_t, kChannels> lengths{};
  ReduceRequest request;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    CheckLength(kind, channels[c].size());
    keys[c].keys = channels[c];
    lengths[c] = static_cast<std::uint32_t>(channels[c].size());
    request.needs[c] = needs[c];
  }
  if (*std::max_element(lengths.begin(), lengths.end()) < 2) {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      reduced[c] = ReduceSorted<Key>(channels[c], needs[c]);
    }
    return;
  }
  request.windows = LayOut(kind, lengths);
  if (!engine_->TakesReduced(request.windows)) {
    throw SorterRefusal("gl-compute: windows whose runs need more than one binding of this device");
  }
  WithSlot([&](std::size_t slot) {
    RunReduced<Key>(slot, request, PairChannels<Key>(keys.data(), channels.size()), reduced);
  });
}

template <class Key>
void GlComputeSorter::RunReduced(std::size_t slot, ReduceRequest request,
                                 PairChannels<Key> channels,
                                 std::span<ReducedWindow<Key>> reduced) {
  if (!engine_->reduces()) {
    thread_->Run([engine = engine_] { engine->PrepareToReduce(); },
                 std::max<std::chrono::milliseconds>(options_.time_limit, kSetUpLimit));
  }
  Prepare(slot, request.bytes(), request.windows, channels);
  RunTask([engine = engine_, slot, request] { engine->SubmitReduced(slot, request); });
  WaitUntilRead(slot);
  const std::byte* out = engine_->out(slot);
  const std::array<SecondRead, kChannels> reads = SecondReads<Key>(request, out);
  if (request.any_runs()) {
    RunTask([engine = engine_, slot, request, reads] { engine->ReadFound(slot, request, reads); });
    WaitUntilRead(slot);
  }
  std::array<ReducedWindow<Key>, kChannels> found;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (!TakeReduced<Key>(request, c, reads[c], channels[c].keys, out, found[c])) {
      throw gl::GlError(kNotWhatWasGiven);
    }
  }
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (found[c].whole && !channels[c].keys.empty()) {
      std::memcpy(channels[c].keys.data(), out + request.windows.key_at[c],
                  channels[c].keys.size_bytes());
    }
    reduced[c] = std::move(found[c]);
  }
}

}  // namespace tidemark::sort
