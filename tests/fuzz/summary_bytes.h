// What the fuzz targets of the serialized summaries share: a window for them.
#ifndef TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_
#define TIDEMARK_TESTS_FUZZ_SUMMARY_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::fuzz {

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
