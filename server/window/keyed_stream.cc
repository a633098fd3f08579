#include "server/window/keyed_stream.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace tidemark::server {
namespace {

std::optional<TextLevels> LevelsOf(const StreamSettings& settings) {
  const HierarchySettings& hierarchy = settings.hierarchy;
  if (settings.type != ValueType::kString || hierarchy.depth == 0) return std::nullopt;
  return TextLevels(hierarchy.separator, hierarchy.depth,
                    hierarchy.root_last ? TextRoot::kLast : TextRoot::kFirst);
}

}  // namespace

template <class Key>
KeyedStream<Key>::KeyedStream(std::string name, StreamSettings settings, StreamContext& context)
    : Stream(std::move(name), settings, context),
      sliding_(settings.sliding.any()
                   ? std::make_unique<SlidingSummaries<Key>>(settings.summaries())
                   : nullptr),
      capacity_(Limits()),
      text_levels_(LevelsOf(settings)),
      published_(EmptySnapshot<Key>(settings.summaries())) {
  assert(WithKeyOf(settings.type, [](auto key) { return sizeof(key) == sizeof(Key); }));
  if (settings.type == ValueType::kString) dictionary_ = std::make_unique<Dictionary>();
}

template <class Key>
KeyedStream<Key>::~KeyedStream() {
  context_.text.Change(counted_bytes_, 0);
}

template <class Key>
CapacityLimits KeyedStream<Key>::Limits() const {
  CapacityLimits limits = context_.window_limits;
  if (sliding_) {  // blocks of one size, whatever the rate
    limits.min = limits.max = static_cast<std::uint32_t>(sliding_->block_size());
    return limits;
  }
  if (dictionary_) {
    limits.max = std::max(limits.min, std::min(limits.max, context_.string_window_max));
  }
  return limits;
}

template <class Key>
void KeyedStream<Key>::Commit(Window window, const std::function<void(std::uint64_t)>& published) {
  std::unique_lock lock(mutex_);
  const std::uint64_t arrived = window.weight();
  arrived_.push_back(
      {window.number, std::move(std::get<KeyBuffer<Key>>(window.keys)), std::move(window.payloads),
       std::move(std::get<std::shared_ptr<const Key[]>>(window.arrived)), std::move(window.batches),
       std::move(std::get<WindowDigest<Key>>(window.digest)),
       std::move(std::get<ReducedForm<Key>>(window.reduced)), arrived});
  if (committing_) return;
  committing_ = true;
  while (true) {
    const auto next = std::find_if(arrived_.begin(), arrived_.end(), [&](const Waiting& waiting) {
      return waiting.number == published_windows_;
    });
    if (next == arrived_.end()) break;
    KeyBuffer<Key> keys = std::move(next->keys);
    const std::vector<std::uint64_t> payloads = std::move(next->payloads);
    std::shared_ptr<const Key[]> came = std::move(next->came);
    const std::vector<TimedCount> batches = std::move(next->batches);
    const WindowDigest<Key> digest = std::move(next->digest);
    const ReducedForm<Key> reduced = std::move(next->reduced);
    const std::uint64_t weight = next->weight;
    *next = std::move(arrived_.back());
    arrived_.pop_back();

    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    if (!summaries_) {
      summaries_ = std::make_unique<StreamSummaries<Key>>(settings_.summaries());
    }
    LevelItems level_items;
    if (digest.count > 0) {
      summaries_->AddDigest(digest);
    } else if (reduced.count > 0) {
      summaries_->AddReduced(reduced);
    } else {
      if (text_levels_) level_items = ItemsOfLevels(keys.keys(), payloads).value();
      summaries_->AddWindow(keys.keys(), payloads, level_items);
    }
    if (sliding_) sliding_->AddBlock(std::move(came), batches, keys.keys(), level_items);
    SummarySnapshot<Key> snapshot = summaries_->Snapshot();
    if (context_.merged) context_.merged(std::chrono::steady_clock::now() - start);
    const std::size_t size = keys.size();
    const std::size_t bytes = keys.capacity() * sizeof(Key) +
                              payloads.size() * sizeof(std::uint64_t) +
                              (sliding_ ? keys.size() * sizeof(Key) : 0);
    context_.pools.template For<Key>().Put(std::move(keys));
    lock.lock();

    published_ = std::move(snapshot);
    ++published_windows_;
    pending_keys_ -= size;
    pending_bytes_ -= bytes;
    if (dictionary_) {
      // Amortised: scanned only when at least half of it may be forgotten. Of a hierarchy each
      // value that sliding windows keep as it came may have a text on every level; and if more is
      // needed than that (sliding_levels.h), not again until many came.
      const std::size_t values = pending_keys_ + open_.size() + size;
      const std::size_t as_they_came = sliding_ ? sliding_->values_kept() : 0;
      const std::size_t held =
          ItemsKept() + values * KeysOfValue() + as_they_came * (KeysOfValue() - 1);
      const std::size_t known = dictionary_->size();
      if (known > 2 * held && known > forgotten_to_ + held / 2) ForgetItems();
    }
    if (image_wanted_ != nullptr && image_wanted_->windows == published_windows_) {
      // Without the lock, but with committing_: it may take milliseconds.
      StreamImage<Key>& image = *image_wanted_;
      lock.unlock();
      HandOver(image);
      lock.lock();
      image_wanted_ = nullptr;
    }
    window_published_.notify_all();
    lock.unlock();
    published(weight);
    lock.lock();
    if (!LetStatesBeTaken(lock)) return;
  }
  committing_ = false;
  window_published_.notify_all();
}

