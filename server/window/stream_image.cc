#include "server/window/stream_image.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "summaries/byte_io.h"

namespace tidemark::server {
namespace {

constexpr char kMagic[] = "TMSI";
constexpr std::uint16_t kVersion = 2;
constexpr std::uint16_t kVersionWithoutSubscriptions = 1;
constexpr std::uint8_t kProbedPast = 1;
constexpr std::uint8_t kHasPlace = 2;
// An item without its text, a producer without what its batches were worth.
constexpr std::size_t kItemBytes = 25;
constexpr std::size_t kProducerBytes = 40;
// A subscription of no name and no request.
constexpr std::size_t kSubscriptionBytes = 16;

// Their order is that of the bytes.
template <class Frames>
auto PartsOf(Frames& frames) {
  return std::array{&frames.quantiles, &frames.frequencies, &frames.weights,
                    &frames.hierarchy, &frames.sums,        &frames.text_levels};
}
template <class Frames>
auto SlidingPartsOf(Frames& frames) {
  return std::array{&frames.record, &frames.quantiles, &frames.frequencies, &frames.hierarchy,
                    &frames.text_levels};
}

void PutText(ByteWriter& out, std::string_view text) {
  out.Put(std::uint64_t{text.size()});
  out.PutBytes(text);
}
std::string GetText(ByteReader& in) {
  const auto bytes = in.Get<std::uint64_t>();
  in.NeedItems(bytes, 1);
  return std::string(in.GetBytes(static_cast<std::size_t>(bytes)));
}
std::size_t GetCount(ByteReader& in, std::size_t item_bytes) {
  const auto count = in.Get<std::uint64_t>();
  in.NeedItems(count, item_bytes);
  return static_cast<std::size_t>(count);
}

void PutItem(ByteWriter& out, const Dictionary::Item& item) {
  out.Put(item.id);
  out.Put(item.place ? item.place->parent : std::uint64_t{0});
  out.Put(static_cast<std::uint32_t>(item.place ? item.place->level : 0));
  out.Put(static_cast<std::uint8_t>((item.probed_past ? kProbedPast : 0) |
                                    (item.place ? kHasPlace : 0)));
  out.Put(static_cast<std::uint32_t>(item.text.size()));
  out.PutBytes(item.text);
}
Dictionary::Item GetItem(ByteReader& in) {
  Dictionary::Item item;
  item.id = in.Get<std::uint64_t>();
  TextPlace place;
  place.parent = in.Get<std::uint64_t>();
  const auto level = in.Get<std::uint32_t>();
  const auto flags = in.Get<std::uint8_t>();
  if (level > TextLevels::kMaxDepth + 1u || flags > (kProbedPast | kHasPlace)) {
    in.Fail("has an item of level " + std::to_string(level) + " and flags " +
            std::to_string(flags));
  }
  place.level = static_cast<int>(level);
  item.probed_past = (flags & kProbedPast) != 0;
  if ((flags & kHasPlace) != 0) item.place = place;
  item.text = in.GetBytes(in.Get<std::uint32_t>());
  return item;
}

void PutProducer(ByteWriter& out, const ProducerImage& producer) {
  for (const std::uint64_t half : producer.id) out.Put(half);
  out.Put(producer.first);
  out.Put(producer.last);
  out.Put(producer.taken);
  for (const auto& [accepted, refused] : producer.worth) {
    out.Put(accepted);
    out.Put(refused);
  }
}
ProducerImage GetProducer(ByteReader& in) {
  ProducerImage producer;
  for (std::uint64_t& half : producer.id) half = in.Get<std::uint64_t>();
  producer.first = in.Get<std::uint64_t>();
  producer.last = in.Get<std::uint64_t>();
  producer.taken = in.Get<std::uint64_t>();
  producer.worth.resize(static_cast<std::size_t>(std::popcount(producer.taken)));
  for (auto& [accepted, refused] : producer.worth) {
    accepted = in.Get<std::uint32_t>();
    refused = in.Get<std::uint32_t>();
  }
  return producer;
}

}  // namespace

template <class Key>
std::string EncodeImage(const StreamImage<Key>& image) {
  ByteWriter out(kMagic, sizeof(Key), kVersion);
  out.Put(image.log_sequence);
  out.Put(image.windows);
  out.Put(image.refused);
  out.Put(image.weight);
  out.Put(static_cast<std::uint64_t>(image.opened_at));
  out.Put(image.capacity);
  out.Put(image.open_text_bytes);
  out.Put(image.open_new_bytes);
  out.Put(std::uint64_t{image.open.size()});
  out.PutKeys(image.open.data(), image.open.size());
  out.Put(std::uint64_t{image.payloads.size()});
  out.PutKeys(image.payloads.data(), image.payloads.size());
  out.Put(std::uint64_t{image.batches.size()});
  for (const TimedCount& batch : image.batches) {
    out.Put(batch.count);
    out.Put(static_cast<std::uint64_t>(batch.time_us));
  }
  out.Put(image.summaries.count);
  for (const std::string* part : PartsOf(image.summaries)) PutText(out, *part);
  for (const std::string* part : SlidingPartsOf(image.sliding)) PutText(out, *part);
  out.Put(std::uint64_t{image.items.size()});
  for (const Dictionary::Item& item : image.items) PutItem(out, item);
  out.Put(std::uint64_t{image.producers.size()});
  for (const ProducerImage& producer : image.producers) PutProducer(out, producer);
  out.Put(std::uint64_t{image.subscriptions.size()});
  for (const auto& [name, request] : image.subscriptions) {
    PutText(out, name);
    PutText(out, request);
  }
  return out.Finish();
}

template <class Key>
StreamImage<Key> DecodeImage(std::string_view bytes) {
  ByteReader in(bytes, kMagic, sizeof(Key), "stream", kVersion);
  StreamImage<Key> image;
  image.log_sequence = in.Get<std::uint64_t>();
  image.windows = in.Get<std::uint64_t>();
  image.refused = in.Get<std::uint64_t>();
  image.weight = in.Get<std::uint64_t>();
  image.opened_at = static_cast<RecordedTime>(in.Get<std::uint64_t>());
  image.capacity = in.Get<std::uint32_t>();
  image.open_text_bytes = in.Get<std::uint64_t>();
  image.open_new_bytes = in.Get<std::uint64_t>();
  image.open.resize(GetCount(in, sizeof(Key)));
  in.GetKeys(image.open.data(), image.open.size());
  image.payloads.resize(GetCount(in, sizeof(std::uint64_t)));
  in.GetKeys(image.payloads.data(), image.payloads.size());
  image.batches.resize(GetCount(in, 2 * sizeof(std::uint64_t)));
  for (TimedCount& batch : image.batches) {
    batch.count = in.Get<std::uint64_t>();
    batch.time_us = static_cast<std::int64_t>(in.Get<std::uint64_t>());
  }
  image.summaries.count = in.Get<std::uint64_t>();
  for (std::string* part : PartsOf(image.summaries)) *part = GetText(in);
  for (std::string* part : SlidingPartsOf(image.sliding)) *part = GetText(in);
  image.items.resize(GetCount(in, kItemBytes));
  for (Dictionary::Item& item : image.items) item = GetItem(in);
  image.producers.resize(GetCount(in, kProducerBytes));
  for (ProducerImage& producer : image.producers) producer = GetProducer(in);
  if (in.version() > kVersionWithoutSubscriptions) {
    for (std::size_t left = GetCount(in, kSubscriptionBytes); left > 0; --left) {
      std::string name = GetText(in);
      std::string request = GetText(in);
      if (!image.subscriptions.empty() && image.subscriptions.rbegin()->first >= name) {
        in.Fail("has subscriptions that do not ascend");
      }
      image.subscriptions.emplace(std::move(name), std::move(request));
    }
  }
  in.ExpectEnd();
  return image;
}

template std::string EncodeImage(const StreamImage<std::uint32_t>&);
template std::string EncodeImage(const StreamImage<std::uint64_t>&);
template std::string EncodeImage(const StreamImage<Key128>&);
template StreamImage<std::uint32_t> DecodeImage(std::string_view);
template StreamImage<std::uint64_t> DecodeImage(std::string_view);
template StreamImage<Key128> DecodeImage(std::string_view);

}  // namespace tidemark::server
