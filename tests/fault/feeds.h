// What is sent in a fault run: streams of five kinds, five writers, and batches that follow from
// their writer, stream and number, so that what a log or a summary holds has an oracle.
#ifndef TIDEMARK_TESTS_FAULT_FEEDS_H_
#define TIDEMARK_TESTS_FAULT_FEEDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/answers.h"
#include "client/client.h"
#include "wire/frame.h"

namespace tidemark::fault {

enum class Kind { kShared, kFloats, kTexts, kWeighted, kTimed };

struct FaultStream {
  Kind kind;
  std::string_view name;
};
/// Numbers of three writers; float32 with sums; paths over a sliding window, as a hierarchy;
/// numbers with weights; doubles of the compact form, over a window by time.
inline constexpr std::array<FaultStream, 5> kStreams{{{Kind::kShared, "shared"},
                                                      {Kind::kFloats, "floats"},
                                                      {Kind::kTexts, "texts"},
                                                      {Kind::kWeighted, "weighted"},
                                                      {Kind::kTimed, "timed"}}};
/// One more, of uint64, about which nothing is judged.
inline constexpr std::string_view kProbeStream = "probe";
client::StreamConfig ConfigOf(Kind kind);
wire::WireElement WireOf(Kind kind);

/// One writer's batches to one stream.
struct Feed {
  std::uint8_t writer = 0;
  std::size_t stream = 0;  ///< place in kStreams
};
/// Those of writers 0 and 1 over framed TCP, a connection each; 2, 3 and 4 over gRPC.
inline constexpr std::array<Feed, 7> kFeeds{
    {{0, 0}, {0, 1}, {1, 0}, {1, 2}, {2, 0}, {3, 3}, {4, 4}}};
inline constexpr std::uint8_t kTcpWriters = 2;
inline constexpr std::uint8_t kWriters = 5;

struct FaultBatch {
  std::uint64_t count = 0;
  std::string values;    ///< packed, or of texts each behind its length, as the wire and the log
  std::string payloads;  ///< packed weights, or none
};
/// Batch `number` of a feed: from 2 on, 1 is the empty one that introduces a producer. 1 to 100
/// values; the first of a shared stream's says whose it is.
FaultBatch BatchOf(std::uint64_t seed, const Feed& feed, std::uint64_t number);
/// The writer of a batch of the shared stream. REQUIRES: it is not empty.
std::uint8_t WriterOf(std::string_view shared_values);

/// The texts of a batch, which views `values`.
std::vector<std::string_view> TextsOf(std::string_view values);

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_FEEDS_H_
