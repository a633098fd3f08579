#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "server/window/concat.h"
#include "server/window/keyed_stream.h"
#include "server/window/stream_image.h"
#include "server/window/text_rules.h"
#include "summaries/quantile_rule.h"

namespace tidemark::server {
namespace {

void Check(bool good, const char* what) {
  if (!good) throw std::invalid_argument(what);
}

bool Any(const SummaryFrames& frames) {
  return frames.count > 0 || !frames.quantiles.empty() || !frames.frequencies.empty() ||
         !frames.weights.empty() || !frames.hierarchy.empty() || !frames.sums.empty() ||
         !frames.text_levels.empty();
}

// That the open window can be one.
template <class Key>
void CheckOpen(const StreamImage<Key>& image, const StreamSettings& settings) {
  Check(std::has_single_bit(image.capacity) && image.open.size() < image.capacity,
        "its open window is not smaller than its capacity");
  Check(image.payloads.size() == (settings.payload == PayloadType::kNone ? 0 : image.open.size()),
        "its open window has not as many payloads as values");
  std::uint64_t timed = 0;
  for (const TimedCount& batch : image.batches) {
    Check(batch.count > 0 && batch.count <= image.open.size() - timed,
          "the batches of its open window are not those of its values");
    timed += batch.count;
  }
  Check(timed == (settings.sliding.any() ? image.open.size() : 0),
        "the batches of its open window are not those of its values");
}

// What was checked of the batches whose values these are: that counts and weights stay below 2^63,
// and every y is a number.
template <class Key>
void CheckBatches(const StreamImage<Key>& image, PayloadType type, std::uint64_t count,
                  std::uint64_t summed) {
  Check(count <= kMaxSummaryCount && image.open.size() <= kMaxSummaryCount - count,
        "it has 2^63 values or more");
  Check(image.weight >= summed && image.weight <= kMaxSummaryCount,
        "it weighs less than its summaries, or 2^63 or more");
  std::uint64_t left = image.weight - summed;  // those beside values that were refused, too
  for (const std::uint64_t payload : image.payloads) {
    if (type == PayloadType::kY) {
      Check(std::isfinite(std::bit_cast<double>(payload)), "a y of its open window is no number");
    } else {
      Check(payload <= left, "its open window weighs more than it");
      left -= payload;
    }
  }
}

}  // namespace

// All under the stream's lock but for the summaries, which are those of the windows before the open
// one: whoever publishes the last of these hands them over.
template <class Key>
absl::StatusOr<std::string> KeyedStream<Key>::Image() const {
  StreamImage<Key> image;
  {
    std::unique_lock lock(mutex_);
    // One at a time.
    window_published_.wait(lock, [&] { return image_wanted_ == nullptr; });
    if (deleted_) return DeletedStatus();
    image.log_sequence = last_logged_;
    image.windows = next_number_;
    image.refused = refused_;
    image.weight = weight_;
    image.opened_at = capacity_.opened_at();
    image.capacity = capacity_.capacity();
    image.open_text_bytes = open_text_bytes_;
    image.open_new_bytes = open_new_bytes_;
    image.open.assign(open_.keys().begin(), open_.keys().end());
    image.payloads = open_payloads_;
    image.batches = open_batches_;
    if (dictionary_) image.items = dictionary_->Items();
    if (producers_ != nullptr) image.producers = producers_->Images();
    if (subscriptions_ != nullptr) image.subscriptions = *subscriptions_;
    if (published_windows_ == next_number_) {
      // Nobody is inside the summaries: there is no window to take in.
      HandOver(image);
    } else {
      image_wanted_ = &image;
      window_published_.wait(lock, [&] { return image_wanted_ != &image; });
    }
  }
  return EncodeImage(image);
}

template <class Key>
void KeyedStream<Key>::HandOver(StreamImage<Key>& image) const {
  if (summaries_) image.summaries = summaries_->Frames();
  if (sliding_ && image.windows > 0) image.sliding = sliding_->Frames();
}

template <class Key>
absl::Status KeyedStream<Key>::RestoreImage(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  try {
    StreamImage<Key> image = DecodeImage<Key>(bytes);
    CheckOpen(image, settings_);
    const SummaryOptions options = settings_.summaries();
    std::unique_ptr<StreamSummaries<Key>> summaries;
    // Without a window there may be what it was imported with.
    if (image.windows > 0 || Any(image.summaries)) {
      summaries = std::make_unique<StreamSummaries<Key>>(
          StreamSummaries<Key>::FromFrames(options, image.summaries));
    }
    CheckBatches(image, settings_.payload, summaries ? summaries->count() : 0,
                 summaries ? summaries->weight() : 0);
    if (sliding_) {
      Check(image.capacity == sliding_->block_size(), "its open window is no block");
      Check(image.windows > 0 || !summaries, "it was imported, and has sliding windows");
      if (summaries) sliding_->Restore(image.sliding, summaries->count());
    }
    RestoreItems(image, summaries.get());
    if (!image.producers.empty()) Producers().Restore(image.producers);
    capacity_.Restore(image.opened_at, image.capacity);
    if (!image.open.empty()) {
      open_.Reallocate(std::min<std::size_t>(
          image.capacity, std::bit_ceil(std::max(kFirstKeys, image.open.size()))));
      std::copy(image.open.begin(), image.open.end(), open_.tail());
      open_.Extend(image.open.size());
    }
    open_payloads_ = std::move(image.payloads);
    open_batches_ = std::move(image.batches);
    open_text_bytes_ = static_cast<std::size_t>(image.open_text_bytes);
    open_new_bytes_ = static_cast<std::size_t>(image.open_new_bytes);
    next_number_ = published_windows_ = image.windows;
    refused_ = image.refused;
    weight_ = image.weight;
    last_logged_ = image.log_sequence;
    for (const auto& [name, request] : image.subscriptions) {
      Check(CheckStreamName(name, name.size()).ok(), "a subscription's name is none");
    }
    if (!image.subscriptions.empty()) {
      subscriptions_ = std::make_unique<StreamSubscriptions>(std::move(image.subscriptions));
    }
    if (summaries) published_ = summaries->Snapshot();
    summaries_ = std::move(summaries);
  } catch (const std::invalid_argument& error) {
    return absl::DataLossError(
        Concat("stream \"", Printable(name()), "\": ", std::string(error.what())));
  }
  return absl::OkStatus();
}

// The dictionary, which must have the text of all that is named.
template <class Key>
void KeyedStream<Key>::RestoreItems(const StreamImage<Key>& image,
                                    const StreamSummaries<Key>* summaries) {
  Check(dictionary_ || image.items.empty(), "it has items, but holds no strings");
  if constexpr (kRankedKeys<Key>) {
    if (!dictionary_) return;
    for (const Dictionary::Item& item : image.items) {
      Check(CheckItem(item.text, item.text.size()).ok(), "an item is not UTF-8");
      Check(text_levels_.has_value() == item.place.has_value(), "an item has no place");
      Check(dictionary_->Restore(item, image.windows), "two of its items have one id");
    }
    CountDictionary(0);
    Check(dictionary_->Consistent(), "its items are not those of their ids");
    const auto known = [&](std::uint64_t id) {
      Check(dictionary_->Text(id) != nullptr, "an item has no text");
    };
    for (const Key id : image.open) known(id);
    if (summaries != nullptr) {
      for (const Key id : NamedKeys(*summaries)) known(id);
      if (sliding_) sliding_->ForEachKey(known);
    }
  }
}

#define TIDEMARK_INSTANTIATE(Key)                                         \
  template absl::StatusOr<std::string> KeyedStream<Key>::Image() const;   \
  template void KeyedStream<Key>::HandOver(StreamImage<Key>&) const;      \
  template absl::Status KeyedStream<Key>::RestoreImage(std::string_view); \
  template void KeyedStream<Key>::RestoreItems(const StreamImage<Key>&, const StreamSummaries<Key>*)
TIDEMARK_INSTANTIATE(std::uint32_t);
TIDEMARK_INSTANTIATE(std::uint64_t);
TIDEMARK_INSTANTIATE(Key128);
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::server
