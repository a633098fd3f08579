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

Watch Client::Begin(const WatchQuery& query) {
  v1::WatchRequest request;
  ToProto(query, &request);
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

Watch Client::WatchSubscription(const std::string& name) {
  v1::WatchRequest request;
  request.set_subscription(RequireUtf8("subscription name", name));
  return Watch(std::make_unique<Watch::Call>(connection_, request));
}

Watch Client::WatchQuantiles(const std::string& stream, const std::vector<double>& phi,
                             const WatchOptions& options) {
  return Begin({stream, QuantilesQuery{phi}, options});
}

Watch Client::WatchHeavyHitters(const std::string& stream, double support, std::uint32_t limit,
                                const WatchOptions& options, bool by_weight) {
  return Begin({stream, ItemsQuery{support, limit, by_weight}, options});
}

Watch Client::WatchHierarchicalHeavyHitters(const std::string& stream, double support,
                                            const WatchOptions& options) {
  return Begin({stream, PrefixesQuery{support}, options});
}

Watch Client::WatchSums(const std::string& stream, const std::vector<SumRange>& ranges,
                        const WatchOptions& options) {
  return Begin({stream, SumsQuery{ranges}, options});
}

}  // namespace tidemark::client
