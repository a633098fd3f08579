// The last value of each StatsD gauge, which `name:+5|g` is relative to.
#ifndef TIDEMARK_SERVER_INGEST_GAUGE_TABLE_H_
#define TIDEMARK_SERVER_INGEST_GAUGE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace tidemark::server {

/// One gauge; begins at 0, as StatsD's do. Thread: any.
class GaugeCell {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  /// Adds and returns the new value; NaN if there is none (∞ − ∞), and the gauge stays as it was.
  double Add(double delta) {
    double before = value_.load(std::memory_order_relaxed);
    double after = before + delta;
    while (after == after &&
           !value_.compare_exchange_weak(before, after, std::memory_order_relaxed)) {
      after = before + delta;
    }
    return after;
  }

 private:
  std::atomic<double> value_{0};
};

/// The gauges of a daemon, shared by all StatsD sources. Bounded: when `gauges_max` are held, those
/// that no source has in its cache are forgotten (they begin at 0 again); if none is, Get gives
/// nothing. Thread: any. Not promised: the order of changes that different connections make to one
/// gauge, nor that gauges survive a restart.
class GaugeTable {
 public:
  explicit GaugeTable(std::size_t gauges_max) : gauges_max_(gauges_max) {}

  /// The gauge of a stream; nullptr when there is no room.
  std::shared_ptr<GaugeCell> Get(const std::string& name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = cells_.find(name); found != cells_.end()) return found->second;
    if (cells_.size() >= gauges_max_ && !MakeRoom()) return nullptr;
    auto cell = std::make_shared<GaugeCell>();
    cells_.emplace(name, cell);
    return cell;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return cells_.size();
  }

 private:
  // Looks through the whole table, so at most once in kTriesBetween calls while it is full.
  bool MakeRoom() {
    constexpr std::size_t kTriesBetween = 1024;
    if (tries_since_scan_++ % kTriesBetween != 0) return false;
    std::erase_if(cells_, [](const auto& entry) { return entry.second.use_count() == 1; });
    if (cells_.size() >= gauges_max_) return false;
    tries_since_scan_ = 0;
    return true;
  }

  const std::size_t gauges_max_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<GaugeCell>> cells_;
  std::size_t tries_since_scan_ = 0;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_GAUGE_TABLE_H_
