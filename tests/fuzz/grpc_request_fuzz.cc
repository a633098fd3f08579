// The requests of gRPC that ask, create and subscribe, as their services read them: what is refused
// is refused with a reason of one line and a code of the caller's making; what is answered has
// bounds in order, and a stream that is created has the settings that its description says.
//
// The first byte: which call. The rest: the request. There is a stream of every kind
// (stream_kinds.h) with some values, named "a", "b" and so on, and the empty "-".
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/query/query_engine.h"
#include "server/rpc/convert.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_calls.h"
#include "server/rpc/watch_request.h"
#include "tests/fuzz/small_pipeline.h"
#include "tests/fuzz/stream_kinds.h"
#include "tidemark/v1/subscriptions.pb.h"

namespace {

using namespace tidemark::server;
namespace v1 = tidemark::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using tidemark::fuzz::Require;

TestPipeline& Streams() {
  static TestPipeline& made = []() -> TestPipeline& {
    TestPipeline& side = tidemark::fuzz::SmallPipeline();
    char name = 'a';
    for (const StreamSettings& kind : tidemark::fuzz::StreamKinds()) {
      const StreamHandle stream =
          side.pipeline.streams().Create(std::string(1, name++), kind).value();
      // Windows of 16: of all of them some are in the summaries, and some are open.
      for (int i = 0; i < 50; ++i) tidemark::fuzz::AppendValues(stream, i);
    }
    Require(side.pipeline.streams().Create("-", {}).ok());
    return side;
  }();
  return made;
}

QueryEngine::Deadline Deadline() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(20);
}

void CheckRefusal(const absl::Status& status) {
  Require(!status.message().empty());
  Require(status.message().find('\n') == std::string_view::npos);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return;
    default:
      Require(false);
  }
}

double Number(const Message& message, const FieldDescriptor& field) {
  const auto* reflection = message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
    return static_cast<double>(reflection->GetUInt64(message, &field));
  }
  Require(field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE);
  return reflection->GetDouble(message, &field);
}

// Every X_low is at most its X_high, in this message and those in it. Messages as bounds are
// values: of several types, and compared where they are made.
void CheckBounds(const Message& message) {
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) CheckBounds(reflection->GetMessage(message, field));
      for (int i = 0; field->is_repeated() && i < reflection->FieldSize(message, field); ++i) {
        CheckBounds(reflection->GetRepeatedMessage(message, field, i));
      }
      continue;
    }
    constexpr std::string_view kLow = "_low";
    const std::string& name = field->name();
    if (!name.ends_with(kLow)) continue;
    const FieldDescriptor* high = message.GetDescriptor()->FindFieldByName(
        name.substr(0, name.size() - kLow.size()) + "_high");
    Require(high != nullptr);
    Require(!(Number(message, *field) > Number(message, *high)));
  }
}

template <class Request>
bool Parse(std::string_view bytes, Request& request) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  const absl::Status status = ParseRequest(grpc::ByteBuffer(&slice, 1), request);
  if (!status.ok()) CheckRefusal(status);
  return status.ok();
}

template <class Request, class Response>
void Ask(std::string_view bytes) {
  Request request;
  if (!Parse(bytes, request)) return;
  Response response;
  const absl::Status status =
      Answer(QueryEngine(Streams().pipeline), request, Deadline(), response);
  if (!status.ok()) return CheckRefusal(status);
  CheckBounds(response);
  grpc::ByteBuffer written;
  const absl::Status serialized = SerializeMessage(response, QueryEngine::kAnswerBytesMax, written);
  if (!serialized.ok()) CheckRefusal(serialized);
}

