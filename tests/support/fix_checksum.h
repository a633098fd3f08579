// Serialized summaries that were changed on purpose: with a checksum that fits, so that what lies
// behind it is reached.
#ifndef TIDEMARK_TESTS_SUPPORT_FIX_CHECKSUM_H_
#define TIDEMARK_TESTS_SUPPORT_FIX_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "summaries/byte_io.h"
#include "summaries/crc32c.h"

namespace tidemark::testing {

/// Makes the last four bytes the checksum of those before. False if they are already, or if there
/// is no room for them.
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

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUPPORT_FIX_CHECKSUM_H_
