#include "server/durability/snapshots.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "server/durability/definition.h"
#include "server/store/log_format.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

// The first blob: u64 next stream's number. The others have their stream's number for a name: u32
// bytes of the definition, definition, image.
constexpr std::string_view kNextStream = "next stream";

std::string EncodeStream(const Stream& stream, std::string_view image) {
  const std::string definition = EncodeDefinition(stream.name(), stream.settings());
  std::string blob;
  blob.reserve(sizeof(std::uint32_t) + definition.size() + image.size());
  store::PutU32(blob, static_cast<std::uint32_t>(definition.size()));
  blob += definition;
  blob += image;
  return blob;
}

absl::Status LoadStream(std::string_view name, std::string_view blob, Pipeline& pipeline,
                        LoadedSnapshot& loaded) {
  const auto no_blob = [&](std::string_view what) {
    return absl::DataLossError(Concat("the blob \"", name, "\" of ", blob.size(), " bytes ", what));
  };
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() || end != name.data() + name.size() || id == 0) {
    return no_blob("has no stream's number for a name");
  }
  if (blob.size() < sizeof(std::uint32_t) ||
      blob.size() - sizeof(std::uint32_t) < store::GetU32(blob, 0)) {
    return no_blob("is too short for what it says");
  }
  const std::uint32_t bytes = store::GetU32(blob, 0);
  absl::StatusOr<Definition> definition =
      DecodeDefinition(blob.substr(sizeof(std::uint32_t), bytes));
  if (!definition.ok()) return definition.status();
  absl::StatusOr<StreamHandle> stream = pipeline.streams().RestoreImage(
      definition->name, definition->settings, id, blob.substr(sizeof(std::uint32_t) + bytes));
  if (!stream.ok()) return no_blob(std::string(stream.status().message()));
  if (!loaded.streams.emplace(id, *std::move(stream)).second) return no_blob("is there twice");
  return absl::OkStatus();
}

// Images are taken in the order of streams' names, so that the last one is of the latest moment.
void SettleOf(Pipeline& pipeline, LoadedSnapshot& loaded) {
  std::vector<std::string> notes = SettleSubscriptions(pipeline, pipeline.streams().All());
  std::move(notes.begin(), notes.end(), std::back_inserter(loaded.notes));
}

