#include "server/durability/durable_log.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/durability/definition.h"
#include "server/window/concat.h"

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

// What the log answered, as streams are told.
absl::StatusOr<std::uint64_t> Taken(absl::StatusOr<std::uint64_t> sequence) {
  if (absl::IsFailedPrecondition(sequence.status())) {
    return absl::UnavailableError("the log is closed: the daemon is shutting down");
  }
  return sequence;
}

struct StateRecords final : PreparedState {
  std::uint64_t bytes = 0;  // of the whole image
  std::vector<store::UnnumberedRecord> parts;
  std::string last;  // what is left behind them, for the record that has the stream's id
};

store::LogOptions Telling(store::LogOptions options, auto progress) {
  options.progress = std::move(progress);
  return options;
}

}  // namespace

DurableLog::DurableLog(store::FileSystem& files, store::LogOptions options, store::LogEnd end,
                       std::uint64_t new_log_id, std::uint64_t next_stream_id, Trouble trouble)
    : trouble_(std::move(trouble)),
      behind_at_(options.pending_bytes_max / 2),
      part_bytes_(std::clamp<std::size_t>(options.segment_bytes_max, 1, kStatePartBytes)),
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
  return Taken(thread_.log().Append(entry, {}));
}

std::uint64_t DurableLog::NextStreamId() {
  const std::lock_guard lock(mutex_);
  return next_stream_id_++;
}

absl::StatusOr<LoggedStream> DurableLog::Created(std::string_view name,
                                                 const StreamSettings& settings) {
  const std::uint64_t id = NextStreamId();
  const std::string definition = EncodeDefinition(name, settings);
  const absl::StatusOr<std::uint64_t> sequence = Append(store::StreamCreated{id, definition});
  if (!sequence.ok()) return sequence.status();
  return LoggedStream{id, *sequence};
}

absl::StatusOr<std::unique_ptr<PreparedState>> DurableLog::Prepare(std::string_view image) {
  if (image.size() > kStateBytesMax) {
    return absl::InvalidArgumentError(Concat("a state of ", image.size(),
                                             " bytes is too large for the log; expected at most ",
                                             kStateBytesMax));
  }
  auto state = std::make_unique<StateRecords>();
  state->bytes = image.size();
  for (; image.size() > part_bytes_; image.remove_prefix(part_bytes_)) {
    absl::StatusOr<store::UnnumberedRecord> part =
        thread_.log().Prepare(store::StatePart{image.substr(0, part_bytes_)});
    if (!part.ok()) return part.status();
    state->parts.push_back(*std::move(part));
  }
  state->last = image;
  return state;
}

absl::StatusOr<LoggedStream> DurableLog::CreatedFrom(std::string_view name,
                                                     const StreamSettings& settings,
                                                     std::unique_ptr<PreparedState> state) {
  auto& records = static_cast<StateRecords&>(*state);
  const std::uint64_t id = NextStreamId();
  const std::string definition = EncodeDefinition(name, settings);
  absl::StatusOr<store::UnnumberedRecord> last =
      thread_.log().Prepare(store::StreamFromState{id, records.bytes, definition, records.last});
  if (!last.ok()) return last.status();
  records.parts.push_back(*std::move(last));
  const absl::StatusOr<std::uint64_t> sequence =
      Taken(thread_.log().AppendAll(std::move(records.parts), {}));
  if (!sequence.ok()) return sequence.status();
  return LoggedStream{id, *sequence};
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

absl::StatusOr<std::uint64_t> DurableLog::Subscribed(std::uint64_t stream_id, std::string_view name,
                                                     std::string_view request) {
  return Append(store::Subscribed{stream_id, name, request});
}

absl::StatusOr<std::uint64_t> DurableLog::Unsubscribed(std::uint64_t stream_id,
                                                       std::string_view name) {
  return Append(store::Unsubscribed{stream_id, name});
}

void DurableLog::WhenDurable(std::uint64_t sequence, IngestSink::Durable done) {
  std::uint64_t durable = 0;
  absl::Status status;
  {
    const std::lock_guard lock(mutex_);
    durable = durable_;
    if (sequence > durable) status = status_;
    if (sequence > durable && status.ok()) {
      gone_waiting_.DropFrom(waiting_, [](const auto& one) { return IsGone(one.second); });
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
    gone_waiting_.Left(waiting_.size());
  }
  takes_ = status.ok();
  if (changed && trouble_) trouble_(status);
  for (const IngestSink::Durable& done : told) done(durable, status);
  CallPaused();
}

void DurableLog::WhenCaughtUp(std::function<void()> resume) {
  {
    const std::lock_guard lock(mutex_);
    gone_paused_.DropFrom(paused_, [](const auto& one) { return IsGone(one); });
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
    gone_paused_.Left(0);
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
