#include "summaries/frequency_summary.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "summaries/byte_io.h"
#include "summaries/fraction.h"
#include "summaries/merge_runs.h"
#include "summaries/quantile_rule.h"

namespace tidemark {
namespace {

constexpr std::string_view kMagic = "TMFS";

/// Gives back what a growing vector took too much of, if it is worth a copy.
template <class T>
void Trim(std::vector<T>& items) {
  if (items.capacity() - items.size() > items.size() / 4) items.shrink_to_fit();
}

}  // namespace

std::uint64_t DroppedBound(double epsilon, std::uint64_t n) {
  const std::uint64_t share = CeilFraction(epsilon, n);
  return share > 0 ? share - 1 : 0;
}

template <class Key>
FrequencySummary<Key>::FrequencySummary(double epsilon)
    : epsilon_(epsilon), entries_(std::make_shared<const std::vector<Entry>>()) {
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    throw std::invalid_argument("epsilon of a frequency summary is " + std::to_string(epsilon) +
                                ", expected a number above 0 and at most 0.5");
  }
}

template <class Key>
void FrequencySummary<Key>::CheckRoom(std::uint64_t more) const {
  if (more > kMaxSummaryCount - count_) {
    throw std::length_error("a frequency summary of " + std::to_string(count_) +
                            " values cannot take in " + std::to_string(more) +
                            " more: the limit is 2^63 - 1");
  }
}

template <class Key>
void FrequencySummary<Key>::AddWindow(std::span<const Key> sorted) {
  if (sorted.empty()) return;
  CheckRoom(sorted.size());
  const std::uint64_t before = dropped();
  const std::uint64_t after = DroppedBound(epsilon_, count_ + sorted.size());
  std::vector<Entry> kept;
  kept.reserve(entries_->size());
  internal::MergeRuns(
      *entries_, sorted, after - before + 1,
      [&](const Entry& entry, std::uint64_t count) {
        if (entry.count + count + entry.delta > after) {
          kept.push_back({entry.key, entry.count + count, entry.delta});
        }
      },
      [&](Key key, std::uint64_t count) {
        if (count + before > after) kept.push_back({key, count, before});
      });
  Trim(kept);
  entries_ = std::make_shared<const std::vector<Entry>>(std::move(kept));
  count_ += sorted.size();
}

template <class Key>
void FrequencySummary<Key>::AddItems(std::uint64_t window_count,
                                     std::span<const KeyWeight<Key>> items) {
  CheckRoom(window_count);
  std::uint64_t left = window_count;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0 && items[i].key <= items[i - 1].key) {
      throw std::invalid_argument("items of a window do not ascend at place " + std::to_string(i));
    }
    if (items[i].weight > left) {
      throw std::invalid_argument("items come more often than the " + std::to_string(window_count) +
                                  " times of their window");
    }
    left -= items[i].weight;
  }
  const std::uint64_t before = dropped();
  const std::uint64_t after = DroppedBound(epsilon_, count_ + window_count);
  std::vector<Entry> kept;
  kept.reserve(entries_->size());
  const auto keep = [&](Key key, std::uint64_t count, std::uint64_t delta) {
    if (count + delta > after) kept.push_back({key, count, delta});
  };
  auto entry = entries_->begin();
  for (const auto& item : items) {
    for (; entry != entries_->end() && entry->key < item.key; ++entry) {
      keep(entry->key, entry->count, entry->delta);
    }
    if (entry != entries_->end() && entry->key == item.key) {
      keep(item.key, entry->count + item.weight, entry->delta);
      ++entry;
    } else {
      keep(item.key, item.weight, before);
    }
  }
  for (; entry != entries_->end(); ++entry) keep(entry->key, entry->count, entry->delta);
  Trim(kept);
  entries_ = std::make_shared<const std::vector<Entry>>(std::move(kept));
  count_ += window_count;
}

