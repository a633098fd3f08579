#include "server/window/producers.h"

#include <algorithm>
#include <iterator>

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
  if (batch.number > producer.last) {
    const std::uint64_t step = batch.number - producer.last;
    producer.taken = step < kNumbersKept ? producer.taken << step : 0;
    producer.last = batch.number;
  }
  const std::uint64_t behind = producer.last - batch.number;
  if (behind < kNumbersKept) producer.taken |= std::uint64_t{1} << behind;
  producer.worth[batch.number % kNumbersKept] = {taken.accepted, taken.refused};
  producer.log_sequence = std::max(producer.log_sequence, taken.log_sequence);
  if (order.size() > memory_.producers_max_) {
    order.front().owner->known_.erase(order.front().id);
    order.pop_front();
    ++memory_.forgotten_;
  }
}

}  // namespace tidemark::server
