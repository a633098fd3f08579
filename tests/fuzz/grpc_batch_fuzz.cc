// The batches of gRPC ingest, as a sequence of PushAcknowledgedRequest messages, each behind its
// length. A batch is taken in whole, with every value counted as accepted or refused, or refused
// whole with a reason; numbers written value by value and the same numbers packed make the same
// streams, to the bit of their summaries.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/rpc/batch_reader.h"
#include "tests/support/pipeline_fixture.h"

namespace {

using namespace tidemark::server;
namespace v1 = tidemark::v1;

// Batches of one input; more find nothing new.
constexpr int kBatchesMax = 64;
// So that short inputs exceed it too.
constexpr std::uint64_t kBatchBytesMax = 256;
// The batch id that stands for: somebody deletes every stream before this batch.
constexpr std::uint64_t kDeleteStreams = 7;

void Require(bool property) {
  if (!property) std::abort();
}

PipelineOptions Options() {
  PipelineOptions options;
  // Small windows and few streams, so that short inputs fill them.
  options.window_limits = {.min = 4, .max = 16};
  options.registry_limits = {.streams_max = 4, .name_bytes_max = 64};
  options.item_bytes_max = 32;
  return options;
}

// Made once, for their threads and metrics cost more than reading a batch.
TestPipeline& Written() {
  static auto* const pipeline = new TestPipeline(Options());
  return *pipeline;
}
TestPipeline& Packed() {
  static auto* const pipeline = new TestPipeline(Options());
  return *pipeline;
}

template <class Values>
std::string Bytes(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()),
          static_cast<std::size_t>(values.size()) * sizeof(*values.data())};
}

// The batch with its numbers packed; as it is if they are, if there are none, or if it contradicts
// itself.
v1::Batch Pack(const v1::Batch& batch) {
  v1::ValueType type = v1::VALUE_TYPE_UNSPECIFIED;
  std::string bytes;
  switch (batch.values_case()) {
    case v1::Batch::kFloat64:
      type = v1::VALUE_TYPE_FLOAT64;
      bytes = Bytes(batch.float64().values());
      break;
    case v1::Batch::kFloat32:
      type = v1::VALUE_TYPE_FLOAT32;
      bytes = Bytes(batch.float32().values());
      break;
    case v1::Batch::kInt64:
      type = v1::VALUE_TYPE_INT64;
      bytes = Bytes(batch.int64().values());
      break;
    case v1::Batch::kUint64:
      type = v1::VALUE_TYPE_UINT64;
      bytes = Bytes(batch.uint64().values());
      break;
    case v1::Batch::kUint32:
      type = v1::VALUE_TYPE_UINT32;
      bytes = Bytes(batch.uint32().values());
      break;
    case v1::Batch::kIpv4:
      type = v1::VALUE_TYPE_IPV4;
      bytes = Bytes(batch.ipv4().values());
      break;
    case v1::Batch::kString:
    case v1::Batch::kPacked:
    case v1::Batch::VALUES_NOT_SET:
      return batch;
  }
  if (batch.type() != v1::VALUE_TYPE_UNSPECIFIED && batch.type() != type) return batch;
  v1::Batch packed;
  packed.set_stream(batch.stream());
  packed.set_type(type);
  packed.set_packed(bytes);
  if (batch.has_weights()) *packed.mutable_weights() = batch.weights();
  if (batch.has_y()) *packed.mutable_y() = batch.y();
  packed.set_producer(batch.producer());
  packed.set_number(batch.number());
  return packed;
}

