#include "server/rpc/summary_service.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/rpc/access_rules.h"
#include "server/rpc/convert.h"
#include "server/rpc/durable.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/summary_file.h"
#include "server/window/concat.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

// Makes the new stream and describes it, once that is durable.
template <class Response>
PostedCalls::Outcome Create(Pipeline& pipeline, const std::string& name, StreamState state,
                            grpc::ByteBuffer& response_bytes) {
  const absl::StatusOr<StreamHandle> stream = pipeline.streams().Restore(name, std::move(state));
  const std::string what = Concat("stream \"", Printable(name), "\"");
  if (!stream.ok()) return RefusedOnceDurable(pipeline, stream.status(), what);
  Response response;
  ToProto(**stream, *response.mutable_stream());
  return {SerializeMessage(response, QueryEngine::kAnswerBytesMax, response_bytes),
          UntilDurable(pipeline, (*stream)->last_logged(), what)};
}

// A call keeps a thread of the executor busy for some milliseconds a part.
constexpr int kPartsMax = 1000;

absl::Status CheckParts(int count, const char* what) {
  if (count >= 1 && count <= kPartsMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(count, " ", what, " to be merged; expected 1 to ", kPartsMax));
}

// `state_of(i)` for i below count, merged. `what` names them.
absl::StatusOr<StreamState> MergeAll(int count, const char* what, QueryEngine::Deadline deadline,
                                     const auto& state_of) {
  absl::StatusOr<StreamState> merged = state_of(0);
  for (int i = 1; i < count && merged.ok(); ++i) {
    if (std::chrono::steady_clock::now() > deadline) {
      return absl::DeadlineExceededError(
          Concat("the deadline passed when ", i, " of ", count, " ", what, " were merged"));
    }
    const absl::StatusOr<StreamState> next = state_of(i);
    if (!next.ok()) return next.status();
    if (absl::Status status = MergeInto(*merged, *next); !status.ok()) return status;
  }
  return merged;
}

absl::Status Prefix(std::string_view what, const absl::Status& status) {
  return absl::Status(status.code(), Concat(what, ": ", std::string(status.message())));
}

}  // namespace

grpc::ServerUnaryReactor* SummaryServiceImpl::ExportStream(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request_bytes,
                                                           grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::ExportStreamRequest>();
  Caller caller = CallerOf(calls_.guard(), *context);
  absl::Status parsed = ParseAllowed(caller, *request_bytes, *request);
  return calls_.Run(
      {context, caller, HeldBytes(*request_bytes, *request), *response_bytes, "export_stream"},
      parsed, false,
      [this, request, response_bytes](QueryEngine::Deadline deadline) -> absl::Status {
        const absl::StatusOr<StreamState> state = engine_.State(request->stream(), deadline);
        if (!state.ok()) return state.status();
        v1::ExportStreamResponse response;
        WriteSummaryFile(request->stream(), *state, *response.mutable_file());
        return SerializeMessage(response, kExportBytesMax, *response_bytes);
      });
}

// Room for the bytes of an import until the last copy of what it gives is gone; null if there is
// none.
std::shared_ptr<void> SummaryServiceImpl::Hold(std::size_t bytes) {
  if (held_.fetch_add(bytes) + bytes > kImportsHeldMax) {
    held_.fetch_sub(bytes);
    return nullptr;
  }
  return {this, [this, bytes](void*) { held_.fetch_sub(bytes); }};
}

grpc::ServerUnaryReactor* SummaryServiceImpl::ImportStream(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request_bytes,
                                                           grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::ImportStreamRequest>();
  Caller caller = CallerOf(calls_.guard(), *context);
  absl::Status parsed = MayCall(caller, *request->GetDescriptor());
  const std::shared_ptr<void> held = parsed.ok() ? Hold(request_bytes->Length()) : nullptr;
  if (parsed.ok()) {
    parsed = held
                 ? ParseMessage(*request_bytes, *request)
                 : RetryLater(absl::ResourceExhaustedError(Concat(
                       "imports that wait hold more than ", kImportsHeldMax, " bytes; try again")));
  }
  if (parsed.ok()) parsed = MayAsk(caller, *request);
  if (parsed.ok()) parsed = CheckParts(request->files_size(), "files");
  return calls_.Run(
      {context, caller, HeldBytes(*request_bytes, *request), *response_bytes, "import_stream"},
      parsed, false,
      [this, request, held,
       response_bytes](QueryEngine::Deadline deadline) -> PostedCalls::Outcome {
        absl::StatusOr<StreamState> state = MergeAll(
            request->files_size(), "files", deadline, [&](int i) -> absl::StatusOr<StreamState> {
              absl::StatusOr<StreamState> one = ReadSummaryFile(request->files(i));
              if (one.ok()) return one;
              return Prefix(Concat("file ", i + 1, " of ", request->files_size()), one.status());
            });
        if (!state.ok()) return state.status();
        PostedCalls::Outcome outcome = Create<v1::ImportStreamResponse>(
            pipeline_, request->stream(), *std::move(state), *response_bytes);
        if (outcome.wait) {
          // gRPC keeps the request's bytes until the call is over.
          outcome.wait = [wait = std::move(outcome.wait), held](QueryEngine::Deadline until,
                                                                PostedCalls::Done done) {
            wait(until,
                 [done = std::move(done), held](const absl::Status& status) { done(status); });
          };
        }
        return outcome;
      });
}

grpc::ServerUnaryReactor* SummaryServiceImpl::MergeStreams(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* request_bytes,
                                                           grpc::ByteBuffer* response_bytes) {
  const auto request = std::make_shared<v1::MergeStreamsRequest>();
  Caller caller = CallerOf(calls_.guard(), *context);
  absl::Status parsed = ParseAllowed(caller, *request_bytes, *request);
  if (parsed.ok()) parsed = CheckParts(request->from_size(), "streams");
  return calls_.Run(
      {context, caller, HeldBytes(*request_bytes, *request), *response_bytes, "merge_streams"},
      parsed, false,
      [this, request, response_bytes](QueryEngine::Deadline deadline) -> PostedCalls::Outcome {
        absl::StatusOr<StreamState> state =
            MergeAll(request->from_size(), "streams", deadline,
                     [&](int i) { return engine_.State(request->from(i), deadline); });
        if (!state.ok()) return state.status();
        return Create<v1::MergeStreamsResponse>(pipeline_, request->stream(), *std::move(state),
                                                *response_bytes);
      });
}

}  // namespace tidemark::server
