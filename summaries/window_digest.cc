#include "summaries/window_digest.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "summaries/digest_builder.h"

namespace tidemark {

void CheckDigestible(std::uint64_t count, std::uint64_t stride) {
  if (stride == 0) throw std::invalid_argument("the stride of a digest is 0, expected 1 or more");
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    throw std::length_error("a window of " + std::to_string(count) +
                            " keys has no digest: the limit is 2^32 - 1");
  }
}

template <class Key>
WindowDigest<Key> DigestSorted(std::span<const Key> sorted, std::uint64_t stride) {
  CheckDigestible(sorted.size(), stride);
  WindowDigest<Key> digest;
  digest.stride = stride;
  if (sorted.empty()) return digest;
  internal::DigestBuilder<Key> builder(sorted.size(), stride, digest);
  builder.First(sorted.front());
  builder.AddSorted(
      sorted, internal::CellLevel(sorted.front(), sorted.back(), sorted.size(), builder.reach()));
  builder.Last();
  return digest;
}

template WindowDigest<std::uint32_t> DigestSorted(std::span<const std::uint32_t>, std::uint64_t);
template WindowDigest<std::uint64_t> DigestSorted(std::span<const std::uint64_t>, std::uint64_t);

}  // namespace tidemark