// Between two windows: lets those go on who wait for the summaries as they are now, however fast
// windows come. False if another thread publishes the windows that came meanwhile.
template <class Key>
bool KeyedStream<Key>::LetStatesBeTaken(std::unique_lock<std::mutex>& lock) {
  const auto waits = [&] {
    return std::any_of(states_wanted_.begin(), states_wanted_.end(),
                       [&](std::uint64_t number) { return number <= published_windows_; });
  };
  if (!waits()) return true;
  committing_ = false;
  window_published_.notify_all();
  window_published_.wait(lock, [&] { return committing_ || !waits(); });
  if (committing_) return false;
  committing_ = true;
  return true;
}

template <class Key>
StreamStats KeyedStream<Key>::Stats() const {
  const std::lock_guard lock(mutex_);
  StreamStats stats;
  stats.count = published_.count + pending_keys_ + open_.size();
  stats.refused = refused_;
  stats.pending = pending_keys_ + open_.size();
  stats.window_capacity = capacity_.capacity();
  stats.window_fill = open_.size();
  stats.windows_summarized = published_windows_;
  stats.quantile_bytes = published_.quantile_bytes;
  stats.frequency_bytes = published_.frequency_bytes;
  stats.sum_bytes = published_.sum_bytes;
  if (sliding_) stats.sliding_bytes = sliding_->bytes();
  std::size_t copy = sorted_open_ ? sorted_open_->capacity() * sizeof(Key) : 0;
  if (sorted_payloads_) copy += sorted_payloads_->capacity() * sizeof(std::uint64_t);
  stats.window_bytes = open_.capacity() * sizeof(Key) +
                       open_payloads_.capacity() * sizeof(std::uint64_t) + pending_bytes_ + copy;
  stats.dictionary_bytes = dictionary_ ? dictionary_->bytes() : 0;
  stats.exact = published_.exact && (!sliding_ || sliding_->end() == 0);
  return stats;
}

template <class Key>
std::string KeyedStream<Key>::SerializeSummaries() const {
  std::unique_lock lock(mutex_);
  window_published_.wait(lock, [&] { return pending_keys_ == 0 && !committing_; });
  if (!summaries_) return std::string();
  const SummaryFrames frames = summaries_->Frames();
  return frames.quantiles + frames.frequencies + frames.weights + frames.hierarchy + frames.sums +
         frames.text_levels + (sliding_ ? sliding_->Serialize() : std::string());
}

template <class Key>
void KeyedStream<Key>::TrimStorage() {
  const std::lock_guard lock(mutex_);
  if (active_) {
    active_ = false;
    idle_trims_ = 0;
    return;
  }
  ++idle_trims_;
  sorted_open_.reset();
  sorted_payloads_.reset();
  if (dictionary_) ForgetItems();
  const std::size_t fitting = std::bit_ceil(std::max(kFirstKeys, open_.size()));
  if (open_.empty()) {
    open_ = KeyBuffer<Key>();
  } else if (open_.capacity() > fitting) {
    open_.Reallocate(fitting);
  }
}

template class KeyedStream<std::uint32_t>;
template class KeyedStream<std::uint64_t>;
template class KeyedStream<Key128>;

}  // namespace tidemark::server
