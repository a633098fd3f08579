#include "summaries/sliding_times.h"

#include <algorithm>
#include <bit>

namespace tidemark {

std::int64_t WindowBorder(std::int64_t now_us, std::int64_t age_us) {
  return now_us < SlidingTimes::kNever + age_us ? SlidingTimes::kNever : now_us - age_us;
}

void SlidingTimes::Append(const TimedCount& values, const SlidingRule& rule) {
  if (values.count == 0) return;
  const std::int64_t time = std::max(latest_, values.time_us);
  if (marks_.empty() || time > latest_) {
    if (marks_.size() >= thin_at_) {
      Thin(rule);
      thin_at_ = ThinAt(marks_.size());
    }
    marks_.push_back({end_, false, time});
  }
  latest_ = time;
  end_ += values.count;
}

void SlidingTimes::Thin(const SlidingRule& rule) {
  std::size_t kept = 0;  // marks_[0 … kept] stay
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    if (i + 1 < marks_.size()) {
      const Mark& next = marks_[i + 1];
      if (next.first - marks_[kept].first - 1 <= rule.TimeSlack(end_ - next.first)) {
        marks_[i + 1].after_gap = true;
        continue;
      }
    }
    marks_[++kept] = marks_[i];
  }
  if (!marks_.empty()) marks_.resize(kept + 1);
}

WindowBegin SlidingTimes::After(std::int64_t border) const {
  const auto mark = std::upper_bound(
      marks_.begin(), marks_.end(), border,
      [](std::int64_t time, const Mark& candidate) { return time < candidate.time_us; });
  if (mark == marks_.end()) return {end_, end_};
  const std::uint64_t first = mark->first;
  if (mark == marks_.begin() || !mark->after_gap) return {first, first};
  return {std::prev(mark)->first + 1, first};
}

void SlidingTimes::Forget(std::uint64_t before) {
  // The run in which `before` lies stays.
  const auto mark = std::upper_bound(
      marks_.begin(), marks_.end(), before,
      [](std::uint64_t value, const Mark& candidate) { return value < candidate.first; });
  if (mark == marks_.begin()) return;
  const auto old = static_cast<std::size_t>(std::prev(mark) - marks_.begin());
  // Not before they are worth the move of the others.
  if (old <= marks_.size() / 4 + kThinFrom / 4) return;
  marks_.erase(marks_.begin(), std::prev(mark));
  thin_at_ = std::min(thin_at_, ThinAt(marks_.size()));
}

void SlidingTimes::Write(ByteWriter& writer) const {
  writer.Put(std::bit_cast<std::uint64_t>(latest_));
  writer.Put(end_);
  writer.Put(std::uint64_t{thin_at_});
  writer.Put(std::uint64_t{marks_.size()});
  for (const Mark& mark : marks_) {
    writer.Put(std::uint64_t{mark.first});
    writer.Put(std::bit_cast<std::uint64_t>(mark.time_us));
    writer.Put(static_cast<std::uint8_t>(mark.after_gap));
  }
}

SlidingTimes SlidingTimes::Read(ByteReader& reader, const SlidingRule& rule) {
  SlidingTimes times;
  times.latest_ = std::bit_cast<std::int64_t>(reader.Get<std::uint64_t>());
  times.end_ = reader.Get<std::uint64_t>();
  times.thin_at_ = reader.Get<std::uint64_t>();
  const auto size = reader.Get<std::uint64_t>();
  reader.NeedItems(size, 17);
  if (times.end_ > kMaxSummaryCount) reader.Fail("has times of more than 2^63 - 1 values");
  if (size > times.end_ || (size == 0) != (times.end_ == 0)) {
    reader.Fail("has " + std::to_string(size) + " times of " + std::to_string(times.end_) +
                " values");
  }
  times.marks_.reserve(size);
  for (std::uint64_t i = 0; i < size; ++i) {
    const auto first = reader.Get<std::uint64_t>();
    const auto time = std::bit_cast<std::int64_t>(reader.Get<std::uint64_t>());
    const auto after_gap = reader.Get<std::uint8_t>();
    const std::string name = "time " + std::to_string(i);
    if (first >= times.end_) reader.Fail("has " + name + " behind its last value");
    if (after_gap > 1) reader.Fail("has a flag above 1 in " + name);
    if (!times.marks_.empty()) {
      const Mark& before = times.marks_.back();
      if (first <= before.first || time <= before.time_us)
        reader.Fail("has " + name + " out of order");
      const std::uint64_t unknown = first - before.first - 1;
      if (after_gap == 1 && unknown > rule.TimeSlack(times.end_ - first)) {
        reader.Fail("knows less of " + name + " than its epsilon allows");
      }
    }
    times.marks_.push_back({first, after_gap == 1, time});
  }
  if (size > 0 && times.marks_.back().time_us != times.latest_) {
    reader.Fail("has a latest time that is not its last one");
  }
  // Else the marks could grow without ever being thinned.
  if (times.thin_at_ > ThinAt(size) || times.thin_at_ < kThinFrom) {
    reader.Fail("would look at its " + std::to_string(size) + " times again at " +
                std::to_string(times.thin_at_));
  }
  return times;
}

}  // namespace tidemark
