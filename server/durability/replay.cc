#include "server/durability/replay.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/durability/definition.h"
#include "server/store/log_format.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct IdOf {
  std::uint64_t operator()(const store::StatePart&) const { return 0; }
  std::uint64_t operator()(const auto& what) const { return what.stream_id; }
};

class Replay {
 public:
  Replay(Pipeline& pipeline, const LoadedSnapshot& snapshot)
      : pipeline_(pipeline), snapshot_(snapshot), streams_(snapshot.streams) {
    result_.next_stream_id = snapshot.next_stream_id;
    for (const auto& [id, stream] : snapshot.streams) {
      held_.emplace(id, stream->last_logged());
      result_.next_stream_id = std::max(result_.next_stream_id, id + 1);
    }
    given_below_ = result_.next_stream_id;
    if (snapshot.header) sequence_ = snapshot.header->log_position;
  }

  absl::Status Visit(std::uint64_t sequence, const store::LogEntry& entry) {
    if (sequence != sequence_ + 1) PassGap();
    sequence_ = sequence;
    if (const auto* part = std::get_if<store::StatePart>(&entry)) {
      Collect(sequence, *part);
      return absl::OkStatus();
    }
    if (sequence != state_goes_on_) state_.clear();
    state_goes_on_ = 0;
    if (Covered(sequence, entry)) return absl::OkStatus();
    const absl::Status status = std::visit([this](const auto& what) { return Do(what); }, entry);
    if (status.ok()) return status;
    const auto code = absl::IsFailedPrecondition(status) ? absl::StatusCode::kFailedPrecondition
                                                         : absl::StatusCode::kDataLoss;
    return absl::Status(code, NotReplayed(sequence, std::string(status.message())));
  }

  // Behind the last record: every stream is what it was then.
  absl::Status End() {
    if (snapshot_.header && sequence_ < snapshot_.header->log_reaches) PassGap();
    const std::vector<KeptTwice> twice =
        pipeline_.streams().NameSubscriptions(pipeline_.streams().All());
    if (twice.empty()) return absl::OkStatus();
    const KeptTwice& one = twice.front();
    const std::string what =
        Concat("subscription \"", Printable(one.name), "\" is that of two streams, \"",
               Printable(one.earlier->name()), "\" and \"", Printable(one.later->name()), "\"");
    const auto last = subscribed_.find(one.name);
    return absl::DataLossError(last == subscribed_.end() ? what : NotReplayed(last->second, what));
  }

  Replayed& result() { return result_; }
  std::vector<std::string>& notes() { return notes_; }

 private:
  // Parts are in a row. A row that a crash cut off was acknowledged to nobody, and another one may
  // begin right behind it: what a stream begins with is the end of the row.
  void Collect(std::uint64_t sequence, const store::StatePart& part) {
    if (sequence != state_goes_on_) state_.clear();
    state_.append(part.bytes);
    if (state_.size() > kStateBytesMax) state_.erase(0, state_.size() - kStateBytesMax);
    state_goes_on_ = sequence + 1;
  }

  static std::string NotReplayed(std::uint64_t sequence, std::string_view why) {
    return Concat("record ", sequence, " of the log cannot be replayed: ", why);
  }

  // Records are missing, of which a repair told. Those of subscriptions that changed streams may be
  // among them: whose they are is then known from the images, which are of later moments than the
  // last record, and each of a later one than that before it. Here, and not at the end: so it was
  // settled when the daemon started that wrote what comes now.
  void PassGap() {
    std::vector<StreamHandle> streams = pipeline_.streams().All();
    std::stable_partition(streams.begin(), streams.end(), [this](const StreamHandle& stream) {
      return !held_.contains(stream->log_id());
    });
    std::vector<std::string> notes = SettleSubscriptions(pipeline_, streams);
    std::move(notes.begin(), notes.end(), std::back_inserter(notes_));
  }

  // By the snapshot: see snapshots.h.
  bool Covered(std::uint64_t sequence, const store::LogEntry& entry) {
    const std::uint64_t id = std::visit(IdOf{}, entry);
    const auto held = held_.find(id);
    if (held == held_.end()) return id < given_below_;
    return sequence <= held->second || std::holds_alternative<store::StreamCreated>(entry) ||
           std::holds_alternative<store::StreamFromState>(entry);
  }

