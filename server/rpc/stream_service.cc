#include "server/rpc/stream_service.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "server/query/query_engine.h"
#include "server/rpc/access_rules.h"
#include "server/rpc/convert.h"
#include "server/rpc/durable.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/unary_call.h"
#include "server/window/concat.h"
#include "server/window/stream_log.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

constexpr std::uint32_t kPageMax = 1000;
// Streams looked at in one go where not every one is seen: a page of one, far behind, would ask for
// them one by one.
constexpr std::size_t kLookedAt = 1000;
// A page ends early at so many bytes: a thousand of the longest names that can be configured would
// be more than a message.
constexpr std::size_t kPageBytesMax = QueryEngine::kAnswerBytesMax / 4;

void AddRoutes(const std::optional<sort::RouteStats>& routes, v1::SorterInfo& sorter) {
  if (!routes) return;
  for (const sort::RouteStats::Rate& rate : routes->rates) {
    v1::ObservedRate* row = sorter.add_observed();
    row->set_sorter(std::string(rate.sorter));
    row->set_key_bits(static_cast<std::uint32_t>(rate.key_bits));
    row->set_window(rate.window);
    row->set_keys_per_second(rate.keys_per_second);
    row->set_requests(rate.requests);
  }
  for (const sort::RouteStats::Count& count : routes->counts) {
    v1::RouteCount* row = sorter.add_routes();
    row->set_sorter(std::string(count.sorter));
    row->set_reason(std::string(count.reason));
    row->set_requests(count.requests);
  }
}

// The first `count` streams behind `after` that the caller sees. A name that is not seen is not in
// the answer by way of a page's token either, so that a page does not end before it is full.
// Errors: DEADLINE_EXCEEDED.
absl::StatusOr<std::vector<StreamHandle>> ListSeen(Pipeline& pipeline, Caller& caller,
                                                   const std::string& after,
                                                   const std::string& prefix, std::size_t count,
                                                   QueryEngine::Deadline deadline) {
  if (!caller.guarded()) return pipeline.streams().List(after, prefix, count);
  const std::size_t at_once = std::max(count, kLookedAt);
  std::vector<StreamHandle> seen;
  std::vector<StreamHandle> more = pipeline.streams().List(after, prefix, at_once);
  while (!more.empty()) {
    for (StreamHandle& stream : more) {
      if (caller.Sees(stream->name())) seen.push_back(stream);
      if (seen.size() == count) return seen;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return absl::DeadlineExceededError("the deadline passed before all streams were looked at");
    }
    const std::string last = more.back()->name();
    more = pipeline.streams().List(last, prefix, at_once);
  }
  return seen;
}

absl::Status ListPage(Pipeline& pipeline, Caller& caller, const v1::ListStreamsRequest& request,
                      QueryEngine::Deadline deadline, v1::ListStreamsResponse& response) {
  const std::uint32_t asked = request.page_size();
  const std::size_t page = asked == 0 ? kPageMax : std::min(asked, kPageMax);
  // One more than the page tells whether there is a next one.
  absl::StatusOr<std::vector<StreamHandle>> streams =
      ListSeen(pipeline, caller, request.page_token(), request.prefix(), page + 1, deadline);
  if (!streams.ok()) return streams.status();
  if (streams->size() > page) {
    streams->pop_back();
    response.set_next_page_token(streams->back()->name());
  }
  std::size_t bytes = 0;
  for (const StreamHandle& stream : *streams) {
    if (bytes > kPageBytesMax) {
      const v1::Stream& last = response.streams(response.streams_size() - 1);
      response.set_next_page_token(last.name());
      break;
    }
    ToProto(*stream, *response.add_streams());
    bytes += response.streams(response.streams_size() - 1).ByteSizeLong();
  }
  return absl::OkStatus();
}

}  // namespace

template <class Request, class Response>
grpc::ServerUnaryReactor* StreamServiceImpl::Run(grpc::CallbackServerContext* context,
                                                 std::string_view method, Where where,
                                                 const grpc::ByteBuffer& request_bytes,
                                                 grpc::ByteBuffer& response_bytes,
                                                 const auto& answer) {
  const auto request = std::make_shared<Request>();
  const auto caller = std::make_shared<Caller>(CallerOf(calls_.guard(), *context));
  const absl::Status parsed = ParseAllowed(*caller, request_bytes, *request);
  return calls_.Run({context, *caller, HeldBytes(request_bytes, *request), response_bytes, method},
                    parsed, where == Where::kHere,
                    [request, caller, answer,
                     &response_bytes](QueryEngine::Deadline deadline) -> PostedCalls::Outcome {
                      Response response;
                      PostedCalls::Outcome outcome = answer(*caller, *request, deadline, response);
                      if (outcome.status.ok()) {
                        outcome.status = SerializeMessage(response, QueryEngine::kAnswerBytesMax,
                                                          response_bytes);
                      }
                      return outcome;
                    });
}

