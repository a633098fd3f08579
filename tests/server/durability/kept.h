// All that is kept of streams: what can be seen, their images, and their subscriptions by name.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_KEPT_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_KEPT_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "server/pipeline/pipeline.h"
#include "server/window/concat.h"
#include "tests/server/durability/some_batches.h"

namespace tidemark::server {

/// An image but for the number of its last record, which a replay does not count, and the checksum.
inline std::string ImageWithoutRecord(const Stream& stream) {
  std::string image = stream.Image().value();
  image.replace(8, sizeof(std::uint64_t), sizeof(std::uint64_t), '\0');
  image.resize(image.size() - sizeof(std::uint32_t));
  return image;
}

inline std::string Kept(Pipeline& pipeline) {
  std::string all = Seen(pipeline);
  for (const StreamHandle& stream : pipeline.streams().All()) {
    all += Concat(stream->name(), ": hash of its image ",
                  std::hash<std::string>()(ImageWithoutRecord(*stream)), "\n");
  }
  for (const Subscription& one : pipeline.streams().ListSubscriptions("", "", SIZE_MAX)) {
    all += Concat(one.name, " of ", one.stream, ": ", one.request.substr(0, 20), "\n");
  }
  EXPECT_EQ(pipeline.streams().subscriptions(),
            pipeline.streams().ListSubscriptions("", "", SIZE_MAX).size());
  return all;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_KEPT_H_
