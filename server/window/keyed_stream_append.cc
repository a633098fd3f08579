#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "server/window/concat.h"
#include "server/window/finish_or_end.h"
#include "server/window/keyed_stream.h"
#include "server/window/text_rules.h"
#include "server/window/value_map.h"
#include "summaries/key_codec.h"
#include "summaries/quantile_rule.h"

namespace tidemark::server {

template <class Key>
void KeyedStream<Key>::BeginBatch(RecordedTime time, std::vector<Window>& full) {
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
  pending_bytes_ += open_payloads_.size() * sizeof(std::uint64_t);
  Window window{shared_from_this(), next_number_++, std::move(open_), open_new_bytes_,
                std::move(open_payloads_)};
  std::shared_ptr<Key[]> came;
  if (sliding_) {
    const std::span<const Key> keys = std::get<KeyBuffer<Key>>(window.keys).keys();
    came = std::make_shared_for_overwrite<Key[]>(keys.size());
    std::copy(keys.begin(), keys.end(), came.get());
    window.batches = std::exchange(open_batches_, {});
    pending_bytes_ += keys.size() * sizeof(Key);
  }
  if (window.payloads.empty()) {
    window.digest_stride =
        StreamSummaries<Key>::DigestStride(settings_.summaries(), window.size()).value_or(0);
    window.reduced_needs = StreamSummaries<Key>::NeedsOf(settings_.summaries(), window.size());
  }
  window.digest = WindowDigest<Key>();
  window.reduced = ReducedForm<Key>();
  window.arrived = std::shared_ptr<const Key[]>(std::move(came));
  full.push_back(std::move(window));
  open_ = KeyBuffer<Key>();
  open_payloads_ = {};
  open_text_bytes_ = 0;
  open_new_bytes_ = 0;
  sorted_open_.reset();
  sorted_payloads_.reset();
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
    if (sliding_ && kept > 0) {
      if (open_batches_.empty() || open_batches_.back().time_us != time) {
        open_batches_.push_back({0, time});
      }
      open_batches_.back().count += kept;
    }
    result.accepted += kept;
    result.refused += taken - kept;
    values += taken * sizeof(Value);
    count -= taken;
    if (open_.size() == capacity_.capacity()) CloseWindow(time, full);
  }
}

template <class Key>
AppendResult KeyedStream<Key>::AppendPacked(std::span<const std::byte> values,
                                            const BatchStamp& stamp, std::vector<Window>& full) {
  return AppendValues(values, {}, stamp, full);
}

template <class Key>
AppendResult KeyedStream<Key>::AppendPairs(std::span<const std::byte> values,
                                           std::span<const std::byte> payloads,
                                           const BatchStamp& stamp, std::vector<Window>& full) {
  return AppendValues(values, payloads, stamp, full);
}

