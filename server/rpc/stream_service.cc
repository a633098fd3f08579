#include "server/rpc/stream_service.h"

#include <algorithm>

#include "server/rpc/convert.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

constexpr std::uint32_t kPageMax = 1000;

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, Metrics& metrics,
                                 std::string_view method, const absl::Status& status) {
  if (!status.ok()) {
    metrics.QueryErrors(method, absl::StatusCodeToString(status.code())).Increment();
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

grpc::ServerUnaryReactor* StreamServiceImpl::CreateStream(grpc::CallbackServerContext* context,
                                                          const v1::CreateStreamRequest* request,
                                                          v1::CreateStreamResponse* response) {
  const absl::StatusOr<StreamSettings> settings =
      FromProto(request->config(), pipeline_.streams().defaults());
  absl::Status status = settings.status();
  if (settings.ok()) {
    const absl::StatusOr<StreamHandle> stream =
        pipeline_.streams().Create(request->name(), *settings);
    status = stream.status();
    if (stream.ok()) ToProto(**stream, *response->mutable_stream());
  }
  return Finish(context, metrics_, "create_stream", status);
}

grpc::ServerUnaryReactor* StreamServiceImpl::ListStreams(grpc::CallbackServerContext* context,
                                                         const v1::ListStreamsRequest* request,
                                                         v1::ListStreamsResponse* response) {
  const std::uint32_t asked = request->page_size();
  const std::size_t page = asked == 0 ? kPageMax : std::min(asked, kPageMax);
  // One more than the page tells whether there is a next one.
  std::vector<StreamHandle> streams =
      pipeline_.streams().List(request->page_token(), request->prefix(), page + 1);
  if (streams.size() > page) {
    streams.pop_back();
    response->set_next_page_token(streams.back()->name());
  }
  for (const StreamHandle& stream : streams) ToProto(*stream, *response->add_streams());
  return Finish(context, metrics_, "list_streams", absl::OkStatus());
}

grpc::ServerUnaryReactor* StreamServiceImpl::DescribeStream(
    grpc::CallbackServerContext* context, const v1::DescribeStreamRequest* request,
    v1::DescribeStreamResponse* response) {
  const absl::StatusOr<StreamHandle> stream = pipeline_.streams().Find(request->name());
  if (stream.ok()) ToProto(**stream, *response->mutable_stream());
  return Finish(context, metrics_, "describe_stream", stream.status());
}

grpc::ServerUnaryReactor* StreamServiceImpl::DeleteStream(grpc::CallbackServerContext* context,
                                                          const v1::DeleteStreamRequest* request,
                                                          v1::DeleteStreamResponse* /*response*/) {
  return Finish(context, metrics_, "delete_stream", pipeline_.streams().Delete(request->name()));
}

grpc::ServerUnaryReactor* InfoServiceImpl::GetInfo(grpc::CallbackServerContext* context,
                                                   const v1::GetInfoRequest* /*request*/,
                                                   v1::GetInfoResponse* response) {
  const sort::SorterReport& report = pipeline_.sorter_report();
  v1::SorterInfo* sorter = response->mutable_sorter();
  sorter->set_requested(report.requested);
  const sort::WindowSorter& in_use = pipeline_.sorter();
  if (in_use.failures() > 0) {
    sorter->set_active("cpu");
    sorter->set_reason(
        Concat("cpu since a failure of ", report.active, ": ", in_use.last_failure()));
  } else {
    sorter->set_active(report.active);
    sorter->set_reason(report.reason);
  }
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
  response->set_streams(pipeline_.streams().size());
  response->set_values(pipeline_.values());
  fill_(*response);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace tidemark::server
