// Damaged and forged bytes of the sliding summaries.
#ifndef TIDEMARK_TESTS_SUMMARIES_SLIDING_DAMAGE_H_
#define TIDEMARK_TESTS_SUMMARIES_SLIDING_DAMAGE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

#include "summaries/byte_io.h"
#include "tests/support/fix_checksum.h"

namespace tidemark::testing {

/// Bytes cut short, changed, or with more behind them.
template <class Summary>
void RefusesDamage(const std::string& bytes) {
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 40) {
    EXPECT_THROW(Summary::Deserialize(std::string_view(bytes).substr(0, size)),
                 std::invalid_argument);
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 200; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    EXPECT_THROW(Summary::Deserialize(damaged), std::invalid_argument);
  }
  EXPECT_THROW(Summary::Deserialize(bytes + bytes), std::invalid_argument);
}

/// Some bytes changed, most often in the numbers at the front, and a checksum that fits.
inline std::string Forged(std::string bytes, std::mt19937_64& random) {
  const std::size_t end = bytes.size() - kSummaryChecksumBytes;
  const std::size_t front = random() % 3 == 0 ? end : std::min<std::size_t>(end, 120);
  for (std::uint64_t i = 0; i <= random() % 3; ++i) {
    const std::size_t at = kSummaryHeaderBytes + random() % (front - kSummaryHeaderBytes);
    bytes[at] = static_cast<char>(
        random() % 2 == 0 ? random() : static_cast<std::uint64_t>(bytes[at]) + random() % 5 - 2);
  }
  FixChecksum(bytes);
  return bytes;
}

}  // namespace tidemark::testing

#endif  // TIDEMARK_TESTS_SUMMARIES_SLIDING_DAMAGE_H_
