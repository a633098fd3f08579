// A snapshot as Snapshots::Take writes it, in steps between which a test does what it likes.
#ifndef TIDEMARK_TESTS_SERVER_DURABILITY_SNAPSHOT_IN_STEPS_H_
#define TIDEMARK_TESTS_SERVER_DURABILITY_SNAPSHOT_IN_STEPS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/durability/definition.h"
#include "server/durability/durable_log.h"
#include "server/pipeline/pipeline.h"
#include "server/store/log_format.h"
#include "server/store/snapshot_file.h"
#include "server/window/concat.h"

namespace tidemark::server {

class SnapshotInSteps {
 public:
  /// `log`: null without one. All outlive it.
  SnapshotInSteps(store::FileSystem& files, std::string folder, Pipeline& pipeline, DurableLog* log,
                  std::uint64_t number)
      : files_(files),
        folder_(std::move(folder)),
        pipeline_(pipeline),
        log_(log),
        number_(number) {}

  /// The log's position, the next stream's number, the list of streams, each image, the end.
  /// Whether it is finished.
  bool Step() {
    switch (step_++) {
      case 0:
        if (log_ != nullptr) reaches_ = position_ = log_->last_sequence();
        return false;
      case 1:
        if (log_ != nullptr) next_stream_id_ = log_->next_stream_id();
        return false;
      case 2:
        Begin();
        return false;
      default:
        if (at_ == streams_.size()) return Finish();
        AddImage(*streams_[at_++]);
        return false;
    }
  }
  void StepToTheEnd() {
    while (!Step()) continue;
  }

  /// Whose each subscription is by the last image that has it.
  const std::map<std::string, std::string>& holders() const { return holders_; }
  /// How often an image had one that an earlier image has.
  std::uint64_t in_two() const { return in_two_; }

 private:
  void Begin() {
    streams_ = pipeline_.streams().All();
    if (log_ == nullptr) next_stream_id_ = streams_.size() + 1;
    writer_.emplace(store::SnapshotWriter::Begin(files_, folder_, number_, position_).value());
    std::string next;
    store::PutU64(next, next_stream_id_);
    EXPECT_TRUE(writer_->Add("next stream", next).ok());
  }

  void AddImage(const Stream& stream) {
    const absl::StatusOr<std::string> image = stream.Image();
    if (!image.ok()) return;  // it was deleted
    reaches_ = std::max(reaches_, stream.last_logged());
    const StreamSubscriptions kept = stream.subscriptions();
    for (const auto& [name, request] : kept) {
      in_two_ += holders_.contains(name) ? 1 : 0;
      holders_[name] = stream.name();
    }
    const std::string definition = EncodeDefinition(stream.name(), stream.settings());
    std::string blob;
    store::PutU32(blob, static_cast<std::uint32_t>(definition.size()));
    blob += definition + *image;
    const std::uint64_t id = log_ != nullptr ? stream.log_id() : ++unlogged_id_;
    EXPECT_TRUE(writer_->Add(Concat(id), blob).ok());
  }

  bool Finish() {
    if (log_ != nullptr) {
      const auto durable = std::make_shared<std::promise<absl::Status>>();
      log_->WhenDurable(reaches_, [durable](std::uint64_t, const absl::Status& status) {
        durable->set_value(status);
      });
      EXPECT_TRUE(durable->get_future().get().ok());
    }
    EXPECT_TRUE(writer_->Finish(reaches_).ok());
    return true;
  }

  store::FileSystem& files_;
  const std::string folder_;
  Pipeline& pipeline_;
  DurableLog* const log_;
  const std::uint64_t number_;
  int step_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t reaches_ = 0;
  std::uint64_t next_stream_id_ = 0;
  std::uint64_t unlogged_id_ = 0;
  std::vector<StreamHandle> streams_;
  std::size_t at_ = 0;  // the next of streams_
  std::optional<store::SnapshotWriter> writer_;
  std::map<std::string, std::string> holders_;
  std::uint64_t in_two_ = 0;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_DURABILITY_SNAPSHOT_IN_STEPS_H_
