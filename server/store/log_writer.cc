#include "server/store/log_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/segment_file.h"

namespace tidemark::store {
namespace {

// A record of this size is a chunk by itself; smaller ones are gathered up to it, so that a write
// is worth its call.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

}  // namespace

LogWriter::LogWriter(FileSystem& files, LogOptions options, LogEnd end, std::uint64_t new_log_id,
                     std::function<void()> wake)
    : files_(files),
      options_(std::move(options)),
      log_id_(end.log_id != 0 ? end.log_id : new_log_id),
      wake_(std::move(wake)),
      last_sequence_(end.last_sequence),
      durable_sequence_(end.durable.sequence),
      durable_(end.durable),
      segments_(std::move(end.segments)),
      abandoned_(std::move(end.abandoned)),
      next_number_(end.highest_number + 1) {
  std::uint64_t sequence = durable_sequence_;
  for (std::string& record : end.tail) {
    ++sequence;
    pending_bytes_ += record.size();
    chunks_.push_back({std::move(record), sequence, sequence, {}});
  }
  unwritten_bytes_ = pending_bytes_;
  inherited_chunks_ = chunks_.size();
}

LogWriter::~LogWriter() = default;

absl::StatusOr<std::uint64_t> LogWriter::Append(const LogEntry& entry, Done done) {
  absl::StatusOr<UnnumberedRecord> record = EncodeEntry(entry, log_id_);
  if (!record.ok()) return record.status();
  return AppendRecords({&*record, 1}, std::move(done));
}

absl::StatusOr<std::uint64_t> LogWriter::AppendAll(std::vector<UnnumberedRecord> records,
                                                   Done done) {
  return AppendRecords(records, std::move(done));
}

absl::StatusOr<std::uint64_t> LogWriter::AppendRecords(std::span<UnnumberedRecord> records,
                                                       Done done) {
  bool wake = false;
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return absl::FailedPreconditionError("the log is closed");
    if (!failed_.ok()) return failed_;
    // Of several the first alone must fit: or those that are longer than the limit would wait for a
    // moment at which nothing is pending.
    if (pending_bytes_ > 0 &&
        pending_bytes_ + records.front().bytes.size() > options_.pending_bytes_max) {
      return absl::UnavailableError(absl::StrCat("the log is ", pending_bytes_.load(),
                                                 " bytes behind, as much as it may; try again"));
    }
    wake = KeepRecords(records, std::move(done));
    sequence = last_sequence_;
  }
  if (wake && wake_) wake_();
  return sequence;
}

bool LogWriter::KeepRecords(std::span<UnnumberedRecord> records, Done done) noexcept {
  bool wake = pending_bytes_ == 0;
  for (UnnumberedRecord& record : records) {
    const std::size_t size = record.bytes.size();
    const std::uint64_t sequence = ++last_sequence_;
    record.header.sequence = sequence;
    record.header.durable_sequence = durable_sequence_;
    NumberRecord(record, log_id_);
    if (!last_chunk_open_ || chunks_.back().bytes.size() + size > kChunkBytes) {
      chunks_.push_back({std::move(record.bytes), sequence, sequence, {}});
      last_chunk_open_ = size < kChunkBytes;
    } else {
      chunks_.back().bytes.append(record.bytes);
      chunks_.back().last = sequence;
    }
    wake = wake || (unwritten_bytes_ < options_.write_bytes &&
                    unwritten_bytes_ + size >= options_.write_bytes);
    pending_bytes_ += size;
    unwritten_bytes_ += size;
  }
  if (done) chunks_.back().done.push_back(std::move(done));
  return wake;
}

LogWriter::Time LogWriter::Step(Time now) {
  bool pending = false;
  bool failing = false;
  bool much = false;
  {
    const std::lock_guard lock(mutex_);
    pending = !chunks_.empty();
    failing = !failed_.ok();
    much = unwritten_bytes_ >= options_.write_bytes;
  }
  if (failing && now < next_try_) return next_try_;
  const bool sync = failing || now >= next_sync_;
  if (!failing && !pending && !mark_due_) {
    RemoveReleased();
    return Time::max();
  }
  if (!sync && !much) return next_sync_;
  if (failing) RemoveReleased();  // may make the room that is missing
  absl::Status status;
  if (pending) {
    status = WritePending(sync);
  } else if (failing) {
    status = BeginSegment(durable_.sequence + 1);
  } else {
    status = WriteMark();
  }
  if (!status.ok()) {
    Fail(status, now);
    return next_try_;
  }
  if (failing) Recover();
  if (sync && pending) next_sync_ = now + options_.sync_interval;
  RemoveReleased();
  const std::lock_guard lock(mutex_);
  return chunks_.empty() && !mark_due_ ? Time::max() : next_sync_;
}

