// The pipeline as the ingest protocols see it, kept in memory: every batch with its time, in order.
#ifndef TIDEMARK_TESTS_SUPPORT_FAKE_SINK_H_
#define TIDEMARK_TESTS_SUPPORT_FAKE_SINK_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/window/ingest_sink.h"
#include "summaries/key_codec.h"

namespace tidemark::server {

/// What the fake keeps of a stream. Outside the pipeline Stream is only declared, so that a test
/// may define it: a program that uses this header must not link tidemark_window.
class Stream {
 public:
  Stream(std::string name_in, ElementType type_in)
      : name(std::move(name_in)), type(type_in.value), payload(type_in.payload) {}
  const std::string name;
  const ValueType type;
  const PayloadType payload;
  bool deleted = false;
  std::vector<double> numbers;          // of every accepted value, packed ones too
  std::vector<std::string> items;       // of string streams
  std::vector<std::uint64_t> payloads;  // bits, of every pair that came, refused ones too
  std::vector<std::size_t> batches;     // values of each accepted batch
  std::vector<RecordedTime> times;
  std::vector<ProducerBatch> froms;
  std::uint64_t refused = 0;  // what CountRefused was told
};

/// Thread: any. Follows IngestSink's rules in short: a name is not empty, has at most 255 bytes, is
/// UTF-8 (checked coarsely: no byte above 0xF4, no lone continuation byte) without control
/// characters; numbers of integer streams are whole (their range is not checked), items UTF-8, or
/// the whole batch is refused.
class FakeSink : public IngestSink {
 public:
  static constexpr std::size_t kNameBytesMax = 255;

  absl::StatusOr<StreamHandle> Open(std::string_view name,
                                    std::optional<ElementType> type) override {
    const std::lock_guard lock(mutex_);
    ++opens_;
    if (name.empty() || name.size() > kNameBytesMax || !NameOk(name)) {
      return absl::InvalidArgumentError("the name is empty, too long, or not plain UTF-8");
    }
    auto& stream = streams_[std::string(name)];
    if (stream && !stream->deleted) {
      if (type && *type != ElementType(stream->type, stream->payload)) {
        return absl::FailedPreconditionError("the stream exists with another type");
      }
      return stream;
    }
    if (!stream && streams_.size() > streams_max_) {
      streams_.erase(std::string(name));
      return absl::ResourceExhaustedError("too many streams");
    }
    stream = std::make_shared<Stream>(std::string(name), type.value_or(default_type_));
    return stream;
  }

  ElementType TypeOf(const StreamHandle& stream) const override {
    return {stream->type, stream->payload};
  }
  std::string_view NameOf(const StreamHandle& stream) const override { return stream->name; }

  AppendResult AppendPairs(const StreamHandle& stream, std::span<const std::byte> values,
                           std::span<const std::byte> payloads, const BatchStamp& stamp) override {
    if (stream->payload == PayloadType::kNone) {
      return {absl::FailedPreconditionError("the stream holds no pairs"), 0, 0};
    }
    const std::size_t width = PackedBytes(stream->type);
    if (width == 0 || payloads.size() / kPayloadBytes * width != values.size()) {
      return {absl::InvalidArgumentError("not as many payloads as values"), 0, 0};
    }
    KeepPayloads(*stream, payloads);
    return AppendPacked(stream, values, stamp);
  }

  AppendResult AppendStringPairs(const StreamHandle& stream,
                                 std::span<const std::string_view> values,
                                 std::span<const std::byte> payloads,
                                 const BatchStamp& stamp) override {
    if (stream->payload == PayloadType::kNone) {
      return {absl::FailedPreconditionError("the stream holds no pairs"), 0, 0};
    }
    if (payloads.size() != values.size() * kPayloadBytes) {
      return {absl::InvalidArgumentError("not as many payloads as values"), 0, 0};
    }
    KeepPayloads(*stream, payloads);
    return AppendStrings(stream, values, stamp);
  }

