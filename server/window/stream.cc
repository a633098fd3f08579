#include "server/window/stream.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "server/window/concat.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"
#include "server/window/value_map.h"
#include "summaries/key_codec.h"

namespace tidemark::server {
namespace {

// Smallest allocation of an open window: a stream that sent one value should not hold 2 KB.
constexpr std::size_t kFirstKeys = 16;

}  // namespace

void Stream::MarkDeleted() {
  const std::lock_guard lock(mutex_);
  deleted_ = true;
}

absl::Status Stream::DeletedStatus() const {
  return absl::NotFoundError(Concat("stream \"", Printable(name_), "\" was deleted"));
}

template <class Key>
KeyedStream<Key>::KeyedStream(std::string name, StreamSettings settings, StreamContext& context)
    : Stream(std::move(name), settings, context),
      capacity_(context.window_limits),
      published_(EmptySnapshot<Key>(settings.quantile_epsilon, settings.frequency_epsilon)) {
  assert(WideKeys(settings.type) == (sizeof(Key) == 8));
  if (settings.type == ValueType::kString) dictionary_ = std::make_unique<Dictionary>();
}

template <class Key>
KeyedStream<Key>::~KeyedStream() {
  context_.text.Change(counted_bytes_, 0);
}

template <class Key>
CapacityLimits KeyedStream<Key>::Limits() const {
  CapacityLimits limits = context_.window_limits;
  if (dictionary_) {
    limits.max = std::max(limits.min, std::min(limits.max, context_.string_window_max));
  }
  return limits;
}

template <class Key>
void KeyedStream<Key>::BeginBatch(RecordedTime time, std::vector<Window>& full) {
  active_ = true;
  capacity_.OnBatch(time, static_cast<std::uint32_t>(open_.size()), Limits());
  if (!open_.empty() && open_.size() >= capacity_.capacity()) CloseWindow(time, full);
}

template <class Key>
void KeyedStream<Key>::MakeRoom(std::size_t wanted, RecordedTime time) {
  if (open_.empty()) capacity_.OnOpened(time);
  const std::size_t capacity = capacity_.capacity();
  const std::size_t needed = std::min(capacity, open_.size() + wanted);
  if (open_.capacity() >= needed) return;
  if (capacity >= kPooledKeys && (open_.empty() || needed >= kPooledKeys)) {
    KeyBuffer<Key> buffer = context_.pools.template For<Key>().Get(capacity);
    if (!open_.empty()) {
      std::memcpy(buffer.tail(), open_.keys().data(), open_.size() * sizeof(Key));
      buffer.Extend(open_.size());
    }
    open_ = std::move(buffer);
    return;
  }
  open_.Reallocate(std::min(capacity, std::max(kFirstKeys, std::bit_ceil(needed))));
}

template <class Key>
void KeyedStream<Key>::CloseWindow(RecordedTime time, std::vector<Window>& full) {
  assert(dictionary_ || std::has_single_bit(open_.size()));
  pending_keys_ += open_.size();
  pending_bytes_ += open_.capacity() * sizeof(Key);
  full.push_back(Window{shared_from_this(), next_number_++, std::move(open_), open_new_bytes_});
  open_ = KeyBuffer<Key>();
  open_text_bytes_ = 0;
  open_new_bytes_ = 0;
  sorted_open_.reset();
  capacity_.OnFull(time, Limits());
}

template <class Key>
template <class Value, class ToKey>
void KeyedStream<Key>::AppendMapped(const std::byte* values, std::size_t count, ToKey map,
                                    RecordedTime time, std::vector<Window>& full,
                                    AppendResult& result) {
  while (count > 0) {
    MakeRoom(count, time);
    const std::size_t room =
        std::min<std::size_t>(capacity_.capacity(), open_.capacity()) - open_.size();
    const std::size_t taken = std::min(count, room);
    const std::size_t kept = map(values, taken, open_.tail());
    open_.Extend(kept);
    result.accepted += kept;
    result.refused += taken - kept;
    values += taken * sizeof(Value);
    count -= taken;
    if (open_.size() == capacity_.capacity()) CloseWindow(time, full);
  }
}

template <class Key>
AppendResult KeyedStream<Key>::AppendPacked(std::span<const std::byte> values, RecordedTime time,
                                            std::vector<Window>& full) {
  AppendResult result;
  const std::size_t width = PackedBytes(type());
  if (width == 0) {
    result.status = absl::FailedPreconditionError(
        Concat("stream \"", Printable(name()), "\" holds strings, not packed numbers"));
    return result;
  }
  if (values.size() % width != 0) {
    result.status = absl::InvalidArgumentError(
        Concat("a batch of ", values.size(), " bytes is not a whole number of ",
               ValueTypeName(type()), " values of ", width, " bytes"));
    return result;
  }
  const std::size_t count = values.size() / width;
  const std::lock_guard lock(mutex_);
  if (deleted_) {
    result.status = DeletedStatus();
    return result;
  }
  BeginBatch(time, full);
  const auto append = [&]<class Value>(Value) {
    AppendMapped<Value>(values.data(), count, MapValues<Key, Value>, time, full, result);
  };
  if constexpr (sizeof(Key) == 4) {
    if (type() == ValueType::kFloat32) {
      append(float{});
    } else {
      append(std::uint32_t{});
    }
  } else {
    switch (type()) {
      case ValueType::kFloat64:
        append(double{});
        break;
      case ValueType::kInt64:
        append(std::int64_t{});
        break;
      default:
        append(std::uint64_t{});
        break;
    }
  }
  refused_ += result.refused;
  return result;
}

template <class Key>
void KeyedStream<Key>::AppendKeys(std::span<const Key> keys, RecordedTime time,
                                  std::vector<Window>& full) {
  AppendResult ignored;
  AppendMapped<Key>(reinterpret_cast<const std::byte*>(keys.data()), keys.size(),
                    MapValues<Key, Key>, time, full, ignored);
}

template <class Key>
AppendResult KeyedStream<Key>::AppendNumbers(std::span<const double> values, RecordedTime time,
                                             std::vector<Window>& full) {
  AppendResult result;
  std::vector<Key> keys(values.size());
  std::size_t kept = 0;
  const auto encode = [&](auto convert) {
    for (const double value : values) keys[kept++] = EncodeKey(convert(value));
  };
  const auto encode_floating = [&](auto convert) {
    for (const double value : values) {
      keys[kept] = EncodeKey(convert(value));
      kept += IsNan(value) ? 0 : 1;
    }
  };
  if constexpr (sizeof(Key) == 4) {
    switch (type()) {
      case ValueType::kFloat32:
        result.status = CheckFloat32(values);
        if (!result.status.ok()) return result;
        encode_floating([](double value) { return static_cast<float>(value); });
        break;
      case ValueType::kUint32:
        result.status = CheckIntegers<std::uint32_t>(values, type());
        if (!result.status.ok()) return result;
        encode([](double value) { return static_cast<std::uint32_t>(value); });
        break;
      default:
        break;
    }
  } else {
    switch (type()) {
      case ValueType::kFloat64:
        encode_floating([](double value) { return value; });
        break;
      case ValueType::kInt64:
        result.status = CheckIntegers<std::int64_t>(values, type());
        if (!result.status.ok()) return result;
        encode([](double value) { return static_cast<std::int64_t>(value); });
        break;
      case ValueType::kUint64:
        result.status = CheckIntegers<std::uint64_t>(values, type());
        if (!result.status.ok()) return result;
        encode([](double value) { return static_cast<std::uint64_t>(value); });
        break;
      default:
        break;
    }
  }
  if (type() == ValueType::kString || type() == ValueType::kIpv4) {
    result.status = absl::FailedPreconditionError(Concat(
        "stream \"", Printable(name()), "\" holds ", ValueTypeName(type()), ", not numbers"));
    return result;
  }
  keys.resize(kept);
  const std::lock_guard lock(mutex_);
  if (deleted_) {
    result.status = DeletedStatus();
    return result;
  }
  BeginBatch(time, full);
  AppendKeys(keys, time, full);
  result.accepted = kept;
  result.refused = values.size() - kept;
  refused_ += result.refused;
  return result;
}

// A batch takes this share of the text budget without a look at its items. More of it, for items
// that are known or come several times, would keep room from the other streams' batches.
constexpr std::size_t kTextShareUnseen = 64;

// Takes room for the items' text from the budget of all streams: how much was taken. `most` is what
// they need if all of them are new and different. Without enough room for that, they are looked up.
template <class Key>
absl::StatusOr<std::size_t> KeyedStream<Key>::TakeText(std::span<const std::string_view> items,
                                                       std::size_t most) {
  if (most <= context_.text.limit() / kTextShareUnseen && context_.text.TryTake(most)) return most;
  const auto needed_now = [&] {
    std::vector<std::string_view> fresh;
    for (const std::string_view item : items) {
      if (!dictionary_->Find(item)) fresh.push_back(item);
    }
    std::sort(fresh.begin(), fresh.end());
    fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
    std::size_t bytes = 0;
    for (const std::string_view item : fresh) bytes += Dictionary::EntryBytes(item);
    return bytes;
  };
  std::size_t needed = needed_now();
  if (context_.text.TryTake(needed)) return needed;
  ForgetItems();
  needed = needed_now();
  if (context_.text.TryTake(needed)) return needed;
  return WithRefusal(absl::ResourceExhaustedError(Concat(
                         "stream \"", Printable(name()), "\": the batch's new items need ", needed,
                         " bytes; the string streams hold ", context_.text.held(), " of at most ",
                         context_.text.limit(), " bytes of text (limits.max_text_bytes)")),
                     Refusal::kTextLimit);
}

// Forgets what neither the summary nor a window holds, if there may be any such item.
template <class Key>
void KeyedStream<Key>::ForgetItems() {
  const auto& entries = *published_.frequencies.entries;
  if (dictionary_->size() <= entries.size() + pending_keys_ + open_.size()) return;
  dictionary_->Forget(published_windows_, [&](std::uint64_t id) {
    return std::binary_search(
        entries.begin(), entries.end(), FrequencyEntry<Key>{static_cast<Key>(id), 0, 0},
        [](const auto& a_entry, const auto& b_entry) { return a_entry.key < b_entry.key; });
  });
  CountDictionary(0);
}

// Corrects what the budget counts for this stream, of which `taken` is for entries to come.
template <class Key>
void KeyedStream<Key>::CountDictionary(std::size_t taken) {
  const std::size_t bytes = dictionary_->bytes();
  context_.text.Change(counted_bytes_ + taken, bytes);
  counted_bytes_ = bytes;
}

template <class Key>
AppendResult KeyedStream<Key>::AppendStrings(std::span<const std::string_view> values,
                                             RecordedTime time, std::vector<Window>& full) {
  AppendResult result;
  if constexpr (sizeof(Key) == 8) {
    if (type() == ValueType::kString) {
      std::size_t most = 0;
      for (const std::string_view item : values) {
        result.status = CheckItem(item, context_.item_bytes_max);
        if (!result.status.ok()) return result;
        most += Dictionary::EntryBytes(item);
      }
      const std::lock_guard lock(mutex_);
      if (deleted_) {
        result.status = DeletedStatus();
        return result;
      }
      // Before anything else, so that a refused batch leaves no trace in windows or summaries.
      const absl::StatusOr<std::size_t> taken = TakeText(values, most);
      if (!taken.ok()) {
        result.status = taken.status();
        return result;
      }
      BeginBatch(time, full);
      for (const std::string_view item : values) {
        // One by one: the id belongs to the window that takes it.
        const std::size_t before = dictionary_->content_bytes();
        const Key id = dictionary_->Intern(item, next_number_);
        open_text_bytes_ += item.size();
        open_new_bytes_ += dictionary_->content_bytes() - before;
        AppendKeys({&id, 1}, time, full);
        if (open_text_bytes_ >= context_.string_window_bytes_max && !open_.empty()) {
          CloseWindow(time, full);
        }
      }
      CountDictionary(*taken);
      result.accepted = values.size();
      return result;
    }
  }
  result.status = absl::FailedPreconditionError(
      Concat("stream \"", Printable(name()), "\" holds ", ValueTypeName(type()), ", not strings"));
  return result;
}

template <class Key>
void KeyedStream<Key>::Commit(Window window, const std::function<void(std::uint64_t)>& published) {
  std::unique_lock lock(mutex_);
  const std::uint64_t arrived = window.weight();
  arrived_.push_back({window.number, std::move(std::get<KeyBuffer<Key>>(window.keys)), arrived});
  if (committing_) return;
  committing_ = true;
  while (true) {
    const auto next = std::find_if(arrived_.begin(), arrived_.end(), [&](const Waiting& waiting) {
      return waiting.number == published_windows_;
    });
    if (next == arrived_.end()) break;
    KeyBuffer<Key> keys = std::move(next->keys);
    const std::uint64_t weight = next->weight;
    *next = std::move(arrived_.back());
    arrived_.pop_back();

    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    if (!summaries_) {
      const bool numbers = type() != ValueType::kString;
      summaries_ = std::make_unique<StreamSummaries<Key>>(
          numbers ? std::optional(settings_.quantile_epsilon) : std::nullopt,
          settings_.frequency_epsilon);
    }
    summaries_->AddWindow(keys.keys());
    SummarySnapshot<Key> snapshot = summaries_->Snapshot();
    if (context_.merged) context_.merged(std::chrono::steady_clock::now() - start);
    const std::size_t size = keys.size();
    const std::size_t bytes = keys.capacity() * sizeof(Key);
    context_.pools.template For<Key>().Put(std::move(keys));
    lock.lock();

    published_ = std::move(snapshot);
    ++published_windows_;
    pending_keys_ -= size;
    pending_bytes_ -= bytes;
    if (dictionary_) {
      // Amortised: scanned only when at least half of it may be forgotten.
      const std::size_t entries = published_.frequencies.entries->size();
      if (dictionary_->size() > 2 * (entries + pending_keys_ + open_.size() + size)) ForgetItems();
    }
    window_published_.notify_all();
    lock.unlock();
    published(weight);
    lock.lock();
  }
  committing_ = false;
  window_published_.notify_all();
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
  const std::size_t copy = sorted_open_ ? sorted_open_->capacity() * sizeof(Key) : 0;
  stats.window_bytes = open_.capacity() * sizeof(Key) + pending_bytes_ + copy;
  stats.dictionary_bytes = dictionary_ ? dictionary_->bytes() : 0;
  stats.exact = published_.exact;
  return stats;
}

template <class Key>
std::string KeyedStream<Key>::SerializeSummaries() const {
  std::unique_lock lock(mutex_);
  window_published_.wait(lock, [&] { return pending_keys_ == 0 && !committing_; });
  if (!summaries_) return std::string();
  return summaries_->Serialize();
}

template <class Key>
void KeyedStream<Key>::TrimStorage() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(active_, false)) return;
  sorted_open_.reset();
  if (dictionary_) ForgetItems();
  const std::size_t fitting = std::bit_ceil(std::max(kFirstKeys, open_.size()));
  if (open_.empty()) {
    open_ = KeyBuffer<Key>();
  } else if (open_.capacity() > fitting) {
    open_.Reallocate(fitting);
  }
}