// As a Watch does, and as a subscription that is kept does.
absl::Status Watch(const v1::WatchRequest& request) {
  if (absl::Status status = CheckWatchRequest(request).status(); !status.ok()) return status;
  v1::WatchResponse response;
  absl::Status status = AnswerWatch(QueryEngine(Streams().pipeline), request, Deadline(), response);
  if (!status.ok()) return status;
  CheckBounds(response);
  switch (response.answer_case()) {
    case v1::WatchResponse::kQuantiles:
      Require(!Moved(response.quantiles(), response.quantiles(), 0));
      break;
    case v1::WatchResponse::kHeavyHitters:
      Require(!Moved(response.heavy_hitters(), response.heavy_hitters(), 0));
      break;
    case v1::WatchResponse::kHierarchicalHeavyHitters:
      Require(
          !Moved(response.hierarchical_heavy_hitters(), response.hierarchical_heavy_hitters(), 0));
      break;
    case v1::WatchResponse::kSums:
      Require(!Moved(response.sums(), response.sums(), 0));
      break;
    case v1::WatchResponse::ANSWER_NOT_SET:
      Require(false);
  }
  return status;
}

void Watch(std::string_view bytes) {
  v1::WatchRequest request;
  if (!Parse(bytes, request)) return;
  if (const absl::Status status = Watch(request); !status.ok()) CheckRefusal(status);
}

void Subscribe(std::string_view bytes) {
  v1::CreateSubscriptionRequest request;
  if (!Parse(bytes, request)) return;
  if (const absl::Status status = Watch(request.watch()); !status.ok()) return CheckRefusal(status);
  auto& streams = Streams().pipeline.streams();
  const absl::StatusOr<std::uint64_t> made = streams.Subscribe(
      {request.name(), WatchedStream(request.watch()), request.watch().SerializeAsString()});
  if (!made.ok()) return CheckRefusal(made.status());
  const absl::StatusOr<Subscription> kept = streams.FindSubscription(request.name());
  v1::WatchRequest again;
  Require(kept.ok() && again.ParseFromString(kept->request));
  Require(Watch(again).ok());
  Require(streams.Unsubscribe(request.name()).ok());
}

void Create(std::string_view bytes) {
  v1::CreateStreamRequest request;
  if (!Parse(bytes, request)) return;
  auto& streams = Streams().pipeline.streams();
  const absl::StatusOr<StreamSettings> settings = FromProto(request.config(), streams.defaults());
  if (!settings.ok()) return CheckRefusal(settings.status());
  const absl::StatusOr<StreamHandle> stream = streams.Create(request.name(), *settings);
  if (!stream.ok()) return CheckRefusal(stream.status());
  v1::Stream described;
  ToProto(**stream, described);
  const absl::StatusOr<StreamSettings> again = FromProto(described.config(), streams.defaults());
  Require(again.ok());
  StreamSettings expected = (*stream)->settings();
  // Described where it is used.
  if (expected.quantile_form != QuantileKind::kTail) expected.tail_epsilon = again->tail_epsilon;
  Require(*again == expected);
  tidemark::fuzz::AppendValues(*stream, 1);
  ToProto(**stream, described);
  Require(described.name() == request.name());
  Require(streams.Delete(request.name()).ok());
}

using Call = void (*)(std::string_view);
// Their numbers are in the corpus: add at the end.
constexpr Call kCalls[] = {
    Ask<v1::QuantilesRequest, v1::QuantilesResponse>,
    Ask<v1::RanksRequest, v1::RanksResponse>,
    Ask<v1::HistogramRequest, v1::HistogramResponse>,
    Ask<v1::HeavyHittersRequest, v1::HeavyHittersResponse>,
    Ask<v1::CountsRequest, v1::CountsResponse>,
    Ask<v1::HierarchicalHeavyHittersRequest, v1::HierarchicalHeavyHittersResponse>,
    Ask<v1::SumsRequest, v1::SumsResponse>,
    Ask<v1::SpreadRequest, v1::SpreadResponse>,
    Ask<v1::CompareRequest, v1::CompareResponse>,
    Watch,
    Create,
    Subscribe,
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A line for every text that is no UTF-8 would be all that one sees.
  static const auto quiet = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(quiet);
  if (size == 0) return 0;
  kCalls[data[0] % std::size(kCalls)]({reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
