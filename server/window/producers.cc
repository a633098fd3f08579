#include "server/window/producers.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <stdexcept>

#include "server/window/concat.h"

namespace tidemark::server {
namespace {

absl::Status TooOld(std::uint64_t number, std::uint64_t last) {
  return absl::FailedPreconditionError(
      Concat("batch ", number, " of its producer comes after batch ", last,
             ": whether it was taken in before is not known any more; expected at most ",
             kNumbersKept - 1, " behind the last"));
}

}  // namespace

std::size_t ProducerMemory::known() const {
  const std::lock_guard lock(mutex_);
  return order_.size();
}

std::uint64_t ProducerMemory::TakeForgotten() {
  const std::lock_guard lock(mutex_);
  return std::exchange(forgotten_, 0);
}

StreamProducers::~StreamProducers() {
  const std::lock_guard lock(memory_.mutex_);
  for (const auto& [id, at] : known_) memory_.order_.erase(at);
}

absl::StatusOr<std::optional<TakenBatch>> StreamProducers::Find(const ProducerBatch& batch) const {
  const std::lock_guard lock(memory_.mutex_);
  const auto found = known_.find(batch.producer);
  if (found == known_.end()) {
    if (batch.number == 1) return std::nullopt;
    return absl::FailedPreconditionError(
        Concat("batch ", batch.number,
               " of a producer that is not known, or was forgotten (limits.max_producers): whether "
               "it was taken in before cannot be known; expected a new producer's batch 1"));
  }
  ProducerMemory::Producer& producer = *found->second;
  memory_.order_.splice(memory_.order_.end(), memory_.order_, found->second);
  producer.touched = ++memory_.touches_;
  if (batch.number > producer.last) return std::nullopt;
  const std::uint64_t behind = producer.last - batch.number;
  if (behind >= kNumbersKept || batch.number < producer.first) {
    return TooOld(batch.number, producer.last);
  }
  if ((producer.taken >> behind & 1) == 0) return std::nullopt;
  const auto& [accepted, refused] = producer.worth[batch.number % kNumbersKept];
  return TakenBatch{accepted, refused, producer.log_sequence};
}

void StreamProducers::Add(const ProducerBatch& batch, const TakenBatch& taken) {
  const std::lock_guard lock(memory_.mutex_);
  auto& order = memory_.order_;
  const auto found = known_.find(batch.producer);
  if (found == known_.end()) {
    order.push_back(
        {.owner = this, .id = batch.producer, .first = batch.number, .last = batch.number});
    known_.emplace(batch.producer, std::prev(order.end()));
  } else {
    order.splice(order.end(), order, found->second);
  }
  ProducerMemory::Producer& producer = order.back();
  producer.touched = ++memory_.touches_;
  if (batch.number > producer.last) {
    const std::uint64_t step = batch.number - producer.last;
    producer.taken = step < kNumbersKept ? producer.taken << step : 0;
    producer.last = batch.number;
  }
  const std::uint64_t behind = producer.last - batch.number;
  if (behind < kNumbersKept) producer.taken |= std::uint64_t{1} << behind;
  producer.worth[batch.number % kNumbersKept] = {taken.accepted, taken.refused};
  producer.log_sequence = std::max(producer.log_sequence, taken.log_sequence);
  memory_.ForgetSurplus();
}

// mutex_ held.
void ProducerMemory::ForgetSurplus() {
  while (order_.size() > producers_max_) {
    order_.front().owner->known_.erase(order_.front().id);
    order_.pop_front();
    ++forgotten_;
  }
}

std::vector<ProducerImage> StreamProducers::Images() const {
  const std::lock_guard lock(memory_.mutex_);
  std::vector<const ProducerMemory::Producer*> producers;
  for (const auto& [id, at] : known_) producers.push_back(&*at);
  std::sort(producers.begin(), producers.end(),
            [](const auto* a, const auto* b) { return a->touched < b->touched; });
  std::vector<ProducerImage> images;
  for (const ProducerMemory::Producer* producer : producers) {
    images.push_back({producer->id, producer->first, producer->last, producer->taken, {}});
    for (std::uint64_t behind = 0; behind < kNumbersKept; ++behind) {
      if ((producer->taken >> behind & 1) == 0) continue;
      images.back().worth.push_back(producer->worth[(producer->last - behind) % kNumbersKept]);
    }
  }
  return images;
}

void StreamProducers::Restore(const std::vector<ProducerImage>& images) {
  const std::lock_guard lock(memory_.mutex_);
  auto& order = memory_.order_;
  for (const ProducerImage& image : images) {
    order.push_back({.owner = this,
                     .id = image.id,
                     .first = image.first,
                     .last = image.last,
                     .taken = image.taken,
                     .touched = ++memory_.touches_});
    const bool fresh = known_.emplace(image.id, std::prev(order.end())).second;
    if (!fresh) order.pop_back();
    // The last number was taken, and none that is too low to be one.
    const std::uint64_t numbers = image.last - image.first;
    const std::uint64_t possible =
        numbers >= kNumbersKept - 1 ? ~std::uint64_t{0} : (std::uint64_t{2} << numbers) - 1;
    if (!fresh || image.first == 0 || image.last < image.first || (image.taken & 1) == 0 ||
        (image.taken & ~possible) != 0 ||
        image.worth.size() != static_cast<std::size_t>(std::popcount(image.taken))) {
      throw std::invalid_argument("what it knows of a producer contradicts itself");
    }
    std::size_t at = 0;
    for (std::uint64_t behind = 0; behind < kNumbersKept; ++behind) {
      if ((image.taken >> behind & 1) == 0) continue;
      order.back().worth[(image.last - behind) % kNumbersKept] = image.worth[at++];
    }
  }
  memory_.ForgetSurplus();
}

}  // namespace tidemark::server
