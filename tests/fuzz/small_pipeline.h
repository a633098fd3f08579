// The pipeline of the fuzz targets whose input makes streams.
#ifndef TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_
#define TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_

#include <cstdlib>

#include "tests/support/pipeline_fixture.h"

namespace tidemark::fuzz {

inline void Require(bool property) {
  if (!property) std::abort();
}

/// With windows so small that few values make many. Made once, for its threads and metrics cost
/// more than reading an input.
inline server::TestPipeline& SmallPipeline() {
  static auto* const pipeline = [] {
    server::PipelineOptions options;
    options.window_limits = {.min = 4, .max = 16};
    return new server::TestPipeline(options);
  }();
  return *pipeline;
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_
