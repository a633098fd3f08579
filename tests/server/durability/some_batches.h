// Streams of every kind, random batches for them, and all that can be seen of them.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_SOME_BATCHES_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_SOME_BATCHES_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/pipeline/pipeline.h"
#include "server/window/concat.h"

namespace tidemark::server {

using Random = std::mt19937_64;

/// Every value type, payload and form of summary at least once.
inline std::vector<StreamSettings> KindsOfStreams() {
  std::vector<StreamSettings> kinds;
  for (int number = 1; ValueTypeFromNumber(static_cast<std::uint32_t>(number)); ++number) {
    const ValueType type = *ValueTypeFromNumber(static_cast<std::uint32_t>(number));
    kinds.push_back({.type = type, .quantile_epsilon = 0.02, .frequency_epsilon = 0.02});
    kinds.push_back(kinds.back());
    kinds.back().payload = PayloadType::kWeight;
    if (HasRanks(type)) {
      kinds.push_back(kinds.front());
      kinds.back().type = type;
      kinds.back().payload = PayloadType::kY;
    }
    kinds.push_back({.type = type, .sliding = {.values_max = 2'000, .epsilon = 0.2}});
    if (CanSumValues(type)) {
      kinds.push_back({.type = type, .quantile_form = QuantileKind::kCompact, .sums = true});
    }
  }
  kinds.push_back({.quantile_form = QuantileKind::kCompact, .frequencies = false});
  kinds.push_back({.quantile_form = QuantileKind::kTail, .sliding = {.time_max_us = 5'000'000}});
  kinds.push_back({.type = ValueType::kIpv4, .hierarchy = {.prefix_lengths = {8, 16, 32}}});
  kinds.push_back({.type = ValueType::kIpv6, .hierarchy = {.prefix_lengths = {48, 64}}});
  kinds.push_back({.type = ValueType::kString, .hierarchy = {.depth = 3}});
  kinds.push_back({.type = ValueType::kString,
                   .payload = PayloadType::kWeight,
                   .hierarchy = {.depth = 2, .separator = '/', .root_last = true}});
  for (const StreamSettings& settings : kinds) {
    EXPECT_TRUE(CheckSettings(settings).ok()) << Describe(settings);
  }
  return kinds;
}

inline double SomeNumber(Random& random) {
  switch (random() % 16) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return -0.0;
    default:
      return static_cast<double>(random() % 2000);
  }
}

inline std::string SomePacked(Random& random, ValueType type, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double number = SomeNumber(random);
    const auto narrow = static_cast<float>(number);
    const std::uint64_t wide[2] = {random() % 4, random() % 50};
    const std::size_t size = PackedBytes(type);
    if (type == ValueType::kFloat64) {
      bytes.append(reinterpret_cast<const char*>(&number), size);
    } else if (type == ValueType::kFloat32) {
      bytes.append(reinterpret_cast<const char*>(&narrow), size);
    } else if (size == 16) {
      bytes.append(reinterpret_cast<const char*>(wide), size);
    } else {
      bytes.append(reinterpret_cast<const char*>(&wide[1]), size);
    }
  }
  return bytes;
}

inline std::string SomePayloads(Random& random, PayloadType type, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count && type != PayloadType::kNone; ++i) {
    const std::uint64_t bits = type == PayloadType::kWeight
                                   ? random() % 1000
                                   : std::bit_cast<std::uint64_t>(SomeNumber(random));
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

inline std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// One batch, good or bad, of fewer than `values_end` values, the same for the same state of
/// `random`.
inline AppendResult SomeBatch(Random& random, Pipeline& pipeline, const StreamHandle& stream,
                              RecordedTime time, std::size_t values_end = 300) {
  const ElementType type = stream->settings().element();
  const std::size_t count = random() % 8 == 0 ? 0 : random() % values_end;
  const std::uint64_t how = random() % 12;
  if (how == 0) {  // half a value, a string for numbers, or numbers for strings
    return pipeline.AppendPacked(stream, Bytes(std::string(3, 'x')), time);
  }
  const std::string payloads = SomePayloads(random, type.payload, how == 1 ? count + 1 : count);
  if (type.value == ValueType::kString) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) {
      texts.push_back(Concat(random() % 3, ".", random() % 5, "/", random() % 40));
    }
    if (how == 2 && count > 0) texts.back() = "\xff";
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    return type.payload == PayloadType::kNone
               ? pipeline.AppendStrings(stream, views, time)
               : pipeline.AppendStringPairs(stream, views, Bytes(payloads), time);
  }
  if (how < 5) {
    std::vector<double> numbers(count);
    for (double& number : numbers)
      number = how == 2 ? SomeNumber(random) : static_cast<double>(random() % 99);
    return pipeline.AppendNumbers(stream, numbers, time);
  }
  const std::string values = SomePacked(random, type.value, count);
  return type.payload == PayloadType::kNone
             ? pipeline.AppendPacked(stream, Bytes(values), time)
             : pipeline.AppendPairs(stream, Bytes(values), Bytes(payloads), time);
}

/// Everything that can be seen of the streams.
inline std::string Seen(Pipeline& pipeline) {
  std::string seen;
  for (const StreamHandle& stream : pipeline.streams().All()) {
    const std::string bytes = stream->SerializeSummaries();  // waits for windows under way
    const StreamStats stats = stream->Stats();
    seen += Concat(stream->name(), ": ", Describe(stream->settings()), "; n ", stats.count,
                   ", refused ", stats.refused, ", open ", stats.window_fill, " of ",
                   stats.window_capacity, ", windows ", stats.windows_summarized, ", bytes ",
                   bytes.size(), ", hash ", std::hash<std::string>()(bytes), "\n");
  }
  return seen;
}

/// Each stream of the first takes `batches` more, and so does the same one of the second: both
/// answer the same, and are the same then.
inline void ExpectTheyGoOnAlike(Random& random, Pipeline& first, Pipeline& second,
                                RecordedTime time, int batches) {
  for (const StreamHandle& stream : first.streams().All()) {
    const StreamHandle other = second.streams().Find(stream->name()).value();
    for (int i = 0; i < batches; ++i) {
      const std::uint64_t both = random();
      Random a(both);
      Random b(both);
      const AppendResult of_first = SomeBatch(a, first, stream, time + i * 1000);
      const AppendResult of_second = SomeBatch(b, second, other, time + i * 1000);
      EXPECT_EQ(of_first.status.code(), of_second.status.code());
      EXPECT_EQ(of_first.accepted, of_second.accepted);
    }
  }
  EXPECT_EQ(Seen(first), Seen(second));
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_SOME_BATCHES_H_