  AppendResult AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                            const BatchStamp& stamp) override {
    const std::size_t width = PackedBytes(stream->type);
    if (width == 0 || values.size() % width != 0) {
      return {absl::InvalidArgumentError("the size is no multiple of the value's"), 0, 0};
    }
    std::vector<double> numbers;
    numbers.reserve(values.size() / width);
    for (std::size_t at = 0; at < values.size(); at += width) {
      numbers.push_back(Load(stream->type, values.data() + at));
    }
    return Take(stream, numbers, stamp);
  }

  AppendResult AppendNumbers(const StreamHandle& stream, std::span<const double> values,
                             const BatchStamp& stamp) override {
    if (!HasRanks(stream->type) || stream->type == ValueType::kIpv4) {
      return {absl::FailedPreconditionError("the stream holds no numbers"), 0, 0};
    }
    const bool floating =
        stream->type == ValueType::kFloat64 || stream->type == ValueType::kFloat32;
    for (const double value : values) {
      if (!floating && std::trunc(value) != value) {
        return {absl::InvalidArgumentError("not a whole number"), 0, 0};
      }
    }
    return Take(stream, values, stamp);
  }

  AppendResult AppendStrings(const StreamHandle& stream, std::span<const std::string_view> values,
                             const BatchStamp& stamp) override {
    const std::lock_guard lock(mutex_);
    ++appends_;
    if (stream->deleted) return {absl::NotFoundError("the stream was deleted"), 0, 0};
    if (stream->type != ValueType::kString) {
      return {absl::FailedPreconditionError("the stream holds no strings"), 0, 0};
    }
    for (const auto value : values) {
      if (!Utf8(value)) return {absl::InvalidArgumentError("an item is not UTF-8"), 0, 0};
    }
    for (const auto value : values) stream->items.emplace_back(value);
    Record(*stream, values.size(), stamp);
    return {absl::OkStatus(), values.size(), 0};
  }

  bool saturated() const override {
    const std::lock_guard lock(mutex_);
    return saturated_;
  }

  void WhenReady(std::function<void()> resume) override {
    {
      const std::lock_guard lock(mutex_);
      if (saturated_) {
        waiting_.push_back(std::move(resume));
        changed_.notify_all();
        return;
      }
    }
    resume();
  }

