// The pipeline of the fuzz targets whose input makes streams.
#ifndef TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_
#define TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

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

/// Two to eight values, of which some are equal.
inline void AppendValues(const server::StreamHandle& stream, server::RecordedTime time) {
  using server::PayloadType;
  // 32 bytes are a whole number of values of every type; 8 bytes beside each.
  constexpr std::string_view kItems[] = {"a.b", "a.c", "d", "a.b"};
  constexpr std::uint64_t kValues[] = {1, 2, 1, 3};
  constexpr std::uint64_t kPayloads[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const server::StreamSettings& settings = stream->settings();
  auto& pipeline = SmallPipeline().pipeline;
  const bool strings = settings.type == server::ValueType::kString;
  const std::size_t count = strings ? 4 : sizeof kValues / server::PackedBytes(settings.type);
  const auto payloads = std::as_bytes(std::span(kPayloads)).first(count * sizeof(std::uint64_t));
  const auto values = std::as_bytes(std::span(kValues));
  const bool pairs = settings.payload != PayloadType::kNone;
  if (strings) {
    pairs ? pipeline.AppendStringPairs(stream, kItems, payloads, time)
          : pipeline.AppendStrings(stream, kItems, time);
  } else {
    pairs ? pipeline.AppendPairs(stream, values, payloads, time)
          : pipeline.AppendPacked(stream, values, time);
  }
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_SMALL_PIPELINE_H_
