// What the fuzz targets of the serialized summaries share.
#ifndef TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_
#define TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "summaries/byte_io.h"
#include "summaries/crc32c.h"

namespace tidemark::fuzz {

/// Makes the last four bytes the checksum of those before, so that the layout behind it is reached.
/// False if they are already, or if there is no room for them.
inline bool FixChecksum(std::string& bytes) {
  if (bytes.size() < kSummaryChecksumBytes) return false;
  const std::size_t end = bytes.size() - kSummaryChecksumBytes;
  const std::uint32_t checksum = Crc32c(std::string_view(bytes).substr(0, end));
  bool changed = false;
  for (std::size_t i = 0; i < kSummaryChecksumBytes; ++i) {
    const auto byte = static_cast<char>(checksum >> (8 * i) & 0xFF);
    changed |= bytes[end + i] != byte;
    bytes[end + i] = byte;
  }
  return changed;
}

/// A window made of the input's own last bytes, so that its keys meet those of the summary.
/// `bytes` holds at least a frame (12 bytes); 16 keys come out.
template <class Key>
std::vector<Key> SortedKeys(std::string_view bytes) {
  std::vector<Key> keys(16);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t at = bytes.size() - sizeof(Key) - i * 3 % (bytes.size() - sizeof(Key) + 1);
    std::memcpy(&keys[i], bytes.data() + at, sizeof(Key));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_