  // What tests do to it.
  void Saturate() {
    const std::lock_guard lock(mutex_);
    saturated_ = true;
  }
  /// Becomes saturated by itself when `values` more have been taken in.
  void SaturateAfter(std::size_t values) {
    const std::lock_guard lock(mutex_);
    saturate_at_ = taken_ + values;
  }
  void Release() {
    std::vector<std::function<void()>> waiting;
    {
      const std::lock_guard lock(mutex_);
      saturated_ = false;
      saturate_at_.reset();
      waiting.swap(waiting_);
    }
    for (auto& resume : waiting) resume();
  }
  void Delete(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = streams_.find(name); found != streams_.end()) {
      found->second->deleted = true;
    }
  }
  void set_default_type(ValueType type) { default_type_ = type; }
  void set_streams_max(std::size_t streams) { streams_max_ = streams; }
  /// Forgets values as they come: for fuzzing and benchmarks.
  void set_keep_values(bool keep) { keep_values_ = keep; }

  // What tests ask.
  /// Waits until `done` (called under the lock) is true; false after ten seconds.
  template <typename Done>
  bool WaitUntil(Done&& done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), std::forward<Done>(done));
  }
  bool WaitForValues(std::size_t values) {
    return WaitUntil([&] { return taken_ >= values; });
  }
  bool WaitForWaiters(std::size_t count) {
    return WaitUntil([&] { return waiting_.size() >= count; });
  }
  void CountRefused(const StreamHandle& stream, std::uint64_t values) override {
    const std::lock_guard lock(mutex_);
    stream->refused += values;
  }
  std::uint64_t RefusedOf(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return streams_.at(name)->refused;
  }
  std::vector<double> Numbers(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(name);
    return found == streams_.end() ? std::vector<double>{} : found->second->numbers;
  }
  std::vector<std::string> Items(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(name);
    return found == streams_.end() ? std::vector<std::string>{} : found->second->items;
  }
  std::vector<std::uint64_t> Payloads(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(name);
    return found == streams_.end() ? std::vector<std::uint64_t>{} : found->second->payloads;
  }
  std::vector<std::size_t> Batches(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(name);
    return found == streams_.end() ? std::vector<std::size_t>{} : found->second->batches;
  }
  std::vector<std::string> Names() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, stream] : streams_) names.push_back(name);
    return names;
  }
  std::size_t taken() const {
    const std::lock_guard lock(mutex_);
    return taken_;
  }
  std::size_t opens() const {
    const std::lock_guard lock(mutex_);
    return opens_;
  }
  std::size_t appends() const {
    const std::lock_guard lock(mutex_);
    return appends_;
  }

 private:
  void KeepPayloads(Stream& stream, std::span<const std::byte> payloads) {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < payloads.size(); at += kPayloadBytes) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, payloads.data() + at, sizeof bits);
      stream.payloads.push_back(bits);
    }
  }

  static bool NameOk(std::string_view name) {
    const bool control = std::any_of(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) < 32 || c == 127;
    });
    return !control && Utf8(name);
  }

  static bool Utf8(std::string_view text) {
    std::size_t follow = 0;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte > 0xF4) return false;
      const bool continuation = byte >= 0x80 && byte < 0xC0;
      if (continuation != (follow > 0)) return false;
      if (continuation) {
        --follow;
      } else if (byte >= 0xC0) {
        follow = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
      }
    }
    return follow == 0;
  }

  template <typename T>
  static double LoadAs(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  }
  static std::array<std::uint8_t, 16> LoadAddress(const std::byte* at) {
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), at, bytes.size());
    return bytes;
  }
  static double Load(ValueType type, const std::byte* at) {
    switch (type) {
      case ValueType::kFloat64:
        return LoadAs<double>(at);
      case ValueType::kFloat32:
        return LoadAs<float>(at);
      case ValueType::kInt64:
        return LoadAs<std::int64_t>(at);
      case ValueType::kUint64:
        return LoadAs<std::uint64_t>(at);
      case ValueType::kUint32:
      case ValueType::kIpv4:
        return LoadAs<std::uint32_t>(at);
      case ValueType::kIpv6:
        return static_cast<double>(EncodeKey(Ipv6Bytes{LoadAddress(at)}));
      case ValueType::kString:
        break;
    }
    return 0;
  }

  AppendResult Take(const StreamHandle& stream, std::span<const double> values,
                    const BatchStamp& stamp) {
    const std::lock_guard lock(mutex_);
    ++appends_;
    if (stream->deleted) return {absl::NotFoundError("the stream was deleted"), 0, 0};
    AppendResult result;
    for (const double value : values) {
      if (std::isnan(value)) {
        ++result.refused;
        continue;
      }
      ++result.accepted;
      if (keep_values_) stream->numbers.push_back(value);
    }
    Record(*stream, result.accepted, stamp);
    return result;
  }

  void Record(Stream& stream, std::size_t values, const BatchStamp& stamp) {
    if (keep_values_) {
      stream.batches.push_back(values);
      stream.times.push_back(stamp.time);
      stream.froms.push_back(stamp.from);
    }
    taken_ += values;
    if (saturate_at_ && taken_ >= *saturate_at_) saturated_ = true;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, StreamHandle> streams_;
  std::vector<std::function<void()>> waiting_;
  std::optional<std::size_t> saturate_at_;
  std::size_t taken_ = 0;
  std::size_t opens_ = 0;
  std::size_t appends_ = 0;
  bool saturated_ = false;
  bool keep_values_ = true;
  ValueType default_type_ = ValueType::kFloat64;
  std::size_t streams_max_ = 1'000'000;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SUPPORT_FAKE_SINK_H_
