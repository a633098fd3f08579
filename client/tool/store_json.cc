#include "client/tool/store_json.h"

#include <cstring>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/value.h"
#include "server/durability/definition.h"
#include "server/window/stream_log.h"

namespace tidemark::tool {
namespace {

using client::Value;

constexpr std::string_view kNextStream = "next stream";

std::string_view TypeNameOf(std::uint8_t type) {
  return client::TypeName(static_cast<client::ValueType>(type));
}

std::string_view PayloadName(std::uint8_t payload) {
  switch (static_cast<client::PayloadType>(payload)) {
    case client::PayloadType::kNone:
      return "none";
    case client::PayloadType::kWeight:
      return "weight";
    case client::PayloadType::kY:
      return "y";
  }
  return "unknown";
}

std::string_view FormNameOf(std::uint8_t form) {
  switch (static_cast<server::BatchForm>(form)) {
    case server::BatchForm::kPacked:
      return "packed";
    case server::BatchForm::kNumbers:
      return "numbers";
    case server::BatchForm::kTexts:
      return "texts";
  }
  return "unknown";
}

template <typename Number>
Number Load(std::string_view bytes, std::size_t index) {
  Number number;
  std::memcpy(&number, bytes.data() + index * sizeof number, sizeof number);
  return number;
}

// Value `index` of a batch of packed values.
Value PackedValue(std::uint8_t type, std::string_view bytes, std::size_t index) {
  switch (static_cast<client::ValueType>(type)) {
    case client::ValueType::kFloat64:
      return {Load<double>(bytes, index)};
    case client::ValueType::kFloat32:
      return {Load<float>(bytes, index)};
    case client::ValueType::kInt64:
      return {Load<std::int64_t>(bytes, index)};
    case client::ValueType::kUint64:
      return {Load<std::uint64_t>(bytes, index)};
    case client::ValueType::kUint32:
      return {Load<std::uint32_t>(bytes, index)};
    case client::ValueType::kIpv4:
      return {Load<client::Ipv4>(bytes, index)};
    default:
      return {Load<client::Ipv6>(bytes, index)};
  }
}

Json ValuesToJson(const store::Batch& batch) {
  Json values = Json::array();
  if (batch.value_bytes == 0) {
    for (const std::string_view text : store::BatchTexts(batch)) {
      values.push_back(ToJson(Value{std::string(text)}));
    }
    return values;
  }
  const bool numbers = static_cast<server::BatchForm>(batch.form) == server::BatchForm::kNumbers;
  const auto type =
      numbers ? static_cast<std::uint8_t>(client::ValueType::kFloat64) : batch.value_type;
  // Of a type that this program does not know, or that has other bytes.
  if (client::PackedBytes(static_cast<client::ValueType>(type)) != batch.value_bytes) return values;
  for (std::size_t i = 0; i < batch.count; ++i) {
    values.push_back(ToJson(PackedValue(type, batch.values, i)));
  }
  return values;
}

Json PayloadsToJson(const store::Batch& batch) {
  Json payloads = Json::array();
  const bool weights =
      static_cast<client::PayloadType>(batch.payload_type) == client::PayloadType::kWeight;
  for (std::size_t i = 0; i < batch.payloads.size() / sizeof(std::uint64_t); ++i) {
    payloads.push_back(weights ? IntegerToJson(Load<std::uint64_t>(batch.payloads, i))
                               : ToJson(Load<double>(batch.payloads, i)));
  }
  return payloads;
}

void AddBatch(const store::Batch& batch, bool values, Json& out) {
  out["id"] = IntegerToJson(batch.stream_id);
  out["time_us"] = batch.recorded_time_us < 0
                       ? Json(batch.recorded_time_us)
                       : IntegerToJson(static_cast<std::uint64_t>(batch.recorded_time_us));
  if (batch.producer != store::ProducerSequence{}) {
    out["producer"] = absl::StrCat(absl::Hex(batch.producer.producer[0], absl::kZeroPad16),
                                   absl::Hex(batch.producer.producer[1], absl::kZeroPad16));
    out["producer_sequence"] = IntegerToJson(batch.producer.sequence);
  }
  out["type"] = TypeNameOf(batch.value_type);
  if (batch.payload_type != 0) out["payload"] = PayloadName(batch.payload_type);
  out["form"] = FormNameOf(batch.form);
  out["count"] = batch.count;
  out["bytes"] = batch.values.size() + batch.payloads.size();
  if (!values) return;
  out["values"] = ValuesToJson(batch);
  if (batch.payload_type != 0) out["payloads"] = PayloadsToJson(batch);
}

void AddEntry(const store::LogEntry& entry, bool values, Json& out) {
  if (const auto* created = std::get_if<store::StreamCreated>(&entry)) {
    out["kind"] = "stream_created";
    out["id"] = IntegerToJson(created->stream_id);
    out["definition"] = DefinitionToJson(created->definition);
  } else if (const auto* deleted = std::get_if<store::StreamDeleted>(&entry)) {
    out["kind"] = "stream_deleted";
    out["id"] = IntegerToJson(deleted->stream_id);
  } else if (const auto* part = std::get_if<store::StatePart>(&entry)) {
    out["kind"] = "state_part";
    out["bytes"] = part->bytes.size();
  } else if (const auto* made = std::get_if<store::StreamFromState>(&entry)) {
    out["kind"] = "stream_from_state";
    out["id"] = IntegerToJson(made->stream_id);
    out["definition"] = DefinitionToJson(made->definition);
    out["state_bytes"] = IntegerToJson(made->state_bytes);
  } else if (const auto* kept = std::get_if<store::Subscribed>(&entry)) {
    out["kind"] = "subscribed";
    out["id"] = IntegerToJson(kept->stream_id);
    out["name"] = std::string(kept->name);
    out["request_bytes"] = kept->request.size();
  } else if (const auto* ended = std::get_if<store::Unsubscribed>(&entry)) {
    out["kind"] = "unsubscribed";
    out["id"] = IntegerToJson(ended->stream_id);
    out["name"] = std::string(ended->name);
  } else {
    out["kind"] = "batch";
    AddBatch(std::get<store::Batch>(entry), values, out);
  }
}

const char* UseName(store::SegmentUse use) {
  switch (use) {
    case store::SegmentUse::kLog:
      return "log";
    case store::SegmentUse::kOlder:
      return "covered";
    case store::SegmentUse::kNone:
      break;
  }
  return "none";
}

}  // namespace

Json DefinitionToJson(std::string_view bytes) {
  const absl::StatusOr<server::Definition> definition = server::DecodeDefinition(bytes);
  if (!definition.ok()) return {{"error", std::string(definition.status().message())}};
  const server::StreamSettings& settings = definition->settings;
  Json out = {{"name", definition->name},
              {"type", TypeNameOf(static_cast<std::uint8_t>(settings.type))}};
  if (server::HasRanks(settings.type)) {
    out["quantile_form"] = server::QuantileKindName(settings.quantile_form);
    out["quantile_epsilon"] = ToJson(settings.quantile_epsilon);
    if (settings.quantile_form == server::QuantileKind::kTail) {
      out["tail_epsilon"] = ToJson(settings.tail_epsilon);
    }
  }
  out["frequencies"] = settings.frequencies;
  out["frequency_epsilon"] = ToJson(settings.frequency_epsilon);
  if (settings.payload != server::PayloadType::kNone) {
    out["payload"] = PayloadName(static_cast<std::uint8_t>(settings.payload));
  }
  if (settings.sums) out["sums"] = true;
  if (!settings.hierarchy.prefix_lengths.empty()) {
    out["prefix_lengths"] = settings.hierarchy.prefix_lengths;
  }
  if (settings.hierarchy.depth != 0) {
    out["separator"] = std::string(1, settings.hierarchy.separator);
    out["depth"] = settings.hierarchy.depth;
    out["root_last"] = settings.hierarchy.root_last;
  }
  if (settings.sliding.values_max != 0 || settings.sliding.time_max_us != 0) {
    out["sliding"] = {{"max_values", IntegerToJson(settings.sliding.values_max)},
                      {"max_time_s", static_cast<double>(settings.sliding.time_max_us) / 1e6},
                      {"epsilon", ToJson(settings.sliding.epsilon)}};
  }
  return out;
}

Json ToJson(const store::SnapshotInfo& snapshot) {
  Json out = {{"kind", "snapshot"},
              {"number", IntegerToJson(snapshot.header.number)},
              {"bytes", IntegerToJson(snapshot.bytes)},
              {"log_position", IntegerToJson(snapshot.header.log_position)},
              {"streams", IntegerToJson(snapshot.blobs == 0 ? 0 : snapshot.blobs - 1)}};
  if (!snapshot.status.ok()) out["fault"] = std::string(snapshot.status.message());
  return out;
}

Json BlobToJson(const store::SnapshotInfo& snapshot, std::string_view name, std::string_view blob) {
  const Json number = IntegerToJson(snapshot.header.number);
  if (name == kNextStream && blob.size() == sizeof(std::uint64_t)) {
    return {{"kind", "next_stream"},
            {"snapshot", number},
            {"id", IntegerToJson(store::GetU64(blob, 0))}};
  }
  Json out = {{"kind", "stream"}, {"snapshot", number}, {"id", std::string(name)}};
  constexpr std::size_t kLength = sizeof(std::uint32_t);
  if (blob.size() < kLength || blob.size() - kLength < store::GetU32(blob, 0)) {
    out["error"] = absl::StrCat("a blob of ", blob.size(), " bytes is no stream");
    return out;
  }
  const std::uint32_t length = store::GetU32(blob, 0);
  out["definition"] = DefinitionToJson(blob.substr(kLength, length));
  out["image_bytes"] = blob.size() - kLength - length;
  return out;
}

Json RecordToJson(std::uint64_t segment, std::uint64_t offset, const store::RecordHeader& header,
                  std::string_view body, bool values) {
  Json out = {{"kind", "mark"},
              {"segment", IntegerToJson(segment)},
              {"offset", IntegerToJson(offset)},
              {"sequence", IntegerToJson(header.sequence)},
              {"synced", IntegerToJson(header.durable_sequence)}};
  if (header.kind == store::RecordKind::kMark) return out;
  const absl::StatusOr<store::LogEntry> entry = store::DecodeEntry(header.kind, body);
  if (entry.ok()) {
    AddEntry(*entry, values, out);
  } else {
    out["kind"] = "unknown";
    out["error"] = std::string(entry.status().message());
  }
  return out;
}

Json ToJson(const store::StoreReport& report) {
  Json snapshots = Json::array();
  for (const store::SnapshotInfo& snapshot : report.snapshots) {
    Json& one = snapshots.emplace_back(ToJson(snapshot));
    one.erase("kind");
  }
  Json segments = Json::array();
  for (const store::SegmentReport& segment : report.segments) {
    Json& one =
        segments.emplace_back(Json{{"number", IntegerToJson(segment.check.number)},
                                   {"use", UseName(segment.use)},
                                   {"bytes", IntegerToJson(segment.check.file_bytes)},
                                   {"whole_bytes", IntegerToJson(segment.check.whole_bytes)},
                                   {"first", IntegerToJson(segment.check.first_sequence)},
                                   {"last", IntegerToJson(segment.check.last_sequence)}});
    if (!segment.check.status.ok()) one["fault"] = std::string(segment.check.status.message());
  }
  return {{"ok", report.ok()},
          {"snapshots", std::move(snapshots)},
          {"segments", std::move(segments)},
          {"other_files", report.others},
          {"last_record", IntegerToJson(report.last_sequence)},
          {"faults", report.faults},
          {"lost", report.lost},
          {"repair", report.actions},
          {"notes", report.notes}};
}

}  // namespace tidemark::tool
