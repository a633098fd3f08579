// The entries of a frequency summary in few bytes, in ascending order of keys: 6 to 7 bytes each
// for 32-bit keys and 10 to 11 for 64-bit ones in Zipf(1.1) at epsilon = 1e-4, instead of 24.
//
// Of what an entry says only that is stored which the order and the summary's D do not say: the
// distance of its key from the key before, its excess f + delta - D - 1 (an entry with f + delta <=
// D is dropped, so that it is never negative, and near 0 for the many entries near the bound), and
// delta (near 0 for all that came early). Each takes the bytes that it needs:
//
//   1    control: bits 0-2  bytes of the key's distance, less 1
//                 bits 3-5  bytes of the excess: 0 to 6 as they are, 7 says 8
//                 bits 6-7  bytes of delta: 0 to 2 as they are, 3 says as many as D takes
//   1-8  distance: key less the key before; of the first entry, the key
//   0-8  excess
//   0-8  delta
//
// little-endian, each with the fewest bytes that will do, so that equal entries are equal bytes.
// For look-ups every 64th entry has its place in a table (16 bytes, a quarter of a byte for each
// entry). Cost (one core, in cache): about 4 ns to read an entry in order and as much to write it;
// a look-up reads 32 entries on average.
//
// Thread: an object does not change once it is written; any thread may read it.
#ifndef TIDEMARK_SUMMARIES_FREQUENCY_ENTRIES_H_
#define TIDEMARK_SUMMARIES_FREQUENCY_ENTRIES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace tidemark {

template <class Key>
struct FrequencyEntry {
  Key key = 0;
  std::uint64_t count = 0;  ///< f: seen at least so often
  std::uint64_t delta = 0;  ///< and at most so often more
  friend bool operator==(const FrequencyEntry&, const FrequencyEntry&) = default;
};

namespace internal {

/// Bytes that hold a number: 0 for 0.
constexpr unsigned ByteCount(std::uint64_t number) {
  return (static_cast<unsigned>(std::bit_width(number)) + 7) / 8;
}
/// Whole words are read and written behind the last byte of an entry.
inline constexpr std::size_t kEntryPadding = 8;
inline constexpr std::size_t kEntryBytesMax = 1 + 8 + 8 + 8;

/// The number in the first `bytes` of the 8 bytes at `at`.
inline std::uint64_t LoadBytes(const unsigned char* at, unsigned bytes) {
  constexpr std::array<std::uint64_t, 9> kMasks = {
      0,           0xFF,           0xFFFF,           0xFF'FFFF,
      0xFFFF'FFFF, 0xFF'FFFF'FFFF, (1ull << 48) - 1, (1ull << 56) - 1,
      ~0ull};
  std::uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, at, 8);
  } else {
    for (unsigned i = 0; i < 8; ++i) word |= std::uint64_t{at[i]} << (8 * i);
  }
  return word & kMasks[bytes];
}
inline void StoreWord(unsigned char* at, std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(at, &word, 8);
  } else {
    for (unsigned i = 0; i < 8; ++i) at[i] = static_cast<unsigned char>(word >> (8 * i));
  }
}

// Of the codes in the control byte, those that do not say their own number of bytes.
inline constexpr unsigned kLongExcess = 7;  // 8 bytes
inline constexpr unsigned kWideDelta = 3;   // as many as D takes

}  // namespace internal

template <class Key>
class FrequencyEntries {
 public:
  using Entry = FrequencyEntry<Key>;

  /// None.
  FrequencyEntries() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Memory held besides the object itself.
  std::size_t bytes() const { return bytes_.capacity() + skips_.capacity() * sizeof(Skip); }
  /// The D that excesses are told from.
  std::uint64_t dropped() const { return dropped_; }
  /// As described above.
  std::string_view stream() const {
    return empty() ? std::string_view()
                   : std::string_view(reinterpret_cast<const char*>(bytes_.data()),
                                      bytes_.size() - internal::kEntryPadding);
  }

  /// Goes through entries in order. Lifetime: not longer than the entries.
  class Reader {
   public:
    explicit Reader(const FrequencyEntries& entries)
        : at_(entries.bytes_.data()),
          left_(entries.size_),
          least_(entries.dropped_ + 1),
          wide_(entries.wide_) {}

    /// False, and `entry` unchanged, behind the last one.
    bool Next(Entry& entry) {
      if (left_ == 0) return false;
      --left_;
      const unsigned control = *at_++;
      const unsigned key_bytes = (control & 7) + 1;
      key_ = static_cast<Key>(key_ + internal::LoadBytes(at_, key_bytes));
      at_ += key_bytes;
      const unsigned excess_code = control >> 3 & 7;
      const unsigned excess_bytes = excess_code + (excess_code == internal::kLongExcess);
      const std::uint64_t excess = internal::LoadBytes(at_, excess_bytes);
      at_ += excess_bytes;
      const unsigned delta_code = control >> 6;
      const unsigned delta_bytes = delta_code == internal::kWideDelta ? wide_ : delta_code;
      const std::uint64_t delta = internal::LoadBytes(at_, delta_bytes);
      at_ += delta_bytes;
      entry = {key_, least_ + excess - delta, delta};
      return true;
    }

