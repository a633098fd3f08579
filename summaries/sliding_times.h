// When the values of a stream came, as far as a window by time needs to know.
//
// The stream's time is the greatest recorded time so far: a clock that steps back leaves it where
// it was, and the values of that batch count as of that moment. So times never fall along the
// stream, and the values of "the last T" are a suffix of it: those with now - T < time, where now
// is the greater of the asker's time and the stream's.
//
// Values of equal time are one run; a mark is a run's first value and its time. Of old runs not all
// are kept. After(border) says which value is the first of the window: exactly if the runs next to
// it are known, else between two, with at most rule.TimeSlack(w) values between them, where w is
// the number of values surely in the window.
//
// Proof. A run between two kept marks is dropped only if the values from the first mark's second
// one to the last before the second mark number at most TimeSlack(values from the second mark to
// the end). That end only moves on. Cost: dropping runs over all marks when they have grown by half
// and 64; so a mark costs a few steps in all. Held: 16 bytes a mark; if every value has a time of
// its own, about 1.5 / c * ln(c * w) + 64 marks with c = epsilon / 8, and never more than there are
// runs.
//
// Deterministic: what is held is a function of the counts and times appended, in their order.
// Thread: one writer; not to be read at the same time.
#ifndef TIDEMARK_SUMMARIES_SLIDING_TIMES_H_
#define TIDEMARK_SUMMARIES_SLIDING_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/sliding_rule.h"

namespace tidemark {

/// Values that were taken in together.
struct TimedCount {
  std::uint64_t count = 0;
  std::int64_t time_us =
      0;  ///< microseconds since 1970, as recorded; may be less than the one before
};

/// Values before `low` are outside, those from `high` on inside; of those between it is not known.
struct WindowBegin {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const WindowBegin&, const WindowBegin&) = default;
};

class SlidingTimes {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

  /// Values numbered from `end` to `end` + count, where `end` was the sum of all counts before.
  void Append(const TimedCount& values, const SlidingRule& rule);

  /// The greatest time of a value; kNever before the first.
  std::int64_t latest() const { return latest_; }
  /// Values appended.
  std::uint64_t end() const { return end_; }

  /// The first value with a time above `border`; {end, end} if there is none.
  WindowBegin After(std::int64_t border) const;

  /// Forgets runs that lie before this value. It is then surely taken to lie in every window whose
  /// border is older than it.
  void Forget(std::uint64_t before);

  std::size_t marks() const { return marks_.size(); }
  std::size_t bytes() const { return marks_.capacity() * sizeof(Mark); }

  /// Part of a frame: latest time, end, when to drop runs again, number of marks (8 bytes each),
  /// then of each its value, its time and whether runs before it are missing (8, 8, 1 bytes).
  void Write(ByteWriter& writer) const;
  static SlidingTimes Read(ByteReader& reader, const SlidingRule& rule);

 private:
  struct Mark {
    std::uint64_t first : 63;     ///< the run's first value
    std::uint64_t after_gap : 1;  ///< runs between it and the mark before were dropped
    std::int64_t time_us;
  };
  void Thin(const SlidingRule& rule);

  // Ascending by first and by time, none twice.
  std::vector<Mark> marks_;
  std::uint64_t end_ = 0;
  std::int64_t latest_ = kNever;
  static constexpr std::size_t kThinFrom = 64;
  static constexpr std::size_t ThinAt(std::size_t marks) { return marks + marks / 2 + kThinFrom; }
  std::size_t thin_at_ = kThinFrom;  ///< kThinFrom to ThinAt(marks())
};

/// The border of "the last `age_us`": values with a greater time are inside. REQUIRES: age_us > 0.
std::int64_t WindowBorder(std::int64_t now_us, std::int64_t age_us);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SLIDING_TIMES_H_
