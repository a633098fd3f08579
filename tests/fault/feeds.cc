#include "tests/fault/feeds.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

#include "server/store/log_format.h"

namespace tidemark::fault {
namespace {

// SplitMix64: a batch costs no generator's state.
class Numbers {
 public:
  explicit Numbers(std::uint64_t state) : state_(state) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

template <class T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr int kWriterShift = 48;
constexpr std::uint64_t kFirstOfBatch = std::uint64_t{1} << 63;

}  // namespace

client::StreamConfig ConfigOf(Kind kind) {
  client::StreamConfig config;
  switch (kind) {
    case Kind::kShared:
      config.type = client::ValueType::kUint64;
      break;
    case Kind::kFloats:
      config.type = client::ValueType::kFloat32;
      config.sums = true;
      break;
    case Kind::kTexts:
      config.type = client::ValueType::kString;
      config.separator.push_back('/');
      config.depth = 3;
      config.sliding.max_values = 2'000;
      break;
    case Kind::kWeighted:
      config.type = client::ValueType::kUint32;
      config.payload = client::PayloadType::kWeight;
      break;
    case Kind::kTimed:
      config.type = client::ValueType::kFloat64;
      config.quantile_form = client::QuantileForm::kCompact;
      config.sliding.max_time = std::chrono::seconds(2);
      break;
  }
  return config;
}

wire::WireElement WireOf(Kind kind) {
  switch (kind) {
    case Kind::kShared:
      return wire::WireType::kUint64;
    case Kind::kFloats:
      return wire::WireType::kFloat32;
    case Kind::kTexts:
      return wire::WireType::kString;
    case Kind::kWeighted:
      return {wire::WireType::kUint32, wire::WirePayload::kWeight};
    case Kind::kTimed:
      break;
  }
  return wire::WireType::kFloat64;
}

FaultBatch BatchOf(std::uint64_t seed, const Feed& feed, std::uint64_t number) {
  FaultBatch batch;
  if (number < 2) return batch;
  Numbers random(seed ^ std::uint64_t{feed.writer} << 56 ^
                 std::uint64_t{feed.stream} << kWriterShift ^ number * 0x9e3779b97f4a7c15u);
  batch.count = 1 + random() % 100;
  for (std::uint64_t i = 0; i < batch.count; ++i) {
    const std::uint64_t drawn = random();
    switch (kStreams[feed.stream].kind) {
      case Kind::kShared:
        Put(batch.values, i == 0
                              ? kFirstOfBatch | std::uint64_t{feed.writer} << kWriterShift | number
                          : drawn % 3 == 0 ? drawn >> 60
                                           : drawn >> 40);
        break;
      case Kind::kFloats:
        Put(batch.values, static_cast<float>(drawn % 4096) / 8);
        break;
      case Kind::kTexts: {
        const std::string text = fmt::format("{}/{}/{}", drawn % 3, drawn / 3 % 5, drawn / 15 % 40);
        store::PutU32(batch.values, static_cast<std::uint32_t>(text.size()));
        batch.values += text;
        break;
      }
      case Kind::kWeighted:
        Put(batch.values, static_cast<std::uint32_t>(drawn % 500));
        Put(batch.payloads, drawn >> 54);
        break;
      case Kind::kTimed:
        Put(batch.values, static_cast<double>(drawn >> 44) / 1024);
        break;
    }
  }
  return batch;
}

std::uint8_t WriterOf(std::string_view shared_values) {
  std::uint64_t first = 0;
  std::memcpy(&first, shared_values.data(), sizeof first);
  return static_cast<std::uint8_t>(first >> kWriterShift & 0xff);
}

std::vector<std::string_view> TextsOf(std::string_view values) {
  std::vector<std::string_view> texts;
  while (!values.empty()) {
    const std::uint32_t bytes = store::GetU32(values, 0);
    texts.push_back(values.substr(sizeof bytes, bytes));
    values.remove_prefix(sizeof bytes + bytes);
  }
  return texts;
}

}  // namespace tidemark::fault
