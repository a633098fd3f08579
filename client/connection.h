// What the library's source files share about gRPC: the channel, its stubs, and errors. Not
// installed.
#ifndef TIDEMARK_CLIENT_CONNECTION_H_
#define TIDEMARK_CLIENT_CONNECTION_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>

#include "client/client.h"
#include "tidemark/v1/info.grpc.pb.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"
#include "tidemark/v1/streams.grpc.pb.h"
#include "tidemark/v1/subscriptions.grpc.pb.h"
#include "tidemark/v1/summary.grpc.pb.h"

namespace tidemark::client {

struct Connection {
  explicit Connection(ClientOptions options);

  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::StreamService::Stub> streams;
  std::unique_ptr<v1::IngestService::Stub> ingest;
  std::unique_ptr<v1::QueryService::Stub> query;
  std::unique_ptr<v1::SummaryService::Stub> summary;
  std::unique_ptr<v1::SubscriptionService::Stub> subscriptions;
  std::unique_ptr<v1::InfoService::Stub> info;

  /// Shows the token, if there is one. To be called for each call.
  void Show(grpc::ClientContext& context) const;
  /// The Error for a status that is not OK.
  Error ToError(const grpc::Status& status) const;
};

/// One request, one answer. Throws Error for a status that is not OK.
template <typename Stub, typename Request, typename Response>
Response Call(const Connection& connection, Stub& stub,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request) {
  grpc::ClientContext context;
  connection.Show(context);
  context.set_deadline(std::chrono::system_clock::now() + connection.options.deadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) throw connection.ToError(status);
  return response;
}

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CONNECTION_H_