  absl::Status Do(const store::StreamCreated& created) {
    absl::StatusOr<Definition> definition = NewDefinition(created.stream_id, created.definition);
    if (!definition.ok()) return definition.status();
    absl::StatusOr<StreamHandle> stream =
        pipeline_.streams().Create(definition->name, definition->settings);
    if (stream.ok()) (*stream)->set_log_id(created.stream_id);
    return Keep(created.stream_id, std::move(stream));
  }

  absl::Status Do(const store::StreamFromState& made) {
    absl::StatusOr<Definition> definition = NewDefinition(made.stream_id, made.definition);
    if (!definition.ok()) return definition.status();
    state_.append(made.state);
    if (state_.size() < made.state_bytes) {
      return absl::DataLossError(Concat("the state of stream \"", Printable(definition->name),
                                        "\" has ", state_.size(), " bytes; expected ",
                                        made.state_bytes));
    }
    const std::string state = std::exchange(state_, {});
    absl::StatusOr<StreamHandle> stream = pipeline_.streams().RestoreImage(
        definition->name, definition->settings, made.stream_id,
        std::string_view(state).substr(state.size() - made.state_bytes));
    if (stream.ok()) {
      const StreamSubscriptions kept = (*stream)->subscriptions();
      for (const auto& [name, request] : kept) subscribed_.insert_or_assign(name, sequence_);
    }
    return Keep(made.stream_id, std::move(stream));
  }
  absl::Status Do(const store::StatePart&) { return absl::OkStatus(); }  // see Collect

  // Of a stream that can be new.
  absl::StatusOr<Definition> NewDefinition(std::uint64_t id, std::string_view bytes) {
    absl::StatusOr<Definition> definition = DecodeDefinition(bytes);
    if (!definition.ok()) return definition.status();
    if (id < result_.next_stream_id) {
      return absl::DataLossError(Concat("the stream's id ", id,
                                        " is not above those before; expected at least ",
                                        result_.next_stream_id));
    }
    if (pipeline_.streams().Find(definition->name).ok()) {
      return absl::DataLossError(
          Concat("stream \"", Printable(definition->name), "\" is created a second time"));
    }
    return definition;
  }

  absl::Status Keep(std::uint64_t id, absl::StatusOr<StreamHandle> stream) {
    if (!stream.ok()) return absl::DataLossError(stream.status().message());
    streams_.emplace(id, *std::move(stream));
    result_.next_stream_id = id + 1;
    return absl::OkStatus();
  }

  absl::Status Do(const store::StreamDeleted& deleted) {
    const auto at = streams_.find(deleted.stream_id);
    if (at == streams_.end()) return NoStream(deleted.stream_id);
    if (absl::Status status = pipeline_.streams().Delete(at->second->name()); !status.ok()) {
      return absl::DataLossError(status.message());
    }
    streams_.erase(at);
    return absl::OkStatus();
  }

  absl::Status Do(const store::Batch& batch) {
    const auto at = streams_.find(batch.stream_id);
    if (at == streams_.end()) return NoStream(batch.stream_id);
    const StreamHandle& stream = at->second;
    const ElementType element = stream->settings().element();
    if (batch.value_type != static_cast<std::uint8_t>(element.value) ||
        batch.payload_type != static_cast<std::uint8_t>(element.payload)) {
      return absl::DataLossError(
          Concat("a batch of types ", batch.value_type, " and ", batch.payload_type, "; stream \"",
                 Printable(stream->name()), "\" holds ", ElementTypeName(element)));
    }
    const AppendResult result = Append(stream, batch);
    if (!result.status.ok()) return absl::DataLossError(result.status.message());
    ++result_.batches;
    result_.values += result.accepted;
    WaitForRoom();
    return absl::OkStatus();
  }

  // To the stream alone: one whose image is of a later moment may have the name already, and what
  // came in between is still to come.
  absl::Status Do(const store::Subscribed& subscribed) {
    const auto at = streams_.find(subscribed.stream_id);
    if (at == streams_.end()) return NoStream(subscribed.stream_id);
    if (at->second->FindSubscription(subscribed.name)) {
      return absl::DataLossError(
          Concat("subscription \"", Printable(subscribed.name), "\" is created a second time"));
    }
    subscribed_.insert_or_assign(std::string(subscribed.name), sequence_);
    return at->second->Subscribe(subscribed.name, subscribed.request).status();
  }