absl::Status LogWriter::Close() {
  bool pending = false;
  bool failing = false;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    pending = !chunks_.empty();
    failing = !failed_.ok();
  }
  absl::Status status = pending ? WritePending(true) : absl::OkStatus();
  if (status.ok() && mark_due_) status = WriteMark();
  if (status.ok()) {
    if (failing) Recover();
    RemoveReleased();
    return status;
  }
  Fail(status, Time::max());
  const std::lock_guard lock(mutex_);
  return failed_;
}

const LogWriter::Chunk* LogWriter::NextChunk(std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  if (written_chunks_ == chunks_.size() || chunks_[written_chunks_].first > last) return nullptr;
  if (written_chunks_ + 1 == chunks_.size()) last_chunk_open_ = false;
  return &chunks_[written_chunks_];
}

absl::Status LogWriter::WritePending(bool sync) {
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    last = last_sequence_;
  }
  while (const Chunk* chunk = NextChunk(last)) {
    if (file_ && file_bytes_ > kFileHeaderBytes &&
        file_bytes_ + chunk->bytes.size() > options_.segment_bytes_max) {
      if (absl::Status status = SyncSegment(); !status.ok()) return status;
      file_.reset();
      continue;  // the sync took the chunks in front away
    }
    if (!file_) {
      if (absl::Status status = BeginSegment(chunk->first); !status.ok()) return status;
      continue;  // it may have taken chunks along
    }
    if (absl::Status status = file_->Write(file_bytes_, chunk->bytes); !status.ok()) return status;
    file_bytes_ += chunk->bytes.size();
    ++written_chunks_;
    const std::lock_guard lock(mutex_);
    unwritten_bytes_ -= chunk->bytes.size();
    stats_.bytes_written += chunk->bytes.size();
  }
  return sync ? SyncSegment() : absl::OkStatus();
}

absl::Status LogWriter::BeginSegment(std::uint64_t first_sequence) {
  const SegmentHeader header{.number = next_number_++,
                             .first_sequence = first_sequence,
                             .previous_number = durable_.segment,
                             .previous_bytes = durable_.bytes,
                             .log_id = log_id_};
  std::vector<std::string_view> records;
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < inherited_chunks_; ++i) {
      records.push_back(chunks_[i].bytes);
      bytes += chunks_[i].bytes.size();
    }
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> file =
      CreateSegment(files_, options_.folder, header, records);
  if (!file.ok()) {
    abandoned_.push_back(header.number);  // in case that it could not be removed
    return file.status();
  }
  file_ = *std::move(file);
  file_number_ = header.number;
  file_bytes_ = kFileHeaderBytes + bytes;
  segments_.push_back({header.number, first_sequence});
  if (inherited_chunks_ == 0) return absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    unwritten_bytes_ -= bytes;
  }
  durable_.segment = file_number_;
  durable_.bytes = file_bytes_;
  mark_due_ = true;
  Confirm(std::exchange(inherited_chunks_, 0));
  return absl::OkStatus();
}

absl::Status LogWriter::SyncSegment() {
  if (written_chunks_ == 0) return absl::OkStatus();
  if (absl::Status status = file_->Sync(); !status.ok()) return status;
  durable_.segment = file_number_;
  durable_.bytes = file_bytes_;
  mark_due_ = true;
  Confirm(std::exchange(written_chunks_, 0));
  return absl::OkStatus();
}

absl::Status LogWriter::WriteMark() {
  mark_due_ = false;
  if (!file_) return absl::OkStatus();
  UnnumberedRecord mark = MakeRecord(RecordKind::kMark, log_id_, {});
  mark.header.sequence = mark.header.durable_sequence = durable_.sequence;
  NumberRecord(mark, log_id_);
  if (absl::Status status = file_->Write(file_bytes_, mark.bytes); !status.ok()) return status;
  file_bytes_ += mark.bytes.size();
  return file_->Sync();
}

