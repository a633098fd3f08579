// All of a stream at one moment, so that it can go on as if nothing had happened: the same windows,
// and the same bytes of its summaries, from the same batches and times. What leaves a daemon for
// another is less (stream_state.h).
//
//   0   8  frame: "TMSI", version 2, bits of a key, 0 (byte_io.h)
//   8 40   last record of the log, windows summarized since it was made, values refused, weight of
//          all values, recorded time at which the open window took its first key
//  48   4  capacity of the open window
//  52  16  bytes of the open window's items; of them, those that were new
//          then, each after a u64 of how many: keys of the open window as they came; their payloads
//          (u64); their batches (u64 count, i64 time); frames of the summaries, of quantiles,
//          frequencies, weights, hierarchy, sums, levels of texts; those over sliding windows, of
//          the record, quantiles, frequencies, hierarchy, levels of texts; items of the dictionary
//          (u64 id, u64 parent, u32 level, u8 flags (1: probed past, 2: has a place), u32 bytes,
//          text), ascending; producers (16 bytes id, u64 first, last and taken, and for each number
//          taken, the last one first, u32 accepted and u32 refused), the longest silent one first;
//          from version 2 on subscriptions (u64 bytes, name, u64 bytes, request)
//  -4   4  CRC-32C
#ifndef TIDEMARK_SERVER_WINDOW_STREAM_IMAGE_H_
#define TIDEMARK_SERVER_WINDOW_STREAM_IMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/summarize/sliding_summaries.h"
#include "server/summarize/stream_summaries.h"
#include "server/window/dictionary.h"
#include "server/window/ingest_sink.h"
#include "server/window/producers.h"
#include "server/window/subscriptions.h"
#include "summaries/sliding_times.h"

namespace tidemark::server {

template <class Key>
struct StreamImage {
  std::uint64_t log_sequence = 0;  ///< of the stream's last record; 0: none since the start
  /// In the summaries, beside what an imported stream began with. 0: those over sliding windows are
  /// empty.
  std::uint64_t windows = 0;
  std::uint64_t refused = 0;
  std::uint64_t weight = 0;
  RecordedTime opened_at = 0;
  std::uint32_t capacity = 0;
  std::uint64_t open_text_bytes = 0;
  std::uint64_t open_new_bytes = 0;
  std::vector<Key> open;
  std::vector<std::uint64_t> payloads;
  std::vector<TimedCount> batches;
  SummaryFrames summaries;
  SlidingFrames sliding;
  std::vector<Dictionary::Item> items;
  std::vector<ProducerImage> producers;
  StreamSubscriptions subscriptions;
};

template <class Key>
std::string EncodeImage(const StreamImage<Key>& image);

/// Errors: throws std::invalid_argument, naming what is wrong, for bytes that no EncodeImage made:
/// of another length, kind or key width than they say, or damaged. Whether what they say can be of
/// one stream is for the stream to check.
template <class Key>
StreamImage<Key> DecodeImage(std::string_view bytes);

extern template std::string EncodeImage(const StreamImage<std::uint32_t>&);
extern template std::string EncodeImage(const StreamImage<std::uint64_t>&);
extern template std::string EncodeImage(const StreamImage<Key128>&);
extern template StreamImage<std::uint32_t> DecodeImage(std::string_view);
extern template StreamImage<std::uint64_t> DecodeImage(std::string_view);
extern template StreamImage<Key128> DecodeImage(std::string_view);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_STREAM_IMAGE_H_