grpc::ServerUnaryReactor* StreamServiceImpl::CreateStream(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request_bytes,
                                                          grpc::ByteBuffer* response_bytes) {
  return Run<v1::CreateStreamRequest, v1::CreateStreamResponse>(
      context, "create_stream", Where::kHere, *request_bytes, *response_bytes,
      [this](Caller& /*caller*/, const v1::CreateStreamRequest& request,
             QueryEngine::Deadline /*deadline*/,
             v1::CreateStreamResponse& response) -> PostedCalls::Outcome {
        const absl::StatusOr<StreamSettings> settings =
            FromProto(request.config(), pipeline_.streams().defaults());
        if (!settings.ok()) return settings.status();
        const absl::StatusOr<StreamHandle> stream =
            pipeline_.streams().Create(request.name(), *settings);
        const std::string what = Concat("stream \"", Printable(request.name()), "\"");
        if (!stream.ok()) return RefusedOnceDurable(pipeline_, stream.status(), what);
        ToProto(**stream, *response.mutable_stream());
        return {absl::OkStatus(), UntilDurable(pipeline_, what)};
      });
}

grpc::ServerUnaryReactor* StreamServiceImpl::ListStreams(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request_bytes,
                                                         grpc::ByteBuffer* response_bytes) {
  return Run<v1::ListStreamsRequest, v1::ListStreamsResponse>(
      context, "list_streams", Where::kOnExecutor, *request_bytes, *response_bytes,
      [this](Caller& caller, const v1::ListStreamsRequest& request, QueryEngine::Deadline deadline,
             v1::ListStreamsResponse& response) -> PostedCalls::Outcome {
        return ListPage(pipeline_, caller, request, deadline, response);
      });
}

grpc::ServerUnaryReactor* StreamServiceImpl::DescribeStream(grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request_bytes,
                                                            grpc::ByteBuffer* response_bytes) {
  return Run<v1::DescribeStreamRequest, v1::DescribeStreamResponse>(
      context, "describe_stream", Where::kHere, *request_bytes, *response_bytes,
      [this](Caller& /*caller*/, const v1::DescribeStreamRequest& request,
             QueryEngine::Deadline /*deadline*/,
             v1::DescribeStreamResponse& response) -> PostedCalls::Outcome {
        const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(request.name());
        if (stream.ok()) ToProto(**stream, *response.mutable_stream());
        return stream.status();
      });
}

grpc::ServerUnaryReactor* StreamServiceImpl::DeleteStream(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request_bytes,
                                                          grpc::ByteBuffer* response_bytes) {
  return Run<v1::DeleteStreamRequest, v1::DeleteStreamResponse>(
      context, "delete_stream", Where::kHere, *request_bytes, *response_bytes,
      [this](Caller& /*caller*/, const v1::DeleteStreamRequest& request,
             QueryEngine::Deadline /*deadline*/,
             v1::DeleteStreamResponse& /*response*/) -> PostedCalls::Outcome {
        const std::string what = Concat("stream \"", Printable(request.name()), "\"");
        const absl::Status deleted = pipeline_.streams().Delete(request.name());
        if (!deleted.ok()) return RefusedOnceDurable(pipeline_, deleted, what);
        return {absl::OkStatus(), UntilDurable(pipeline_, what)};
      });
}

grpc::ServerUnaryReactor* InfoServiceImpl::GetInfo(grpc::CallbackServerContext* context,
                                                   const v1::GetInfoRequest* request,
                                                   v1::GetInfoResponse* response) {
  Caller caller = CallerOf(guard_, *context);
  auto* const reactor = new UnaryCall;  // deletes itself
  absl::Status status = MayCall(caller, *request->GetDescriptor());
  if (status.ok()) status = reactor->Take(caller, request->SpaceUsedLong());
  if (!status.ok()) {
    reactor->Finish(ToGrpc(status));
    return reactor;
  }
  const sort::SorterReport& report = pipeline_.sorter_report();
  v1::SorterInfo* sorter = response->mutable_sorter();
  sorter->set_requested(report.requested);
  const SorterInUse in_use = pipeline_.sorter_in_use();
  sorter->set_active(in_use.active);
  sorter->set_reason(in_use.reason);
  v1::GlInfo* gl = sorter->mutable_gl();
  gl->set_available(report.gl.available);
  gl->set_error(report.gl.error);
  gl->set_vendor(report.gl.vendor);
  gl->set_renderer(report.gl.renderer);
  gl->set_version(report.gl.version);
  gl->set_software(report.gl.software);
  for (const sort::SorterMeasurement& measured : report.measurements) {
    v1::SorterMeasurement* row = sorter->add_measurements();
    row->set_key_bits(static_cast<std::uint32_t>(measured.key_bits));
    row->set_window(measured.window);
    row->set_sorter(measured.sorter);
    row->set_algorithm(measured.algorithm);
    row->set_keys_per_second(measured.keys_per_second);
    row->set_chosen(measured.chosen);
  }
  sorter->set_measured_at_us(report.measured_at_us);
  sorter->set_cached(report.cached);
  AddRoutes(pipeline_.routes(), *sorter);
  response->set_streams(pipeline_.streams().size());
  response->set_values(pipeline_.values());
  fill_(*response);
  reactor->ForceAnswer(response->ByteSizeLong());
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace tidemark::server
