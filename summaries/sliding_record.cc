#include "summaries/sliding_record.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMSR";

}  // namespace

template <class Key>
std::uint64_t RecentValues<Key>::count() const {
  return std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Piece& piece) { return sum + piece.count; });
}

template <class Key>
std::vector<Key> RecentValues<Key>::Sorted() const {
  std::vector<Key> keys;
  keys.reserve(count());
  for (const Piece& piece : pieces) {
    const Key* first = piece.block.get() + piece.first;
    keys.insert(keys.end(), first, first + piece.count);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Key>
SlidingRecord<Key>::SlidingRecord(const SlidingOptions& options)
    : rule_(std::make_shared<const SlidingRule>(options)) {}

template <class Key>
void SlidingRecord<Key>::AddBlock(std::shared_ptr<const Key[]> arrived,
                                  std::span<const TimedCount> batches) {
  const std::uint64_t size = rule_->block_size();
  const bool timed = rule_->by_time();
  std::uint64_t left = size;
  for (const TimedCount& batch : batches) {
    if (batch.count > left) left = size + 1;
    if (left <= size) left -= batch.count;
  }
  if (timed && left != 0) {
    throw std::invalid_argument("the times of a block do not stand for its " +
                                std::to_string(size) + " values");
  }
  if (size > kMaxSummaryCount - end_) {
    throw std::length_error("a sliding window of " + std::to_string(end_) +
                            " values cannot take in " + std::to_string(size) +
                            " more: the limit is 2^63 - 1");
  }
  blocks_.push_back(std::move(arrived));
  end_ += size;
  if (timed) {
    for (const TimedCount& batch : batches) times_.Append(batch, *rule_);
  }
  Expire();
}

template <class Key>
void SlidingRecord<Key>::Advance(std::int64_t now_us) {
  if (!rule_->by_time()) return;
  told_ = std::max(told_, now_us);
  Expire();
}

template <class Key>
void SlidingRecord<Key>::Expire() {
  const SlidingOptions& options = rule_->options();
  // A value is kept while any window may hold it.
  std::uint64_t expired = end_;
  if (options.max_values > 0) expired = end_ - std::min(end_, options.max_values);
  if (rule_->by_time()) {
    const std::int64_t border = WindowBorder(this->now_us(), options.max_age_us);
    expired = std::min(expired, times_.After(border).low);
  }
  expired_ = std::max(expired_, expired);
  times_.Forget(expired_);
  const std::uint64_t size = rule_->block_size();
  const std::uint64_t keep = std::max(expired_, end_ - std::min(end_, rule_->recent_values()));
  while (!blocks_.empty() && end_ - (blocks_.size() - 1) * size <= keep) blocks_.pop_front();
}

template <class Key>
bool SlidingRecord<Key>::ExpiredFits() const {
  const SlidingOptions& options = rule_->options();
  const std::uint64_t by_count = end_ - std::min(end_, options.max_values);
  if (!rule_->by_time()) return expired_ == by_count;
  const std::int64_t border = WindowBorder(this->now_us(), options.max_age_us);
  return expired_ <= times_.After(border).high && (options.max_values == 0 || expired_ <= by_count);
}

template <class Key>
SlidingRange SlidingRecord<Key>::Last(std::uint64_t values, std::uint64_t later) const {
  const std::uint64_t most = rule_->options().max_values;
  if (values == 0 || values > most) {
    throw std::invalid_argument("a window of the last " + std::to_string(values) +
                                " values was asked, expected 1 to " + std::to_string(most));
  }
  SlidingRange range;
  range.end = end_;
  range.later = std::min(values, later);
  range.begin = range.low = end_ - std::min(end_, values - range.later);
  return range;
}

template <class Key>
SlidingRange SlidingRecord<Key>::Within(std::int64_t age_us, std::int64_t now_us,
                                        std::span<const TimedCount> later) const {
  const std::int64_t most = rule_->options().max_age_us;
  if (age_us <= 0 || age_us > most) {
    throw std::invalid_argument("a window of the last " + std::to_string(age_us) +
                                " microseconds was asked, expected 1 to " + std::to_string(most));
  }
  std::int64_t now = std::max(now_us, this->now_us());
  for (const TimedCount& batch : later) now = std::max(now, batch.time_us);
  const std::int64_t border = WindowBorder(now, age_us);
  SlidingRange range;
  range.end = end_;
  bool all = true;
  std::int64_t time = times_.latest();
  for (const TimedCount& batch : later) {
    time = std::max(time, batch.time_us);
    if (time > border) {
      range.later += batch.count;
    } else {
      all = all && batch.count == 0;
    }
  }
  const WindowBegin begin = all ? times_.After(border) : WindowBegin{end_, end_};
  range.low = std::max(begin.low, expired_);
  range.begin = begin.high;
  return range;
}

template <class Key>
RecentValues<Key> SlidingRecord<Key>::Recent(std::uint64_t begin, std::uint64_t end) const {
  RecentValues<Key> recent;
  const std::uint64_t size = rule_->block_size();
  const std::uint64_t held = end_ - blocks_.size() * size;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t first = (at - held) % size;
    const std::uint64_t count = std::min(size - first, end - at);
    recent.pieces.push_back({blocks_.at((at - held) / size), first, count});
    at += count;
  }
  return recent;
}

template <class Key>
std::size_t SlidingRecord<Key>::bytes() const {
  // A shared array has two counters and a pointer before it.
  constexpr std::size_t kControlBytes = 32;
  return sizeof(*this) + sizeof(SlidingRule) +
         static_cast<std::size_t>(rule_->levels()) * sizeof(BucketShape) + times_.bytes() +
         blocks_.size() *
             (sizeof(blocks_.front()) + kControlBytes + rule_->block_size() * sizeof(Key));
}

void WriteOptions(ByteWriter& writer, const SlidingOptions& options) {
  writer.PutDouble(options.epsilon);
  writer.Put(options.max_values);
  writer.Put(std::bit_cast<std::uint64_t>(options.max_age_us));
  writer.Put(std::uint64_t{options.block_size});
}

std::shared_ptr<const SlidingRule> ReadRule(ByteReader& reader) {
  SlidingOptions options;
  options.epsilon = reader.GetDouble();
  options.max_values = reader.Get<std::uint64_t>();
  options.max_age_us = std::bit_cast<std::int64_t>(reader.Get<std::uint64_t>());
  options.block_size = reader.Get<std::uint64_t>();
  if (options.block_size == 0) reader.Fail("has blocks of 0 values");
  try {
    return std::make_shared<const SlidingRule>(options);
  } catch (const std::invalid_argument& error) {
    reader.Fail(std::string("has options that are not allowed: ") + error.what());
  }
}

template <class Key>
std::string SlidingRecord<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  WriteOptions(writer, rule_->options());
  writer.Put(end_);
  writer.Put(expired_);
  writer.Put(std::bit_cast<std::uint64_t>(told_));
  times_.Write(writer);
  writer.Put(std::uint64_t{blocks_.size()});
  for (const auto& block : blocks_) writer.PutKeys(block.get(), rule_->block_size());
  return writer.Finish();
}