// Values that a batch with a type of its own holds; nullopt for packed bytes.
std::optional<std::uint64_t> ValuesOf(const v1::Batch& batch) {
  switch (batch.values_case()) {
    case v1::Batch::kFloat64:
      return static_cast<std::uint64_t>(batch.float64().values_size());
    case v1::Batch::kFloat32:
      return static_cast<std::uint64_t>(batch.float32().values_size());
    case v1::Batch::kInt64:
      return static_cast<std::uint64_t>(batch.int64().values_size());
    case v1::Batch::kUint64:
      return static_cast<std::uint64_t>(batch.uint64().values_size());
    case v1::Batch::kUint32:
      return static_cast<std::uint64_t>(batch.uint32().values_size());
    case v1::Batch::kIpv4:
      return static_cast<std::uint64_t>(batch.ipv4().values_size());
    case v1::Batch::kString:
      return static_cast<std::uint64_t>(batch.string().values_size());
    case v1::Batch::kPacked:
    case v1::Batch::VALUES_NOT_SET:
      break;
  }
  return std::nullopt;
}

struct Totals {
  std::uint64_t count = 0;
  std::uint64_t refused = 0;
};

Totals TotalsOf(TestPipeline& side) {
  Totals totals;
  for (const StreamHandle& stream : side.pipeline.streams().All()) {
    const StreamStats stats = stream->Stats();
    totals.count += stats.count;
    totals.refused += stats.refused;
  }
  return totals;
}

void DeleteStreams(TestPipeline& side) {
  for (const StreamHandle& stream : side.pipeline.streams().All()) {
    Require(side.pipeline.streams().Delete(stream->name()).ok());
  }
}

AppendResult Append(TestPipeline& side, BatchReader& reader, const v1::Batch& batch,
                    RecordedTime time) {
  const Totals before = TotalsOf(side);
  AppendResult result = reader.Append(batch, time);
  const Totals after = TotalsOf(side);
  if (result.duplicate) {  // of a batch with other values, perhaps
    Require(result.status.ok() && after.count == before.count && after.refused == before.refused);
    return result;
  }
  Require(after.count - before.count == result.accepted);
  Require(after.refused - before.refused == result.refused);
  if (!result.status.ok()) {
    Require(result.accepted == 0 && result.refused == 0 && !result.status.message().empty());
    for (const char c : result.status.message()) Require(c != '\n');
  } else if (const auto values = ValuesOf(batch)) {
    Require(result.accepted + result.refused == *values);
  } else {
    const std::uint64_t count = result.accepted + result.refused, bytes = batch.packed().size();
    Require(count * 4 == bytes || count * 8 == bytes || count * 16 == bytes);
  }
  return result;
}

void RequireEqualStreams() {
  const std::vector<StreamHandle> written = Written().pipeline.streams().All();
  const std::vector<StreamHandle> packed = Packed().pipeline.streams().All();
  Require(written.size() == packed.size());
  for (std::size_t i = 0; i < written.size(); ++i) {
    Require(written[i]->name() == packed[i]->name());
    Require(written[i]->settings() == packed[i]->settings());
    Require(written[i]->SerializeSummaries() == packed[i]->SerializeSummaries());
    const StreamStats a = written[i]->Stats(), b = packed[i]->Stats();
    Require(a.count == b.count && a.refused == b.refused && a.window_fill == b.window_fill);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A line for every text that is no UTF-8 would be all that one sees.
  static const auto quiet = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(quiet);
  TestPipeline& written = Written();
  TestPipeline& packed = Packed();
  BatchReader written_reader(written.pipeline, written.metrics, kBatchBytesMax);
  BatchReader packed_reader(packed.pipeline, packed.metrics, kBatchBytesMax);
  google::protobuf::io::ArrayInputStream input(data, static_cast<int>(size));
  v1::PushAcknowledgedRequest request;
  for (int i = 0; i < kBatchesMax; ++i) {
    request.Clear();
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&request, &input, nullptr)) break;
    if (request.batch_id() == kDeleteStreams) {
      DeleteStreams(written);
      DeleteStreams(packed);
    }
    const RecordedTime time = i * 10'000;
    const AppendResult a = Append(written, written_reader, request.batch(), time);
    const AppendResult b = Append(packed, packed_reader, Pack(request.batch()), time);
    Require(a.status.code() == b.status.code() && a.accepted == b.accepted &&
            a.refused == b.refused && a.duplicate == b.duplicate);
  }
  RequireEqualStreams();
  DeleteStreams(written);
  DeleteStreams(packed);
  return 0;
}