  absl::Status Do(const store::Unsubscribed& unsubscribed) {
    const auto at = streams_.find(unsubscribed.stream_id);
    if (at == streams_.end()) return NoStream(unsubscribed.stream_id);
    return at->second->Unsubscribe(unsubscribed.name).status();
  }

  AppendResult Append(const StreamHandle& stream, const store::Batch& batch) {
    const BatchStamp stamp(batch.recorded_time_us,
                           {batch.producer.producer, batch.producer.sequence});
    const std::span<const std::byte> payloads = AsBytes(batch.payloads);
    const bool pairs = stream->settings().payload != PayloadType::kNone;
    switch (static_cast<BatchForm>(batch.form)) {
      case BatchForm::kPacked:
        return pairs ? pipeline_.AppendPairs(stream, AsBytes(batch.values), payloads, stamp)
                     : pipeline_.AppendPacked(stream, AsBytes(batch.values), stamp);
      case BatchForm::kNumbers: {
        if (batch.value_bytes != sizeof(double)) break;
        std::vector<double> numbers(batch.count);
        if (!numbers.empty()) {
          std::memcpy(numbers.data(), batch.values.data(), batch.values.size());
        }
        return pipeline_.AppendNumbers(stream, numbers, stamp);
      }
      case BatchForm::kTexts: {
        if (batch.value_bytes != 0) break;
        const std::vector<std::string_view> texts = store::BatchTexts(batch);
        return pairs ? pipeline_.AppendStringPairs(stream, texts, payloads, stamp)
                     : pipeline_.AppendStrings(stream, texts, stamp);
      }
    }
    AppendResult unknown;
    unknown.status = absl::DataLossError(
        Concat("a batch of form ", batch.form, " with values of ", batch.value_bytes, " bytes"));
    return unknown;
  }

  // As a source does.
  void WaitForRoom() {
    if (!pipeline_.saturated()) return;
    const auto room = std::make_shared<std::promise<void>>();
    pipeline_.WhenReady([room] { room->set_value(); });
    room->get_future().wait();
  }

  static absl::Status NoStream(std::uint64_t id) {
    return absl::DataLossError(Concat("there is no stream of id ", id));
  }

  Pipeline& pipeline_;
  const LoadedSnapshot& snapshot_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> held_;  // by id: the image's last record
  absl::flat_hash_map<std::uint64_t, StreamHandle> streams_;
  std::uint64_t given_below_ = 0;  // ids, when the snapshot's list of streams was read
  std::uint64_t sequence_ = 0;     // of the last record
  // By name of a subscription: the last record that said that a stream keeps it.
  absl::flat_hash_map<std::string, std::uint64_t> subscribed_;
  std::vector<std::string> notes_;
  std::string state_;                // of parts, in a row
  std::uint64_t state_goes_on_ = 0;  // with this record, or not at all
  Replayed result_;
};

}  // namespace

absl::StatusOr<Replayed> ReplayLog(store::FileSystem& files, const std::string& folder,
                                   Pipeline& pipeline, const LoadedSnapshot& snapshot) {
  Replay replay(pipeline, snapshot);
  pipeline.SetReplaying(true);
  const store::SnapshotHeader header = snapshot.header.value_or(store::SnapshotHeader());
  absl::StatusOr<store::LogEnd> end =
      store::ReadLog(files, folder, {header.log_position, header.log_reaches},
                     [&](std::uint64_t sequence, const store::LogEntry& entry) {
                       return replay.Visit(sequence, entry);
                     });
  pipeline.SetReplaying(false);
  if (!end.ok()) return end.status();
  if (const absl::Status status = replay.End(); !status.ok()) {
    return absl::Status(status.code(), Concat(folder, ": ", std::string(status.message())));
  }
  std::move(replay.notes().begin(), replay.notes().end(), std::back_inserter(end->notes));
  replay.result().end = *std::move(end);
  return std::move(replay.result());
}

}  // namespace tidemark::server
