// The kinds of streams that the targets of images and of the log use. Their numbers are in the
// corpora: add at the end.
#ifndef TIDEMARK_TESTS_FUZZ_STREAM_KINDS_H_
#define TIDEMARK_TESTS_FUZZ_STREAM_KINDS_H_

#include <vector>

#include "server/window/stream.h"

namespace tidemark::fuzz {

/// Every type, payload, form of quantiles and kind of summary at least once.
inline const std::vector<server::StreamSettings>& StreamKinds() {
  using server::PayloadType;
  using server::QuantileKind;
  using server::StreamSettings;
  using server::ValueType;
  static const std::vector<StreamSettings> kinds = {
      {.quantile_epsilon = 0.1, .frequency_epsilon = 0.1},
      {.type = ValueType::kFloat32, .quantile_form = QuantileKind::kCompact, .sums = true},
      {.type = ValueType::kInt64, .payload = PayloadType::kY},
      {.type = ValueType::kUint32, .frequency_epsilon = 0.1, .payload = PayloadType::kWeight},
      {.type = ValueType::kUint64,
       .quantile_form = QuantileKind::kTail,
       .sliding = {.time_max_us = 5'000'000}},
      {.type = ValueType::kString, .frequency_epsilon = 0.1},
      {.type = ValueType::kString,
       .frequency_epsilon = 0.1,
       .sliding = {.values_max = 2'000, .epsilon = 0.2},
       .hierarchy = {.depth = 3}},
      {.type = ValueType::kString,
       .payload = PayloadType::kWeight,
       .hierarchy = {.depth = 2, .separator = '/', .root_last = true}},
      {.type = ValueType::kIpv4, .hierarchy = {.prefix_lengths = {8, 16, 32}}},
      {.type = ValueType::kIpv6,
       .sliding = {.values_max = 2'000, .epsilon = 0.2},
       .hierarchy = {.prefix_lengths = {48, 64}}},
      {.type = ValueType::kIpv6, .payload = PayloadType::kWeight},
      {.quantile_form = QuantileKind::kCompact, .frequencies = false},
  };
  return kinds;
}

}  // namespace tidemark::fuzz

#endif  // TIDEMARK_TESTS_FUZZ_STREAM_KINDS_H_
