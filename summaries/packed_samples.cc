#include "summaries/packed_samples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <span>
#include <string>

#include "summaries/fraction.h"
#include "summaries/quantile_rule.h"

namespace tidemark {
namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kColumns = 3;

using Column = std::array<std::uint64_t, kBlock>;

std::size_t ColumnBytes(std::size_t entries, int bits) {
  return (entries * static_cast<std::size_t>(bits) + 7) / 8;
}

std::uint64_t LoadLittleEndian(const char* from) {
  std::uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

void StoreLittleEndian(char* to, std::uint64_t value) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof(value));
}

int BitsOf(const Column& column, std::size_t entries) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < entries; ++i) all |= column[i];
  return static_cast<int>(std::bit_width(all));
}

/// Returns the end of what was written. Writes up to 9 bytes more.
char* WriteColumn(const Column& column, std::size_t entries, int bits, char* to) {
  if (bits <= 56) {
    std::uint64_t pending = 0;  // the bits of the byte at `to`, and then all that follow
    int filled = 0;             // how many of them, 0 to 7
    for (std::size_t i = 0; i < entries; ++i) {
      pending |= column[i] << filled;
      StoreLittleEndian(to, pending);
      filled += bits;
      to += filled / 8;
      pending >>= filled & ~7;
      filled &= 7;
    }
    return to + (filled > 0 ? 1 : 0);
  }
  Uint128 pending = 0;
  int filled = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    pending |= static_cast<Uint128>(column[i]) << filled;
    StoreLittleEndian(to, static_cast<std::uint64_t>(pending));
    to[8] = static_cast<char>(pending >> 64);
    filled += bits;
    to += filled / 8;
    pending >>= filled & ~7;
    filled &= 7;
  }
  return to + (filled > 0 ? 1 : 0);
}

/// Reads 8 bytes more than the column takes.
const char* ReadColumn(const char* from, std::size_t entries, int bits, Column& column) {
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const auto step = static_cast<std::size_t>(bits);
  if (bits <= 57) {
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t at = i * step;
      column[i] = LoadLittleEndian(from + at / 8) >> (at % 8) & mask;
    }
  } else {
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t at = i * step, shift = at % 8;
      const Uint128 low = LoadLittleEndian(from + at / 8);
      const Uint128 high = static_cast<unsigned char>(from[at / 8 + 8]);
      column[i] = static_cast<std::uint64_t>((low | high << 64) >> shift) & mask;
    }
  }
  return from + ColumnBytes(entries, bits);
}

}  // namespace

template <class Key>
PackedSamples<Key>::PackedSamples(const RankedSamples<Key>& samples)
    : count_(samples.count), width_(samples.Width()), size_(samples.keys.size()) {
  // Room for the widest columns, of which what is needed is then kept.
  constexpr std::size_t kMostBytes = kColumns * (1 + kBlock * 8), kWrittenBehind = 9;
  const auto most =
      std::make_unique_for_overwrite<char[]>((size_ / kBlock + 1) * kMostBytes + kWrittenBehind);
  char* to = most.get();
  Key key = 0;
  std::uint64_t low = 0;
  std::array<Column, kColumns> columns;
  for (std::size_t begin = 0; begin < size_; begin += kBlock) {
    const std::size_t entries = std::min(kBlock, size_ - begin);
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t at = begin + i;
      columns[0][i] = samples.keys[at] - key;
      columns[1][i] = samples.low[at] - low - 1;
      columns[2][i] = samples.high[at] - samples.low[at];
      key = samples.keys[at];
      low = samples.low[at];
    }
    for (const Column& column : columns) *to++ = static_cast<char>(BitsOf(column, entries));
    const char* widths = to - kColumns;
    for (std::size_t c = 0; c < kColumns; ++c) {
      to = WriteColumn(columns[c], entries, static_cast<unsigned char>(widths[c]), to);
    }
  }
  data_bytes_ = static_cast<std::size_t>(to - most.get());
  data_ = std::make_unique<char[]>(data_bytes_ + kPadding);
  std::copy(most.get(), to, data_.get());
}

template <class Key>
RankedSamples<Key> PackedSamples<Key>::Unpack() const {
  RankedSamples<Key> samples;
  samples.count = count_;
  samples.keys.resize(size_);
  samples.low.resize(size_);
  samples.high.resize(size_);
  const char* from = data_.get();
  Key key = 0;
  std::uint64_t low = 0;
  std::array<Column, kColumns> columns;
  for (std::size_t begin = 0; begin < size_; begin += kBlock) {
    const std::size_t entries = std::min(kBlock, size_ - begin);
    const char* widths = from;
    from += kColumns;
    for (std::size_t c = 0; c < kColumns; ++c) {
      from = ReadColumn(from, entries, static_cast<unsigned char>(widths[c]), columns[c]);
    }
    for (std::size_t i = 0; i < entries; ++i) {
      const std::size_t at = begin + i;
      key += static_cast<Key>(columns[0][i]);
      low += columns[1][i] + 1;
      samples.keys[at] = key;
      samples.low[at] = low;
      samples.high[at] = low + columns[2][i];
    }
  }
  return samples;
}

template <class Key>
void PackedSamples<Key>::Write(ByteWriter& writer) const {
  writer.Put(count_);
  writer.Put(static_cast<std::uint32_t>(size_));
  writer.Put(static_cast<std::uint32_t>(data_bytes_));
  writer.PutBytes(data());
}

template <class Key>
PackedSamples<Key> PackedSamples<Key>::Read(ByteReader& reader) {
  PackedSamples packed;
  packed.count_ = reader.Get<std::uint64_t>();
  packed.size_ = reader.Get<std::uint32_t>();
  packed.data_bytes_ = reader.Get<std::uint32_t>();
  const std::string_view data = reader.GetBytes(packed.data_bytes_);
  // The blocks must come to their end where the bytes do, before anything is read from them.
  std::size_t at = 0;
  for (std::size_t begin = 0; begin < packed.size_; begin += kBlock) {
    if (data.size() - at < kColumns) reader.Fail("has entries whose bytes are cut short");
    const std::size_t entries = std::min(kBlock, packed.size_ - begin);
    std::size_t need = kColumns;
    for (std::size_t c = 0; c < kColumns; ++c) {
      const auto bits = static_cast<unsigned char>(data[at + c]);
      if (bits > (c == 0 ? 8 * sizeof(Key) : 63)) reader.Fail("has an entry of too many bits");
      need += ColumnBytes(entries, bits);
    }
    if (entries == kBlock && need == kColumns) {
      reader.Fail("has " + std::to_string(kBlock) + " entries of one value");
    }
    if (data.size() - at < need) reader.Fail("has entries whose bytes are cut short");
    at += need;
  }
  if (at != data.size()) reader.Fail("has bytes behind its entries");
  packed.data_ = std::make_unique<char[]>(packed.data_bytes_ + kPadding);
  std::copy(data.begin(), data.end(), packed.data_.get());
  const RankedSamples<Key> samples = packed.Unpack();
  if (packed.count_ > kMaxSummaryCount || !samples.Consistent()) {
    reader.Fail("has entries whose keys or ranks do not ascend from first to last");
  }
  // Spare bits and bytes would be a second spelling of the same entries.
  PackedSamples again(samples);
  if (again.data() != packed.data()) reader.Fail("has entries that are not written as they are");
  return again;
}

template class PackedSamples<std::uint32_t>;
template class PackedSamples<std::uint64_t>;

}  // namespace tidemark
