#include "server/durability/durable_log.h"

#include <string>
#include <utility>
#include <vector>

#include "server/durability/definition.h"

namespace tidemark::server {
namespace {

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint8_t ValueBytes(const LoggedBatch& batch) {
  switch (batch.form) {
    case BatchForm::kPacked:
      return static_cast<std::uint8_t>(PackedBytes(batch.element.value));
    case BatchForm::kNumbers:
      return sizeof(double);
    case BatchForm::kTexts:
      break;
  }
  return 0;
}

store::LogOptions Telling(store::LogOptions options, auto progress) {
  options.progress = std::move(progress);
  return options;
}

}  // namespace

DurableLog::DurableLog(store::FileSystem& files, store::LogOptions options, store::LogEnd end,
                       std::uint64_t new_log_id, std::uint64_t next_stream_id, Trouble trouble)
    : trouble_(std::move(trouble)),
      behind_at_(options.pending_bytes_max / 2),
      durable_(end.durable.sequence),
      next_stream_id_(next_stream_id),
      thread_(files,
              Telling(std::move(options),
                      [this](std::uint64_t durable, const absl::Status& status) {
                        Progress(durable, status);
                      }),
              std::move(end), new_log_id) {}

DurableLog::~DurableLog() { Stop().IgnoreError(); }

absl::StatusOr<std::uint64_t> DurableLog::Append(const store::LogEntry& entry) {
  absl::StatusOr<std::uint64_t> sequence = thread_.log().Append(entry, {});
  if (absl::IsFailedPrecondition(sequence.status())) {
    return absl::UnavailableError("the log is closed: the daemon is shutting down");
  }
  return sequence;
}

absl::StatusOr<std::uint64_t> DurableLog::Created(std::string_view name,
                                                  const StreamSettings& settings) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_stream_id_++;
  }
  const std::string definition = EncodeDefinition(name, settings);
  if (absl::Status status = Append(store::StreamCreated{id, definition}).status(); !status.ok()) {
    return status;
  }
  return id;
}

absl::Status DurableLog::Deleted(std::uint64_t stream_id) {
  return Append(store::StreamDeleted{stream_id}).status();
}

absl::StatusOr<std::uint64_t> DurableLog::Batch(const LoggedBatch& batch) {
  std::string texts;
  if (batch.form == BatchForm::kTexts) store::AppendTexts(batch.texts, texts);
  return Append(store::Batch{
      .stream_id = batch.stream_id,
      .recorded_time_us = batch.stamp.time,
      .producer = {batch.stamp.from.producer, batch.stamp.from.number},
      .value_type = static_cast<std::uint8_t>(batch.element.value),
      .payload_type = static_cast<std::uint8_t>(batch.element.payload),
      .form = static_cast<std::uint8_t>(batch.form),
      .value_bytes = ValueBytes(batch),
      .count = static_cast<std::uint32_t>(batch.count),
      .payloads = AsText(batch.payloads),
      .values = batch.form == BatchForm::kTexts ? std::string_view(texts) : AsText(batch.values)});
}

void DurableLog::WhenDurable(std::uint64_t sequence, IngestSink::Durable done) {
  std::uint64_t durable = 0;
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    durable = durable_;
    if (sequence > durable) status = status_;
    if (sequence > durable && status.ok()) {
      waiting_.emplace(sequence, std::move(done));
      return;
    }
  }
  done(durable, status);
}

void DurableLog::Progress(std::uint64_t durable, const absl::Status& status) {
  std::vector<IngestSink::Durable> told;
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    durable_ = durable;
    changed = status_.ok() != status.ok();
    status_ = status;
    const auto end = status.ok() ? waiting_.upper_bound(durable) : waiting_.end();
    for (auto at = waiting_.begin(); at != end; at = waiting_.erase(at)) {
      told.push_back(std::move(at->second));
    }
  }
  takes_ = status.ok();
  if (changed && trouble_) trouble_(status);
  for (const IngestSink::Durable& done : told) done(durable, status);
  CallPaused();
}

void DurableLog::WhenCaughtUp(std::function<void()> resume) {
  {
    const std::lock_guard lock(mutex_);
    paused_.push_back(std::move(resume));
  }
  CallPaused();  // the last sync may have been before
}

void DurableLog::CallPaused() {
  if (takes_ && thread_.log().pending_bytes() > behind_at_ / 4 * 3) return;
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(paused_);
  }
  for (const auto& resume : ready) resume();
}

absl::Status DurableLog::Stop() {
  absl::Status status = thread_.Stop();
  takes_ = false;
  CallPaused();
  return status;
}

}  // namespace tidemark::server