template <class Key>
SlidingRecord<Key> SlidingRecord<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "sliding record");
  auto rule = ReadRule(reader);
  SlidingRecord record(rule->options());
  const std::uint64_t size = rule->block_size();
  record.end_ = reader.Get<std::uint64_t>();
  record.expired_ = reader.Get<std::uint64_t>();
  record.told_ = std::bit_cast<std::int64_t>(reader.Get<std::uint64_t>());
  if (record.end_ > kMaxSummaryCount || record.end_ % size != 0) {
    reader.Fail("has " + std::to_string(record.end_) + " values, expected whole blocks of " +
                std::to_string(size));
  }
  if (record.expired_ > record.end_) reader.Fail("lets values expire that did not come yet");
  record.times_ = SlidingTimes::Read(reader, *rule);
  if (record.times_.end() != (rule->by_time() ? record.end_ : 0)) {
    reader.Fail("has times of " + std::to_string(record.times_.end()) + " values, expected " +
                std::to_string(rule->by_time() ? record.end_ : 0));
  }
  if (!record.ExpiredFits()) reader.Fail("lets values expire that its windows hold");
  const auto blocks = reader.Get<std::uint64_t>();
  const std::uint64_t keep =
      std::max(record.expired_, record.end_ - std::min(record.end_, rule->recent_values()));
  const std::uint64_t expected = (record.end_ - keep + size - 1) / size;
  if (blocks != expected) {
    reader.Fail("keeps " + std::to_string(blocks) + " blocks as they came, expected " +
                std::to_string(expected));
  }
  reader.NeedItems(blocks, size * sizeof(Key));
  for (std::uint64_t i = 0; i < blocks; ++i) {
    auto keys = std::make_shared_for_overwrite<Key[]>(size);
    reader.GetKeys(keys.get(), size);
    record.blocks_.push_back(std::move(keys));
  }
  reader.ExpectEnd();
  return record;
}

template struct RecentValues<std::uint32_t>;
template struct RecentValues<std::uint64_t>;
template class SlidingRecord<std::uint32_t>;
template class SlidingRecord<std::uint64_t>;
template struct RecentValues<Uint128>;
template class SlidingRecord<Uint128>;

}  // namespace tidemark