template <class Key>
void FrequencySummary<Key>::Merge(const FrequencySummary& other) {
  if (other.epsilon_ != epsilon_) {
    throw std::invalid_argument("frequency summaries with epsilon " + std::to_string(epsilon_) +
                                " and " + std::to_string(other.epsilon_) +
                                " cannot be merged: expected the same epsilon");
  }
  CheckRoom(other.count_);
  const std::uint64_t absent_here = dropped(), absent_there = other.dropped();
  const std::uint64_t after = DroppedBound(epsilon_, count_ + other.count_);
  const std::vector<Entry>&here = *entries_, &there = *other.entries_;
  std::vector<Entry> kept;
  kept.reserve(here.size() + there.size());
  const auto keep = [&](Key key, std::uint64_t count, std::uint64_t delta) {
    if (count + delta > after) kept.push_back({key, count, delta});
  };
  std::size_t i = 0, j = 0;
  while (i < here.size() || j < there.size()) {
    if (j == there.size() || (i < here.size() && here[i].key < there[j].key)) {
      keep(here[i].key, here[i].count, here[i].delta + absent_there);
      ++i;
    } else if (i == here.size() || there[j].key < here[i].key) {
      keep(there[j].key, there[j].count, there[j].delta + absent_here);
      ++j;
    } else {
      keep(here[i].key, here[i].count + there[j].count, here[i].delta + there[j].delta);
      ++i;
      ++j;
    }
  }
  Trim(kept);
  entries_ = std::make_shared<const std::vector<Entry>>(std::move(kept));
  count_ += other.count_;
}

template <class Key>
std::size_t FrequencySummary<Key>::bytes() const {
  return sizeof(*this) + sizeof(*entries_) + entries_->capacity() * sizeof(Entry);
}

template <class Key>
std::string FrequencySummary<Key>::Serialize() const {
  ByteWriter writer(kMagic, sizeof(Key));
  writer.PutDouble(epsilon_);
  writer.Put(count_);
  writer.Put(std::uint64_t{entries_->size()});
  for (const Entry& entry : *entries_) {
    writer.Put(entry.key);
    writer.Put(entry.count);
    writer.Put(entry.delta);
  }
  return writer.Finish();
}

template <class Key>
FrequencySummary<Key> FrequencySummary<Key>::Deserialize(std::string_view bytes) {
  ByteReader reader(bytes, kMagic, sizeof(Key), "frequency summary");
  const double epsilon = reader.GetDouble();
  if (!(epsilon > 0 && epsilon <= 0.5)) {
    reader.Fail("has epsilon " + std::to_string(epsilon) + ", expected above 0 and at most 0.5");
  }
  FrequencySummary summary(epsilon);
  summary.count_ = reader.Get<std::uint64_t>();
  if (summary.count_ > kMaxSummaryCount) reader.Fail("has n above the limit of 2^63 - 1");
  const std::uint64_t bound = summary.dropped();
  const auto size = reader.Get<std::uint64_t>();
  reader.NeedItems(size, sizeof(Key) + 16);
  std::vector<Entry> entries(size);
  std::uint64_t left = summary.count_;  // values that no entry so far has counted
  for (std::size_t i = 0; i < size; ++i) {
    Entry& entry = entries[i];
    entry.key = reader.Get<Key>();
    entry.count = reader.Get<std::uint64_t>();
    entry.delta = reader.Get<std::uint64_t>();
    const std::string name = "entry " + std::to_string(i);
    if (i > 0 && entry.key <= entries[i - 1].key) reader.Fail("has " + name + " out of order");
    if (entry.count == 0 || entry.count > left) {
      reader.Fail("has in " + name + " a count that its n does not allow");
    }
    left -= entry.count;
    if (entry.delta > bound || entry.count + entry.delta <= bound) {
      reader.Fail("has in " + name + " bounds that its n and epsilon do not allow");
    }
  }
  reader.ExpectEnd();
  if (bound == 0 && left > 0) reader.Fail("lacks values although nothing was dropped");
  summary.entries_ = std::make_shared<const std::vector<Entry>>(std::move(entries));
  return summary;
}

template class FrequencySummary<std::uint32_t>;
template class FrequencySummary<std::uint64_t>;

}  // namespace tidemark