   private:
    friend class FrequencyEntries;
    const unsigned char* at_;
    std::size_t left_;
    std::uint64_t least_;
    unsigned wide_;
    Key key_ = 0;  // of the entry before
  };

  /// Calls visit(entry) in ascending order.
  template <class Visit>
  void ForEach(Visit visit) const {
    Reader reader(*this);
    for (Entry entry; reader.Next(entry);) visit(entry);
  }

  std::optional<Entry> Find(Key key) const;
  bool Contains(Key key) const { return Find(key).has_value(); }

  friend bool operator==(const FrequencyEntries& a, const FrequencyEntries& b) {
    return a.size_ == b.size_ && a.dropped_ == b.dropped_ && a.stream() == b.stream();
  }

 private:
  template <class K>
  friend class FrequencyEntriesWriter;

  static constexpr std::size_t kBlock = 64;  // entries between two places of the table
  struct Skip {
    Key before;      // the key before the block's first entry, 0 at the begin
    std::size_t at;  // of that entry
  };

  std::vector<unsigned char>
      bytes_;  // the stream and kEntryPadding bytes more; empty if there is none
  std::vector<Skip> skips_;
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
  unsigned wide_ = 0;  // bytes that kWideDelta stands for
};

template <class Key>
class FrequencyEntriesWriter {
 public:
  /// `dropped`: the D that excesses are told from. `expected_bytes`: a guess, e.g. what the entries
  /// took so far. `widest_delta`: the largest delta, where one may exceed `dropped` (of a sliding
  /// window; such entries are not serialized).
  explicit FrequencyEntriesWriter(std::uint64_t dropped, std::size_t expected_bytes = 0,
                                  std::uint64_t widest_delta = 0)
      : bytes_(expected_bytes + internal::kEntryBytesMax + internal::kEntryPadding),
        widest_(std::max(dropped, widest_delta)),
        wide_(internal::ByteCount(widest_)) {
    entries_.dropped_ = dropped;
    entries_.wide_ = wide_;
  }

  /// REQUIRES: a larger key than the entry before; count + delta > dropped; delta is at most the
  /// greater of `dropped` and `widest_delta`.
  void Append(const FrequencyEntry<Key>& entry) { AppendIf(true, entry); }

  /// The same if `condition` holds, else nothing; without a branch on it. What must hold of an
  /// entry need not if `condition` does not.
  void AppendIf(bool condition, const FrequencyEntry<Key>& entry) {
    using namespace internal;
    assert(!condition || (entry.delta <= widest_ && entry.count + entry.delta > entries_.dropped_));
    if (bytes_.size() - used_ < kEntryBytesMax + kEntryPadding) bytes_.resize(2 * bytes_.size());
    if (entries_.size_ % FrequencyEntries<Key>::kBlock == 0 && condition) {
      entries_.skips_.push_back({previous_, used_});
    }
    const auto distance = static_cast<Key>(entry.key - previous_);
    const std::uint64_t excess = entry.count + entry.delta - entries_.dropped_ - 1;
    const unsigned key_bytes = std::max(1u, ByteCount(distance));
    const unsigned excess_code = std::min(kLongExcess, ByteCount(excess));
    const unsigned excess_bytes = excess_code + (excess_code == kLongExcess);
    const unsigned delta_code = std::min(kWideDelta, ByteCount(entry.delta));
    const unsigned delta_bytes = delta_code == kWideDelta ? wide_ : delta_code;
    unsigned char* const at = bytes_.data() + used_;
    // Members change before the bytes are stored, which may be any member for all the compiler
    // knows.
    const std::size_t all = std::size_t{0} - std::size_t{condition};
    used_ += (1 + key_bytes + excess_bytes + delta_bytes) & all;
    previous_ = static_cast<Key>(previous_ + (distance & all));
    entries_.size_ += std::size_t{condition};
    *at = static_cast<unsigned char>((key_bytes - 1) | excess_code << 3 | delta_code << 6);
    StoreWord(at + 1, distance);
    StoreWord(at + 1 + key_bytes, excess);
    StoreWord(at + 1 + key_bytes + excess_bytes, entry.delta);
  }

  std::size_t size() const { return entries_.size_; }

  /// What was appended, in as much memory as it needs.
  FrequencyEntries<Key> Finish() &&;

 private:
  std::vector<unsigned char> bytes_;
  std::size_t used_ = 0;
  std::uint64_t widest_;
  unsigned wide_;
  Key previous_ = 0;
  FrequencyEntries<Key> entries_;
};

extern template class FrequencyEntries<std::uint32_t>;
extern template class FrequencyEntries<std::uint64_t>;
extern template class FrequencyEntriesWriter<std::uint32_t>;
extern template class FrequencyEntriesWriter<std::uint64_t>;

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_FREQUENCY_ENTRIES_H_