template <class Key>
AppendResult KeyedStream<Key>::AppendValues(std::span<const std::byte> values,
                                            std::span<const std::byte> payloads,
                                            const BatchStamp& stamp, std::vector<Window>& full) {
  AppendResult result;
  const std::size_t width = PackedBytes(type());
  if (width == 0) {
    return RefuseUnread(absl::FailedPreconditionError(
        Concat("stream \"", Printable(name()), "\" holds strings, not packed numbers")));
  }
  if (values.size() % width != 0) {
    return RefuseUnread(absl::InvalidArgumentError(
        Concat("a batch of ", values.size(), " bytes is not a whole number of ",
               ValueTypeName(type()), " values of ", width, " bytes")));
  }
  const std::size_t count = values.size() / width;
  if (absl::Status status = CheckPayloads(count, payloads.size()); !status.ok()) {
    return RefuseUnread(std::move(status));
  }
  const std::lock_guard lock(mutex_);
  if (Answered(stamp.from, result)) return result;
  const absl::StatusOr<std::uint64_t> weight = WeightWith(count, payloads);
  if (!weight.ok()) {
    result.status = weight.status();
    return result;
  }
  result.status = CheckMemory(count, payloads.size(), stamp.time);
  if (!result.status.ok()) return result;
  const absl::StatusOr<std::uint64_t> logged =
      LogBatch({.stamp = stamp, .count = count, .values = values, .payloads = payloads});
  if (!logged.ok()) {
    result.status = logged.status();
    return result;
  }
  const FinishOrEnd applied;
  result.log_sequence = *logged;
  weight_ = *weight;
  const RecordedTime time = stamp.time;
  BeginBatch(time, full);
  const auto append = [&]<class Value>(Value) {
    if (settings_.sums) {
      AppendMapped<Value>(values.data(), count, MapValues<Key, Value, true>, time, full, result);
      return;
    }
    if (settings_.payload == PayloadType::kNone) {
      AppendMapped<Value>(values.data(), count, MapValues<Key, Value>, time, full, result);
      return;
    }
    const bool finite = settings_.payload == PayloadType::kY;
    const auto map = [&](const std::byte* part, std::size_t taken, Key* out) {
      const auto before = static_cast<std::size_t>(part - values.data()) / sizeof(Value);
      return MapPairs<Key, Value>(part, payloads.data() + before * kPayloadBytes, taken, finite,
                                  out, open_payloads_);
    };
    AppendMapped<Value>(values.data(), count, map, time, full, result);
  };
  if constexpr (sizeof(Key) == 4) {
    if (type() == ValueType::kFloat32) {
      append(float{});
    } else {
      append(std::uint32_t{});
    }
  } else if constexpr (sizeof(Key) == 16) {
    append(Ipv6Bytes{});
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
  Remember(stamp.from, result);
  return result;
}

template <class Key>
absl::Status KeyedStream<Key>::CheckMemory(std::size_t values, std::size_t beside,
                                           RecordedTime time) const {
  if (values == 0 || context_.memory.limit() == 0 || context_.replaying) return absl::OkStatus();
  // What a small open window has already is nothing more, and it is not full behind it. Of a pooled
  // one nobody may have touched the pages yet.
  const std::size_t held = open_.size() + values;
  const std::size_t places = open_.capacity();
  if (beside == 0 && places < kPooledKeys && held <= places && held < capacity_.capacity()) {
    return absl::OkStatus();
  }
  const std::uint64_t count = published_.count + pending_keys_ + open_.size();
  const bool small = count < kSmallStreamValues;
  if (!small && IsBusy(count, time)) return absl::OkStatus();
  const MemoryWish wish = small ? MemoryWish::kSmallStream : MemoryWish::kQuietStream;
  // As keys, and as what becomes of them.
  if (context_.memory.Admits(wish, 2 * values * sizeof(Key) + beside)) return absl::OkStatus();
  return context_.memory.Refused(
      wish, Concat("no room for ", values, " values more of stream \"", Printable(name()), "\""));
}

template <class Key>
bool KeyedStream<Key>::IsBusy(std::uint64_t count, RecordedTime time) const {
  // Blocks of one size say nothing of the rate; a record that is full grows no more.
  if (sliding_) return count >= sliding_->recent_values();
  const CapacityLimits limits = Limits();
  if (limits.min == limits.max) return true;  // nothing tells
  return capacity_.capacity() > limits.min && capacity_.Age(time) < kQuietAfter;
}

// All values of a stream together stay below 2^63, and so do its weights: what they come to with
// those of a batch. Refused values count, too: it makes no odds.
template <class Key>
absl::StatusOr<std::uint64_t> KeyedStream<Key>::WeightWith(
    std::size_t values, std::span<const std::byte> payloads) const {
  const std::uint64_t count = published_.count + pending_keys_ + open_.size();
  if (values > kMaxSummaryCount - count) {
    return absl::OutOfRangeError(Concat("stream \"", Printable(name()), "\" holds ", count,
                                        " values; a batch of ", values,
                                        " would bring them to 2^63 or more"));
  }
  if (settings_.payload != PayloadType::kWeight) return weight_;
  std::uint64_t total = weight_;
  for (std::size_t at = 0; at < payloads.size(); at += kPayloadBytes) {
    std::uint64_t weight = 0;
    std::memcpy(&weight, payloads.data() + at, sizeof weight);
    if (weight > kMaxSummaryCount - total) {
      return absl::OutOfRangeError(Concat("stream \"", Printable(name()), "\": weight ", weight,
                                          " at position ", at / kPayloadBytes,
                                          " of the batch brings their sum to 2^63 or more"));
    }
    total += weight;
  }
  return total;
}

template <class Key>
void KeyedStream<Key>::AppendKeys(std::span<const Key> keys, RecordedTime time,
                                  std::vector<Window>& full) {
  AppendResult ignored;
  AppendMapped<Key>(reinterpret_cast<const std::byte*>(keys.data()), keys.size(),
                    MapValues<Key, Key>, time, full, ignored);
}

template <class Key>
AppendResult KeyedStream<Key>::AppendNumbers(std::span<const double> values,
                                             const BatchStamp& stamp, std::vector<Window>& full) {
  AppendResult result;
  if (!HasRanks(type()) || type() == ValueType::kIpv4) {
    return RefuseUnread(absl::FailedPreconditionError(Concat(
        "stream \"", Printable(name()), "\" holds ", ValueTypeName(type()), ", not numbers")));
  }
  std::vector<Key> keys(values.size());
  std::size_t kept = 0;
  absl::Status status;  // of the values; where it is not ok they may not be converted
  const auto encode = [&](auto convert) {
    for (const double value : values) keys[kept++] = EncodeKey(convert(value));
  };
  const auto encode_floating = [&](auto convert) {
    for (const double value : values) {
      keys[kept] = EncodeKey(convert(value));
      kept += IsNan(value) || (settings_.sums && std::isinf(value)) ? 0 : 1;
    }
  };
  if constexpr (sizeof(Key) == 4) {
    switch (type()) {
      case ValueType::kFloat32:
        status = CheckFloat32(values);
        if (status.ok()) encode_floating([](double value) { return static_cast<float>(value); });
        break;
      case ValueType::kUint32:
        status = CheckIntegers<std::uint32_t>(values, type());
        if (status.ok()) encode([](double value) { return static_cast<std::uint32_t>(value); });
        break;
      default:
        break;
    }
  } else if constexpr (sizeof(Key) == 8) {
    switch (type()) {
      case ValueType::kFloat64:
        encode_floating([](double value) { return value; });
        break;
      case ValueType::kInt64:
        status = CheckIntegers<std::int64_t>(values, type());
        if (status.ok()) encode([](double value) { return static_cast<std::int64_t>(value); });
        break;
      case ValueType::kUint64:
        status = CheckIntegers<std::uint64_t>(values, type());
        if (status.ok()) encode([](double value) { return static_cast<std::uint64_t>(value); });
        break;
      default:
        break;
    }
  }
  if (status.ok()) status = CheckPayloads(values.size(), 0);
  if (!status.ok()) return RefuseUnread(std::move(status));
  keys.resize(kept);
  const std::lock_guard lock(mutex_);
  if (Answered(stamp.from, result)) return result;
  if (status = WeightWith(values.size(), {}).status(); !status.ok()) {
    result.status = std::move(status);
    return result;
  }
  result.status = CheckMemory(values.size(), 0, stamp.time);
  if (!result.status.ok()) return result;
  const absl::StatusOr<std::uint64_t> logged = LogBatch({.form = BatchForm::kNumbers,
                                                         .stamp = stamp,
                                                         .count = values.size(),
                                                         .values = std::as_bytes(values)});
  if (!logged.ok()) {
    result.status = logged.status();
    return result;
  }
  const FinishOrEnd applied;
  result.log_sequence = *logged;
  BeginBatch(stamp.time, full);
  AppendKeys(keys, stamp.time, full);
  result.accepted = kept;
  result.refused = values.size() - kept;
  refused_ += result.refused;
  Remember(stamp.from, result);
  return result;
}

#define TIDEMARK_INSTANTIATE(Key)                                                                \
  template absl::StatusOr<std::uint64_t> KeyedStream<Key>::WeightWith(                           \
      std::size_t, std::span<const std::byte>) const;                                            \
  template absl::Status KeyedStream<Key>::CheckMemory(std::size_t, std::size_t, RecordedTime)    \
      const;                                                                                     \
  template bool KeyedStream<Key>::IsBusy(std::uint64_t, RecordedTime) const;                     \
  template void KeyedStream<Key>::MakeRoom(std::size_t, RecordedTime);                           \
  template AppendResult KeyedStream<Key>::AppendValues(std::span<const std::byte>,               \
                                                       std::span<const std::byte>,               \
                                                       const BatchStamp&, std::vector<Window>&); \
  template void KeyedStream<Key>::BeginBatch(RecordedTime, std::vector<Window>&);                \
  template void KeyedStream<Key>::CloseWindow(RecordedTime, std::vector<Window>&);               \
  template void KeyedStream<Key>::AppendKeys(std::span<const Key>, RecordedTime,                 \
                                             std::vector<Window>&);                              \
  template AppendResult KeyedStream<Key>::AppendPacked(std::span<const std::byte>,               \
                                                       const BatchStamp&, std::vector<Window>&); \
  template AppendResult KeyedStream<Key>::AppendPairs(std::span<const std::byte>,                \
                                                      std::span<const std::byte>,                \
                                                      const BatchStamp&, std::vector<Window>&);  \
  template AppendResult KeyedStream<Key>::AppendNumbers(std::span<const double>,                 \
                                                        const BatchStamp&, std::vector<Window>&)
TIDEMARK_INSTANTIATE(std::uint32_t);
TIDEMARK_INSTANTIATE(std::uint64_t);
TIDEMARK_INSTANTIATE(Key128);
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::server