void LogWriter::Confirm(std::size_t chunks) {
  std::vector<Done> done;
  bool takes = false;
  {
    const std::lock_guard lock(mutex_);
    takes = failed_.ok();
    const std::size_t left = chunks_.size() - chunks;
    for (; chunks_.size() > left; chunks_.pop_front()) {
      Chunk& chunk = chunks_.front();
      durable_sequence_ = chunk.last;
      pending_bytes_ -= chunk.bytes.size();
      std::move(chunk.done.begin(), chunk.done.end(), std::back_inserter(done));
    }
    durable_.sequence = durable_sequence_;
    ++stats_.syncs;
  }
  for (const Done& each : done) each(absl::OkStatus());
  // While the log refuses, whoever is told of progress would append and be refused.
  if (takes && options_.progress) options_.progress(durable_.sequence, absl::OkStatus());
}

void LogWriter::Fail(const absl::Status& error, Time now) {
  AbandonSegment();
  next_try_ = now == Time::max() ? now : now + options_.retry_interval;
  std::vector<Done> done;
  absl::Status told;
  {
    const std::lock_guard lock(mutex_);
    failed_ = absl::UnavailableError(
        absl::StrCat("the log takes nothing until the disk recovers: ", error.message()));
    told = failed_;
    ++stats_.failures;
    written_chunks_ = 0;
    unwritten_bytes_ = pending_bytes_;
    last_chunk_open_ = false;
    for (Chunk& chunk : chunks_) {
      std::move(chunk.done.begin(), chunk.done.end(), std::back_inserter(done));
      chunk.done.clear();
    }
  }
  for (const Done& each : done) each(told);
  if (options_.progress) options_.progress(durable_.sequence, told);
}

void LogWriter::Recover() {
  {
    const std::lock_guard lock(mutex_);
    failed_ = absl::OkStatus();
  }
  if (options_.progress) options_.progress(durable_.sequence, absl::OkStatus());
}

// Leaves of the segment what is durable; of one that holds nothing so, nothing. Both only spare
// room on the disk: the next segment says what counts.
void LogWriter::AbandonSegment() {
  mark_due_ = false;
  if (!file_) return;
  file_.reset();
  const std::string path = SegmentPath(options_.folder, file_number_);
  if (durable_.segment == file_number_) {
    static_cast<void>(files_.Truncate(path, durable_.bytes));
    return;
  }
  segments_.pop_back();
  if (!files_.Remove(path).ok()) abandoned_.push_back(file_number_);
}

void LogWriter::ReleaseThrough(std::uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    release_through_ = std::max(release_through_, sequence);
  }
  if (wake_) wake_();
}

// Of those in segments_ the last two stay: the one that is written, and the one that it, or its
// successor, names as its predecessor. What cannot be removed is tried again with the next.
void LogWriter::RemoveReleased() {
  std::uint64_t through = 0;
  {
    const std::lock_guard lock(mutex_);
    through = release_through_;
  }
  // Their records are in a segment that is durable, or in none that counts.
  if (durable_.segment == file_number_ && file_) {
    std::erase_if(abandoned_, [&](std::uint64_t number) {
      const absl::Status status = files_.Remove(SegmentPath(options_.folder, number));
      return status.ok() || absl::IsNotFound(status);
    });
  }
  while (segments_.size() > 2 && segments_[1].first_sequence <= through + 1) {
    const absl::Status status =
        files_.Remove(SegmentPath(options_.folder, segments_.front().number));
    if (!status.ok() && !absl::IsNotFound(status)) break;
    segments_.erase(segments_.begin());
  }
  const std::lock_guard lock(mutex_);
  stats_.segments = segments_.size();
}

LogStats LogWriter::Stats() const {
  const std::lock_guard lock(mutex_);
  LogStats stats = stats_;
  stats.status = failed_;
  stats.last_sequence = last_sequence_;
  stats.durable_sequence = durable_sequence_;
  stats.pending_bytes = pending_bytes_;
  return stats;
}

}  // namespace tidemark::store
