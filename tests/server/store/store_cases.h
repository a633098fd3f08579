// What the store's tests share: records that follow from their numbers, and what must be read back.
#ifndef TIDEMARK_TESTS_SERVER_STORE_STORE_CASES_H_
#define TIDEMARK_TESTS_SERVER_STORE_STORE_CASES_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/log_reader.h"
#include "server/store/log_writer.h"
#include "tests/support/fake_disk.h"

namespace tidemark::store {

inline const std::string kFolder = "/store";
inline constexpr std::uint64_t kLogId = 0x5eed;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// An entry and the bytes that it views.
struct OwnedEntry {
  std::string first, second;
  LogEntry entry;
};
/// The record `number`: of every kind in turn, with bodies of 0 to `bytes_max` bytes.
inline std::unique_ptr<OwnedEntry> MakeEntry(std::uint64_t number, std::size_t bytes_max) {
  std::mt19937_64 random(number);
  auto owned = std::make_unique<OwnedEntry>();
  const auto fill = [&](std::string& out, std::size_t bytes) {
    while (out.size() < bytes) out.push_back(static_cast<char>(random()));
  };
  if (number % 7 == 1) {
    fill(owned->first, random() % (bytes_max + 1));
    owned->entry = StreamCreated{number, owned->first};
    return owned;
  }
  if (number % 7 == 4) {
    owned->entry = StreamDeleted{random()};
    return owned;
  }
  if (number % 14 == 6) {
    fill(owned->first, 1 + random() % bytes_max);
    owned->entry = StatePart{owned->first};
    return owned;
  }
  if (number % 14 == 10) {
    fill(owned->first, random() % (bytes_max / 2 + 1));
    fill(owned->second, random() % (bytes_max / 2 + 1));
    owned->entry = Subscribed{number, owned->first, owned->second};
    return owned;
  }
  if (number % 14 == 13) {
    fill(owned->first, random() % (bytes_max + 1));
    owned->entry = Unsubscribed{number, owned->first};
    return owned;
  }
  if (number % 14 == 9) {
    fill(owned->first, random() % (bytes_max / 2 + 1));
    fill(owned->second, random() % (bytes_max / 2 + 1));
    owned->entry = StreamFromState{number, owned->second.size() + random() % 2 * 9, owned->first,
                                   owned->second};
    return owned;
  }
  Batch batch;
  batch.stream_id = random();
  batch.recorded_time_us = static_cast<std::int64_t>(random());
  batch.producer = {{random() % 3, random() % 3}, number};
  batch.value_type = static_cast<std::uint8_t>(random() % 9);
  batch.form = static_cast<std::uint8_t>(random() % 3);
  batch.payload_type = static_cast<std::uint8_t>(random() % 3);
  if (number % 7 == 5) {
    std::vector<std::string> texts(random() % 5);
    std::vector<std::string_view> views;
    for (std::string& text : texts) {
      fill(text, random() % (bytes_max / 5 + 1));
      views.push_back(text);
    }
    AppendTexts(views, owned->second);
    batch.count = static_cast<std::uint32_t>(texts.size());
  } else {
    batch.value_bytes = std::uint8_t{1} << (2 + random() % 3);
    batch.count = static_cast<std::uint32_t>(random() % (bytes_max / 24 + 1));
    fill(owned->second, std::size_t{batch.count} * batch.value_bytes);
  }
  if (batch.payload_type != 0) fill(owned->first, std::size_t{batch.count} * 8);
  batch.payloads = owned->first;
  batch.values = owned->second;
  owned->entry = batch;
  return owned;
}

/// The bytes of an entry, to compare.
inline std::string Bytes(const LogEntry& entry) { return EncodeEntry(entry, 0)->bytes; }

/// The same, made once. Thread: one.
struct KnownEntry {
  std::unique_ptr<OwnedEntry> owned;
  std::string bytes;  ///< to compare
};
inline const KnownEntry& EntryOf(std::uint64_t number, std::size_t bytes_max = 200) {
  static std::map<std::pair<std::size_t, std::uint64_t>, KnownEntry> known;
  KnownEntry& entry = known[{bytes_max, number}];
  if (!entry.owned) {
    entry.owned = MakeEntry(number, bytes_max);
    entry.bytes = Bytes(entry.owned->entry);
  }
  return entry;
}

/// Reads the log and asserts that its records are those of EntryOf from `after` + 1 on, without a
/// gap.
struct ReadBack {
  LogReading reading;
  std::uint64_t last = 0;  ///< the last record that was visited, or `after`
};
/// But for one up to `cover.reaches`, where a repair left one.
inline ReadBack ReadAll(FileSystem& disk, SnapshotCover cover = 0, std::size_t bytes_max = 200) {
  ReadBack result;
  result.last = cover.all;
  const auto visit = [&](std::uint64_t sequence, const LogEntry& entry) {
    if (sequence != cover.reaches + 1) {
      EXPECT_EQ(sequence, result.last + 1);
    }
    EXPECT_EQ(Bytes(entry), EntryOf(sequence, bytes_max).bytes) << "record " << sequence;
    result.last = sequence;
    return absl::OkStatus();
  };
  result.reading = ReadLogPrefix(disk, kFolder, cover, visit);
  return result;
}

/// A LogWriter that is driven by hand, and what it confirmed.
class Driver {
 public:
  Driver(FileSystem& disk, LogOptions options, LogEnd end = {})
      : next_(end.last_sequence + 1),
        confirmed_(end.durable.sequence),
        log_(disk, std::move(options), std::move(end), kLogId, [this] { ++wakes_; }) {}

