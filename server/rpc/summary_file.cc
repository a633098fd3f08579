#include "server/rpc/summary_file.h"

#include <stdexcept>
#include <utility>

#include "server/rpc/convert.h"
#include "server/window/concat.h"
#include "server/window/stream_registry.h"
#include "summaries/crc32c.h"

namespace tidemark::server {
namespace {

template <class Key>
absl::StatusOr<StreamState> ReadState(const StreamSettings& settings,
                                      const v1::StreamSummary& summary) {
  SummaryFrames frames{summary.n(),          summary.quantiles(), summary.frequencies(),
                       summary.weights(),    summary.hierarchy(), summary.sums(),
                       summary.text_levels()};
  try {
    KeyedState<Key> state{
        settings, StreamSummaries<Key>::FromFrames(settings.summaries(), frames), {}};
    for (const v1::ItemText& item : summary.items()) {
      if (!state.items.empty() && state.items.back().first >= item.id()) {
        return absl::InvalidArgumentError("the ids of its items do not ascend");
      }
      state.items.emplace_back(item.id(), item.text());
    }
    if (!state.items.empty() && settings.type != ValueType::kString) {
      return absl::InvalidArgumentError("it has texts of items, but holds no strings");
    }
    return state;
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace

void WriteSummaryFile(const std::string& name, const StreamState& state, v1::SummaryFile& file) {
  v1::StreamSummary summary;
  summary.set_stream(name);
  std::visit(
      [&](const auto& held) {
        ToProto(held.settings, *summary.mutable_config());
        SummaryFrames frames = held.summaries.Frames();
        summary.set_n(frames.count);
        summary.set_quantiles(std::move(frames.quantiles));
        summary.set_frequencies(std::move(frames.frequencies));
        summary.set_weights(std::move(frames.weights));
        summary.set_hierarchy(std::move(frames.hierarchy));
        summary.set_sums(std::move(frames.sums));
        summary.set_text_levels(std::move(frames.text_levels));
        for (const auto& [id, text] : held.items) {
          v1::ItemText* item = summary.add_items();
          item->set_id(id);
          item->set_text(text);
        }
      },
      state);
  file.set_version(kSummaryFileVersion);
  *file.mutable_summary() = summary.SerializeAsString();
  file.set_crc32c(Crc32c(file.summary()));
}

absl::StatusOr<StreamState> ReadSummaryFile(const v1::SummaryFile& file) {
  if (file.version() != kSummaryFileVersion) {
    return absl::InvalidArgumentError(Concat("its version is ", file.version(),
                                             "; this daemon reads version ", kSummaryFileVersion));
  }
  if (file.crc32c() != Crc32c(file.summary())) {
    return absl::InvalidArgumentError("it is damaged: its checksum is not that of its bytes");
  }
  v1::StreamSummary summary;
  if (!summary.ParseFromString(file.summary())) {
    return absl::InvalidArgumentError("it holds no tidemark.v1.StreamSummary");
  }
  if (summary.config().type() == v1::VALUE_TYPE_UNSPECIFIED) {
    return absl::InvalidArgumentError("its config names no type");
  }
  if (summary.config().has_sliding()) {
    return absl::InvalidArgumentError("its config has sliding windows, which no file holds");
  }
  // What is unset has the same meaning on every daemon.
  const absl::StatusOr<StreamSettings> settings = FromProto(summary.config(), StreamSettings());
  if (!settings.ok()) return settings.status();
  if (absl::Status status = CheckSettings(*settings); !status.ok()) return status;
  return WithKeyOf(settings->type,
                   [&]<class Key>(Key) { return ReadState<Key>(*settings, summary); });
}

}  // namespace tidemark::server
