// Some keys of a window, from which it is told what a way to digest it will cost.
#ifndef TIDEMARK_SUMMARIES_KEY_SAMPLE_H_
#define TIDEMARK_SUMMARIES_KEY_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::internal {

/// `size` keys from all over the window, not at even distances: values that take turns have a
/// period. REQUIRES: 1 <= size <= keys.size().
template <class Key>
void TakeSample(std::span<const Key> keys, std::size_t size, std::vector<Key>& sample) {
  const std::size_t part = keys.size() / size;
  sample.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint64_t mixed = (i + 1) * 0x9E37'79B9'7F4A'7C15;
    sample[i] = keys[i * part + static_cast<std::size_t>(((mixed >> 32) * part) >> 32)];
  }
}

}  // namespace tidemark::internal

#endif  // TIDEMARK_SUMMARIES_KEY_SAMPLE_H_
