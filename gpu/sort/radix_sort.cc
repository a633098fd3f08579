#include "gpu/sort/radix_sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>

namespace tidemark::sort {
namespace {

// Below this the counters cost more than the keys: 2,048 counters a digit are cleared and summed.
constexpr std::size_t kSmallWindow = 64;

// Scratch memory of one call: the thread's own while it is small enough, else the call's.
class Scratch {
 public:
  // Null when there is no memory.
  void* Get(std::size_t bytes) {
    if (bytes > kRadixScratchBytes) {
      own_.reset(new (std::nothrow) std::byte[bytes]);
      return own_.get();
    }
    thread_local std::unique_ptr<std::byte[]> kept;
    thread_local std::size_t kept_bytes = 0;
    if (kept_bytes < bytes) {
      kept.reset();
      kept_bytes = 0;
      kept.reset(new (std::nothrow) std::byte[bytes]);
      if (kept != nullptr) kept_bytes = bytes;
    }
    return kept.get();
  }

 private:
  std::unique_ptr<std::byte[]> own_;
};

template <class Key, unsigned kDigitBits>
void RadixSort(Key* keys, std::size_t n) {
  constexpr unsigned kKeyBits = 8 * sizeof(Key);
  constexpr unsigned kDigits = (kKeyBits + kDigitBits - 1) / kDigitBits;
  constexpr std::size_t kValues = std::size_t{1} << kDigitBits;
  constexpr Key kMask = static_cast<Key>(kValues - 1);

  if (n < kSmallWindow || n > std::numeric_limits<std::uint32_t>::max()) {
    std::sort(keys, keys + n);
    return;
  }
  Scratch scratch;
  Key* other = static_cast<Key*>(scratch.Get(n * sizeof(Key)));
  if (other == nullptr) {
    std::sort(keys, keys + n);
    return;
  }

  std::array<std::array<std::uint32_t, kValues>, kDigits> counts{};
  for (std::size_t i = 0; i < n; ++i) {
    Key key = keys[i];
    for (unsigned digit = 0; digit < kDigits; ++digit) {
      ++counts[digit][static_cast<std::size_t>(key & kMask)];
      key = static_cast<Key>(key >> kDigitBits);
    }
  }

  Key* from = keys;
  Key* to = other;
  for (unsigned digit = 0; digit < kDigits; ++digit) {
    std::array<std::uint32_t, kValues>& count = counts[digit];
    const unsigned shift = digit * kDigitBits;
    if (count[static_cast<std::size_t>((from[0] >> shift) & kMask)] == n) continue;
    std::uint32_t start = 0;
    for (std::uint32_t& c : count) {
      const std::uint32_t here = c;
      c = start;
      start += here;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = from[i];
      to[count[static_cast<std::size_t>((key >> shift) & kMask)]++] = key;
    }
    std::swap(from, to);
  }
  if (from != keys) std::memcpy(keys, from, n * sizeof(Key));
}

}  // namespace

void RadixSort11(std::uint32_t* keys, std::size_t n) { RadixSort<std::uint32_t, 11>(keys, n); }
void RadixSort11(std::uint64_t* keys, std::size_t n) { RadixSort<std::uint64_t, 11>(keys, n); }
void RadixSort11(Key128* keys, std::size_t n) { RadixSort<Key128, 11>(keys, n); }
void RadixSort8(std::uint32_t* keys, std::size_t n) { RadixSort<std::uint32_t, 8>(keys, n); }
void RadixSort8(std::uint64_t* keys, std::size_t n) { RadixSort<std::uint64_t, 8>(keys, n); }
void RadixSort8(Key128* keys, std::size_t n) { RadixSort<Key128, 8>(keys, n); }

}  // namespace tidemark::sort