template <class Key>
absl::StatusOr<StreamView<Key>> KeyedStream<Key>::View(const ViewRule<Key>& rule) const {
  StreamView<Key> view;
  KeyBuffer<Key> copy;
  std::uint64_t number = 0;
  {
    std::unique_lock lock(mutex_);
    number = next_number_;
    const std::uint64_t open_size = open_.size();
    // Windows under way mean that the sorting threads are busy. The answer is widened by them in
    // any case; where it may be by the open window too, it costs no sort of its own.
    const auto without_open = [&](std::uint64_t missing) {
      return missing > 0 && rule.tolerates && rule.tolerates(published_, 0, missing + open_size);
    };
    if (without_open(pending_keys_)) {
      view.open = std::make_shared<const KeyBuffer<Key>>();
      view.unseen = pending_keys_ + open_size;
      view.summaries = published_;
      return view;
    }
    // Everything accepted so far is published, in windows below `number`, or in the copy. Waits
    // until the windows are published, or those that are not are few enough for the rule. If later
    // windows are published meanwhile they hold the copy's values too, and the copy is dropped:
    // what is then covered is a longer prefix of the stream.
    const std::uint64_t covered = published_.count + pending_keys_;
    const auto missing = [&] {
      return covered > published_.count ? covered - published_.count : 0;
    };
    const auto enough = [&] {
      return published_windows_ >= number ||
             (rule.tolerates && rule.tolerates(published_, open_size, missing()));
    };
    const auto overdue = [&] {
      return absl::DeadlineExceededError(
          Concat("stream \"", Printable(name()), "\": ", missing(),
                 " values were still waiting to be sorted when the deadline passed"));
    };
    const bool at_once = rule.deadline == kAtOnceDeadline;
    if (at_once && !enough()) return overdue();
    if (sorted_open_ && sorted_open_number_ == number && sorted_open_->size() == open_.size()) {
      view.open = sorted_open_;
    } else if (at_once && open_size > kAtOnceKeys) {
      return absl::DeadlineExceededError(Concat("stream \"", Printable(name()), "\": ", open_size,
                                                " values were still to be sorted"));
    } else {
      copy = KeyBuffer<Key>(open_.size());
      if (!open_.empty()) {
        std::memcpy(copy.tail(), open_.keys().data(), open_.size() * sizeof(Key));
        copy.Extend(open_.size());
      }
    }
    if (!enough() && !window_published_.wait_until(lock, rule.deadline, enough)) return overdue();
    if (published_windows_ > number) {
      copy = KeyBuffer<Key>();
      view.open = std::make_shared<const KeyBuffer<Key>>();
    } else {
      view.unseen = missing();
      if (without_open(view.unseen)) {
        copy = KeyBuffer<Key>();
        view.open = std::make_shared<const KeyBuffer<Key>>();
        view.unseen += open_size;
      }
    }
    view.summaries = published_;
  }
  if (!view.open) {
    if (rule.sort) {
      rule.sort(copy.keys());
    } else {
      std::sort(copy.keys().begin(), copy.keys().end());
    }
    view.open = std::make_shared<const KeyBuffer<Key>>(std::move(copy));
    const std::lock_guard lock(mutex_);
    if (next_number_ == number && view.open->size() == open_.size()) {
      sorted_open_ = view.open;
      sorted_open_number_ = number;
    }
  }
  return view;
}

template <class Key>
std::optional<std::uint64_t> KeyedStream<Key>::FindItem(std::string_view text) const {
  const std::lock_guard lock(mutex_);
  return dictionary_ ? dictionary_->Find(text) : std::nullopt;
}

template <class Key>
std::optional<std::vector<std::string>> KeyedStream<Key>::ItemTexts(
    std::span<const std::uint64_t> ids) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t id : ids) {
    const std::string* text = dictionary_ ? dictionary_->Text(id) : nullptr;
    if (text == nullptr) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

template class KeyedStream<std::uint32_t>;
template class KeyedStream<std::uint64_t>;

std::shared_ptr<Stream> MakeStream(std::string name, StreamSettings settings,
                                   StreamContext& context) {
  if (WideKeys(settings.type)) {
    return std::make_shared<KeyedStream<std::uint64_t>>(std::move(name), settings, context);
  }
  return std::make_shared<KeyedStream<std::uint32_t>>(std::move(name), settings, context);
}

}  // namespace tidemark::server
