// What the fuzz targets of the serialized summaries share: a window for them, and what holds of
// every change and of every refusal.
#ifndef TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_
#define TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "summaries/quantile_rule.h"
#include "tests/support/fix_checksum.h"

namespace tidemark::fuzz {

inline void Require(bool property) {
  if (!property) std::abort();
}

/// `read` may refuse, with a reason that begins so. Returns whether it accepted.
template <class Read>
bool AcceptedOrRefusedAs(std::string_view name, Read read) {
  try {
    read();
    return true;
  } catch (const std::invalid_argument& refusal) {
    Require(std::string_view(refusal.what()).starts_with(name));
    return false;
  }
}

/// `change` takes `more` in, of which `total`(summary) counts all, or throws and leaves the summary
/// as it was. `check`(summary): what holds of it then, as it does after its bytes were read back.
template <class Summary, class Total, class Change, class Check>
void CheckChange(Summary summary, std::uint64_t more, Total total, Change change, Check check) {
  const std::string before = summary.Serialize();
  const std::uint64_t count = total(summary);
  try {
    change(summary);
    Require(total(summary) == count + more);
  } catch (const std::length_error&) {
    Require(more > kMaxSummaryCount - count && summary.Serialize() == before);
  }
  check(summary);
  const std::string after = summary.Serialize();
  Require(Summary::Deserialize(after).Serialize() == after);
}

/// `check`.operator()<Key>(bytes) for the input as it came, and with a checksum that fits if it had
/// none: for the one of Keys whose width the frame names, else for the first. That a reader of
/// another width refuses it is left to the unit tests.
template <class First, class... Others, class Check>
int CheckInput(const std::uint8_t* data, std::size_t size, Check check) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kBitsAt = 6;
  const std::size_t bits = size > kBitsAt ? data[kBitsAt] : 0;
  const auto run = [&] {
    const bool other =
        ((bits == 8 * sizeof(Others) && (check.template operator()<Others>(bytes), true)) || ...);
    if (!other) check.template operator()<First>(bytes);
  };
  run();
  if (testing::FixChecksum(bytes)) run();
  return 0;
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
