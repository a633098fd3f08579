// Little-endian bytes for serialized summaries: a writer that appends and ends with CRC-32C, and a
// reader that checks length, magic, version and checksum before anything else is looked at.
//
// Every serialized summary begins with the same 8 bytes and ends with the same 4:
//   0  4  magic: four letters that name the kind, "TMQS" for quantiles
//   4  2  version of the layout, from 1
//   6  1  bits of a key, 32, 64 or 128
//   7  1  0
//   …
//  -4  4  CRC-32C of every byte before it
#ifndef TIDEMARK_SUMMARIES_BYTE_IO_H_
#define TIDEMARK_SUMMARIES_BYTE_IO_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "summaries/crc32c.h"

namespace tidemark {

inline constexpr std::uint16_t kSummaryVersion = 1;  // of a summary that names no other
inline constexpr std::size_t kSummaryHeaderBytes = 8;
inline constexpr std::size_t kSummaryChecksumBytes = 4;

class ByteWriter {
 public:
  /// `magic` is four characters.
  ByteWriter(std::string_view magic, std::size_t key_bytes,
             std::uint16_t version = kSummaryVersion) {
    bytes_.append(magic);
    Put(version);
    Put(static_cast<std::uint8_t>(key_bytes * 8));
    Put(std::uint8_t{0});
  }

  template <class T>
  requires std::is_unsigned_v<T>
  void Put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xFF));
    }
  }
  void PutDouble(double value) { Put(std::bit_cast<std::uint64_t>(value)); }

  void PutBytes(std::string_view bytes) { bytes_.append(bytes); }

  template <class Key>
  void PutKeys(const Key* keys, std::size_t count) {
    if constexpr (std::endian::native == std::endian::little) {
      const std::size_t at = bytes_.size();
      bytes_.resize(at + count * sizeof(Key));
      if (count > 0) std::memcpy(bytes_.data() + at, keys, count * sizeof(Key));
    } else {
      for (std::size_t i = 0; i < count; ++i) Put(keys[i]);
    }
  }

  /// Appends the checksum and hands the bytes over. Nothing may be put afterwards.
  std::string Finish() {
    Put(Crc32c(bytes_));
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

/// Errors: every method throws std::invalid_argument, whose message names the summary and the
/// place.
class ByteReader {
 public:
  /// Checks length, magic, version (1 to `newest`), key width and checksum. `what` names the
  /// summary in messages.
  ByteReader(std::string_view bytes, std::string_view magic, std::size_t key_bytes,
             std::string_view what, std::uint16_t newest = kSummaryVersion)
      : bytes_(bytes), what_(what) {
    constexpr std::size_t least = kSummaryHeaderBytes + kSummaryChecksumBytes;
    if (bytes.size() < least) {
      Fail("is cut short: " + std::to_string(bytes.size()) + " bytes, the frame alone takes " +
           std::to_string(least));
    }
    if (bytes.substr(0, 4) != magic) Fail("does not begin with \"" + std::string(magic) + "\"");
    at_ = 4;
    version_ = Get<std::uint16_t>();
    if (version_ < 1 || version_ > newest) {
      Fail("has version " + std::to_string(version_) + ", expected " +
           (newest == 1 ? "" : "1 to ") + std::to_string(newest));
    }
    at_ = bytes.size() - kSummaryChecksumBytes;
    end_ = bytes.size();
    const auto stored = Get<std::uint32_t>();
    end_ = bytes.size() - kSummaryChecksumBytes;
    if (stored != Crc32c(bytes.substr(0, end_))) {
      Fail("is damaged: its checksum (CRC-32C) does not match its " + std::to_string(end_) +
           " bytes");
    }
    at_ = 6;
    const auto bits = Get<std::uint8_t>();
    if (bits != key_bytes * 8) {
      Fail("has keys of " + std::to_string(bits) + " bits, expected " +
           std::to_string(key_bytes * 8));
    }
    if (Get<std::uint8_t>() != 0) Fail("has a reserved byte that is not 0 at offset 7");
  }

  std::uint16_t version() const { return version_; }
  std::size_t left() const { return end_ - at_; }

  template <class T>
  requires std::is_unsigned_v<T> T Get() {
    Need(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<T>(
          value |
          static_cast<T>(static_cast<T>(static_cast<unsigned char>(bytes_[at_ + i])) << (8 * i)));
    }
    at_ += sizeof(T);
    return value;
  }
  double GetDouble() { return std::bit_cast<double>(Get<std::uint64_t>()); }

  template <class Key>
  void GetKeys(Key* keys, std::size_t count) {
    NeedItems(count, sizeof(Key));
    if constexpr (std::endian::native == std::endian::little) {
      if (count > 0) std::memcpy(keys, bytes_.data() + at_, count * sizeof(Key));
      at_ += count * sizeof(Key);
    } else {
      for (std::size_t i = 0; i < count; ++i) keys[i] = Get<Key>();
    }
  }

  /// A part of the bytes that the reader was made of.
  std::string_view GetBytes(std::size_t count) {
    Need(count);
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }

  /// Throws unless `count` items of `item_bytes` are left: call before memory is taken for them.
  void NeedItems(std::uint64_t count, std::size_t item_bytes) const {
    if (count > (end_ - at_) / item_bytes) {
      Fail("is cut short: " + std::to_string(count) + " items of " + std::to_string(item_bytes) +
           " bytes announced at offset " + std::to_string(at_) + ", " + std::to_string(end_ - at_) +
           " bytes left");
    }
  }

  void ExpectEnd() const {
    if (at_ != end_) {
      Fail("has " + std::to_string(end_ - at_) + " bytes too many at offset " +
           std::to_string(at_));
    }
  }

  [[noreturn]] void Fail(const std::string& why) const {
    throw std::invalid_argument("serialized " + std::string(what_) + " " + why);
  }

 private:
  void Need(std::size_t count) const {
    if (count > end_ - at_) {
      Fail("is cut short at offset " + std::to_string(at_));
    }
  }

  std::string_view bytes_;
  std::string_view what_;
  std::uint16_t version_ = 0;
  std::size_t at_ = 0;
  std::size_t end_ = kSummaryHeaderBytes;  // until the checksum has been checked
};

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_BYTE_IO_H_
