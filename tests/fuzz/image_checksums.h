// Images of streams that were changed on purpose, with checksums that fit.
#ifndef TIDEMARK_TESTS_FUZZ_IMAGE_CHECKSUMS_H_
#define TIDEMARK_TESTS_FUZZ_IMAGE_CHECKSUMS_H_

#include <stdexcept>
#include <string>

#include "server/window/stream_image.h"
#include "tests/support/fix_checksum.h"

namespace tidemark::fuzz {

/// That of the image and those of all frames in it. What is no image but for its checksum keeps
/// that alone.
inline void FixImage(server::ValueType type, std::string& bytes) {
  testing::FixChecksum(bytes);
  server::WithKeyOf(type, [&]<class Key>(Key) {
    try {
      server::StreamImage<Key> image = server::DecodeImage<Key>(bytes);
      for (std::string* frame :
           {&image.summaries.quantiles, &image.summaries.frequencies, &image.summaries.weights,
            &image.summaries.hierarchy, &image.summaries.sums, &image.summaries.text_levels,
            &image.sliding.record, &image.sliding.quantiles, &image.sliding.frequencies,
            &image.sliding.hierarchy, &image.sliding.text_levels}) {
        testing::FixChecksum(*frame);
      }
      bytes = server::EncodeImage(image);
    } catch (const std::invalid_argument&) {
    }
  });
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_IMAGE_CHECKSUMS_H_