  /// The next record. OK, or why it was refused.
  absl::Status Append(std::size_t bytes_max = 200) {
    const std::uint64_t sequence = next_;
    const auto done = [this, sequence](const absl::Status& status) {
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
        ++refused_;
        return;
      }
      EXPECT_GT(sequence, confirmed_) << "confirmed twice, or out of order";
      confirmed_ = sequence;
    };
    const auto appended = log_.Append(EntryOf(sequence, bytes_max).owned->entry, done);
    if (!appended.ok()) return appended.status();
    EXPECT_EQ(*appended, sequence);
    ++next_;
    return absl::OkStatus();
  }
  /// Time goes on by `by`, then a step.
  LogWriter::Time Step(microseconds by = microseconds(0)) { return log_.Step(now_ += by); }

  LogWriter& log() { return log_; }
  LogWriter::Time now() const { return now_; }
  std::uint64_t last() const { return next_ - 1; }
  std::uint64_t confirmed() const { return confirmed_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t wakes() const { return wakes_; }

 private:
  std::uint64_t next_;
  std::uint64_t confirmed_;
  std::uint64_t refused_ = 0;
  std::uint64_t wakes_ = 0;
  LogWriter::Time now_{std::chrono::hours(1)};
  LogWriter log_;
};

inline LogOptions SmallLog(std::uint64_t segment_bytes_max = 1024) {
  return {.folder = kFolder,
          .segment_bytes_max = segment_bytes_max,
          .sync_interval = milliseconds(5),
          .pending_bytes_max = 4096,
          .write_bytes = 512,
          .retry_interval = milliseconds(100)};
}

/// Appends until the segments have `bytes` bytes, syncing now and then, and closes: with a mark.
inline std::uint64_t WriteClosedLog(FileSystem& disk, std::uint64_t bytes,
                                    LogOptions options = SmallLog()) {
  const auto read = ReadAll(disk);
  Driver driver(disk, std::move(options), read.reading.end);
  while (driver.log().Stats().bytes_written < bytes) {
    EXPECT_TRUE(driver.Append().ok());
    driver.Step(milliseconds(2));
  }
  EXPECT_TRUE(driver.log().Close().ok());
  return driver.last();
}

}  // namespace tidemark::store

#endif  // TIDEMARK_TESTS_SERVER_STORE_STORE_CASES_H_
