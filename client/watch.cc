// Client::Watch*: the reading side of a continuous query.
#include <atomic>
#include <utility>

#include "client/connection.h"
#include "client/convert.h"

namespace tidemark::client {

struct Watch::Call {
  Call(std::shared_ptr<Connection> to, const v1::WatchRequest& request)
      : connection(std::move(to)), reader(Begin(request)) {}
  ~Call() {
    if (finished) return;
    context.TryCancel();
    reader->Finish();
  }

  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> Begin(const v1::WatchRequest& request) {
    connection->Show(context);
    return connection->query->Watch(&context, request);
  }

  std::shared_ptr<Connection> connection;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> reader;
  std::atomic<bool> cancelled = false;
  bool finished = false;
};

namespace {

void SetOptions(const WatchOptions& options, v1::WatchRequest* request) {
  ToProto(options.interval, request->mutable_interval());
  if (options.min_change) request->set_min_change(*options.min_change);
}

void RequireWhole(const WatchOptions& options) {
  if (options.scope.whole()) return;
  throw Error(Code::kInvalidArgument, "sums are over the whole history alone");
}

}  // namespace

Watch::Watch(std::unique_ptr<Call> call) : call_(std::move(call)) {}
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;
Watch::~Watch() = default;

std::optional<WatchAnswer> Watch::Next() {
  if (call_->finished) return std::nullopt;
  v1::WatchResponse response;
  if (call_->reader->Read(&response)) return FromProto(response);
  call_->finished = true;
  const grpc::Status status = call_->reader->Finish();
  if (call_->cancelled) return std::nullopt;
  if (!status.ok()) throw call_->connection->ToError(status);
  throw Error(Code::kUnavailable,
              "the daemon at " + call_->connection->options.server + " ended the watch");
}

void Watch::Cancel() {
  call_->cancelled = true;
  call_->context.TryCancel();
}

Watch Client::WatchQuantiles(const std::string& stream, const std::vector<double>& phi,
                             const WatchOptions& options) {
  v1::WatchRequest request;
  request.mutable_quantiles()->set_stream(RequireUtf8("stream name", stream));
  request.mutable_quantiles()->mutable_phi()->Add(phi.begin(), phi.end());
  SetScope(options.scope, request.mutable_quantiles());
  SetOptions(options, &request);
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

Watch Client::WatchHeavyHitters(const std::string& stream, double support, std::uint32_t limit,
                                const WatchOptions& options, bool by_weight) {
  v1::WatchRequest request;
  request.mutable_heavy_hitters()->set_stream(RequireUtf8("stream name", stream));
  request.mutable_heavy_hitters()->set_support(support);
  request.mutable_heavy_hitters()->set_limit(limit);
  request.mutable_heavy_hitters()->set_by_weight(by_weight);
  SetScope(options.scope, request.mutable_heavy_hitters());
  SetOptions(options, &request);
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

Watch Client::WatchHierarchicalHeavyHitters(const std::string& stream, double support,
                                            const WatchOptions& options) {
  v1::WatchRequest request;
  request.mutable_hierarchical_heavy_hitters()->set_stream(RequireUtf8("stream name", stream));
  request.mutable_hierarchical_heavy_hitters()->set_support(support);
  SetScope(options.scope, request.mutable_hierarchical_heavy_hitters());
  SetOptions(options, &request);
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

Watch Client::WatchSums(const std::string& stream, const std::vector<SumRange>& ranges,
                        const WatchOptions& options) {
  RequireWhole(options);
  v1::WatchRequest request;
  request.mutable_sums()->set_stream(RequireUtf8("stream name", stream));
  for (const SumRange& range : ranges) ToProto(range, request.mutable_sums()->add_ranges());
  SetOptions(options, &request);
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

}  // namespace tidemark::client