absl::StatusOr<LoadedSnapshot> Load(store::FileSystem& files, const std::string& folder,
                                    Pipeline& pipeline, bool alone) {
  absl::StatusOr<store::ChosenSnapshot> chosen = store::NewestSnapshot(files, folder);
  if (!chosen.ok()) return chosen.status();
  // Nothing leads from an older one to what the damaged one held.
  if (alone && !chosen->notes.empty()) return absl::DataLossError(chosen->notes.front());
  LoadedSnapshot loaded;
  loaded.header = chosen->header;
  loaded.highest_number = chosen->highest_number;
  loaded.notes = std::move(chosen->notes);
  if (!loaded.header) return loaded;
  pipeline.SetReplaying(true);
  bool first = true;
  const absl::Status read =
      store::ReadSnapshot(files, folder, loaded.header->number,
                          [&](std::string_view name, std::string_view blob) -> absl::Status {
                            if (!std::exchange(first, false)) {
                              return LoadStream(name, blob, pipeline, loaded);
                            }
                            if (name != kNextStream || blob.size() != sizeof(std::uint64_t)) {
                              return absl::DataLossError("it does not begin with the next stream");
                            }
                            loaded.next_stream_id = store::GetU64(blob, 0);
                            return absl::OkStatus();
                          })
          .status();
  pipeline.SetReplaying(false);
  if (!read.ok()) return read;
  // No record is in it: none says whose a subscription is that changed streams meanwhile.
  if (alone || loaded.header->log_reaches == 0) SettleOf(pipeline, loaded);
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedSnapshot> LoadSnapshot(store::FileSystem& files, const std::string& folder,
                                            Pipeline& pipeline) {
  return Load(files, folder, pipeline, false);
}

absl::StatusOr<LoadedSnapshot> LoadSnapshotAlone(store::FileSystem& files,
                                                 const std::string& folder, Pipeline& pipeline) {
  return Load(files, folder, pipeline, true);
}

std::vector<std::string> SettleSubscriptions(Pipeline& pipeline,
                                             const std::vector<StreamHandle>& streams) {
  std::vector<std::string> notes;
  const std::vector<KeptTwice> all = pipeline.streams().NameSubscriptions(streams);
  for (const KeptTwice& twice : all) {
    twice.earlier->Unsubscribe(twice.name).IgnoreError();  // it is there
    notes.push_back(Concat("subscription \"", Printable(twice.name), "\" is that of stream \"",
                           Printable(twice.later->name()), "\"; stream \"",
                           Printable(twice.earlier->name()),
                           "\", which had it before, is without"));
  }
  return notes;
}

absl::StatusOr<SnapshotReport> Snapshots::Take(const std::stop_token& stop) {
  const auto begun = std::chrono::steady_clock::now();
  SnapshotReport report;
  // In this order: a stream that is created before the position is below the next stream's number,
  // and one below that number is in the list, unless it was deleted. So is one below any number in
  // the list: numbers are given, and the list is read, under the registry's lock.
  if (log_ != nullptr) report.log_position = log_->last_sequence();
  std::uint64_t next_stream_id = log_ != nullptr ? log_->next_stream_id() : 0;
  const std::vector<StreamHandle> streams = pipeline_.streams().All();
  if (log_ == nullptr) next_stream_id = streams.size() + 1;
  report.number = ++highest_number_;
  absl::StatusOr<store::SnapshotWriter> writer =
      store::SnapshotWriter::Begin(files_, folder_, report.number, report.log_position);
  if (!writer.ok()) return writer.status();
  std::string next;
  store::PutU64(next, next_stream_id);
  if (absl::Status added = writer->Add(kNextStream, next); !added.ok()) return added;
  std::uint64_t last_logged = report.log_position;
  std::uint64_t unlogged_id = 0;
  for (const StreamHandle& stream : streams) {
    if (stop.stop_requested()) return absl::CancelledError("the snapshot is not needed any more");
    const absl::StatusOr<std::string> image = stream->Image();
    if (absl::IsNotFound(image.status())) continue;
    if (!image.ok()) return image.status();
    last_logged = std::max(last_logged, stream->last_logged());
    const std::uint64_t id = log_ != nullptr ? stream->log_id() : ++unlogged_id;
    const std::string blob = EncodeStream(*stream, *image);
    if (absl::Status added = writer->Add(Concat(id), blob); !added.ok()) return added;
    report.bytes += blob.size();
    ++report.streams;
  }
  if (absl::Status durable = AwaitDurable(last_logged); !durable.ok()) return durable;
  if (absl::Status finished = writer->Finish(last_logged); !finished.ok()) return finished;
  if (newest_) {
    // What cannot be removed now is next time, or does no harm.
    store::RemoveSnapshotsBefore(files_, folder_, newest_->number).IgnoreError();
    if (log_ != nullptr) log_->ReleaseThrough(newest_->log_position);
  }
  newest_ = {.number = report.number, .log_position = report.log_position};
  report.took = std::chrono::steady_clock::now() - begun;
  return report;
}

absl::Status Snapshots::AwaitDurable(std::uint64_t sequence) {
  if (log_ == nullptr) return absl::OkStatus();
  const auto answer = std::make_shared<std::promise<absl::Status>>();
  log_->WhenDurable(sequence,
                    [answer, sequence](std::uint64_t durable, const absl::Status& status) {
                      answer->set_value(sequence <= durable ? absl::OkStatus() : status);
                    });
  return answer->get_future().get();
}

void Snapshots::Run(std::chrono::milliseconds interval, Told told) {
  thread_ = std::jthread([this, interval, told = std::move(told)](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    while (true) {
      stopped.wait_for(lock, stop, interval, [] { return false; });
      if (stop.stop_requested()) return;
      // Nothing came since the one before.
      if (log_ != nullptr && newest_ && log_->last_sequence() == newest_->log_position) continue;
      const absl::StatusOr<SnapshotReport> taken = Take(stop);
      if (stop.stop_requested() && absl::IsCancelled(taken.status())) return;
      told(taken);
    }
  });
}

void Snapshots::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace tidemark::server
