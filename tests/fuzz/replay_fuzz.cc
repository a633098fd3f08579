// A log of any records, replayed: what contradicts itself is refused with a reason of one line that
// names the record; twice the same log makes twice the same streams, and these answer and go on.
//
// The input: records of one byte kind, two bytes length, body. Bit 7 of the kind: in a stream's
// definition stands the number of its kind alone (stream_kinds.h), the name is "s" and its id;
// checksums of a state in one record are made to fit.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "server/durability/definition.h"
#include "server/durability/replay.h"
#include "server/window/concat.h"
#include "tests/fuzz/image_checksums.h"
#include "tests/fuzz/small_pipeline.h"
#include "tests/fuzz/stream_kinds.h"
#include "tests/support/fake_disk.h"

namespace {

using namespace tidemark::server;
using tidemark::fuzz::Require;
using tidemark::fuzz::SmallPipeline;
namespace store = tidemark::store;

constexpr std::uint64_t kLogId = 7;
const std::string kFolder = "/log";

// A body whose definition, and state, are whole.
std::string Whole(store::RecordKind kind, std::string_view body) {
  const auto entry = store::DecodeEntry(kind, body);
  if (!entry.ok()) return std::string(body);
  const auto& kinds = tidemark::fuzz::StreamKinds();
  std::string definition, state;
  const auto define = [&](std::uint64_t id, std::string_view short_form) {
    const auto number = short_form.empty() ? 0 : static_cast<std::uint8_t>(short_form[0]);
    const StreamSettings& settings = kinds[number % kinds.size()];
    definition = EncodeDefinition(Concat("s", id), settings);
    return settings.type;
  };
  store::LogEntry whole = *entry;
  if (auto* created = std::get_if<store::StreamCreated>(&whole)) {
    define(created->stream_id, created->definition);
    created->definition = definition;
  } else if (auto* made = std::get_if<store::StreamFromState>(&whole)) {
    const ValueType type = define(made->stream_id, made->definition);
    const bool in_one = made->state.size() == made->state_bytes;
    state = made->state;
    if (in_one) tidemark::fuzz::FixImage(type, state);
    made->definition = definition;
    made->state = state;
    if (in_one) made->state_bytes = state.size();
  }
  const auto record = store::EncodeEntry(whole, 0);
  return record.ok() ? record->bytes.substr(store::kRecordHeaderBytes, record->header.body_bytes)
                     : std::string(body);
}

std::string SegmentOf(std::string_view input) {
  std::string bytes =
      store::EncodeSegmentHeader({.number = 1, .first_sequence = 1, .log_id = kLogId});
  for (std::uint64_t sequence = 1; input.size() >= 3; ++sequence) {
    const auto byte = static_cast<std::uint8_t>(input[0]);
    const auto kind = static_cast<store::RecordKind>(byte & 0x7F);
    const std::size_t length = static_cast<std::uint8_t>(input[1]) |
                               static_cast<std::size_t>(static_cast<std::uint8_t>(input[2])) << 8;
    input.remove_prefix(3);
    const std::string_view body = input.substr(0, length);
    input.remove_prefix(body.size());
    store::UnnumberedRecord record =
        store::MakeRecord(kind, kLogId, {(byte & 0x80) != 0 ? Whole(kind, body) : body});
    record.header.sequence = sequence;
    store::NumberRecord(record, kLogId);
    bytes += record.bytes;
  }
  return bytes;
}

// All streams as they are, which are then deleted.
std::string Taken(Pipeline& pipeline) {
  std::string all;
  for (const StreamHandle& stream : pipeline.streams().All()) {
    all += Concat(stream->name(), " ", stream->log_id(), " ");
    all += stream->Image().value();
    Require(pipeline.streams().Delete(stream->name()).ok());
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string segment = SegmentOf({reinterpret_cast<const char*>(data), size});
  tidemark::testing::FakeDisk disk;
  const auto file = disk.Create(kFolder + "/" + store::SegmentName(1));
  Require(file.ok() && (*file)->Write(0, segment).ok());
  Pipeline& pipeline = SmallPipeline().pipeline;
  std::string first;
  for (int time = 0; time < 2; ++time) {
    const absl::StatusOr<Replayed> replayed = ReplayLog(disk, kFolder, pipeline);
    if (!replayed.ok()) {
      const std::string message(replayed.status().message());
      Require(message.find("record ") != std::string::npos);
      Require(message.find('\n') == std::string::npos);
    }
    const std::string taken = Taken(pipeline);
    Require(time == 0 || taken == first);
    first = taken;
  }
  return 0;
}
