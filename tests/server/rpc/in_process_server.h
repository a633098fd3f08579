// A gRPC server in this process, without sockets.
#ifndef TIDEMARK_TESTS_SERVER_RPC_IN_PROCESS_SERVER_H_
#define TIDEMARK_TESTS_SERVER_RPC_IN_PROCESS_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

namespace tidemark::server {

/// Lifetime: `service` outlives it. Ends when every call has ended, those still open are cancelled.
class InProcessServer {
 public:
  explicit InProcessServer(grpc::Service& service) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
  }
  ~InProcessServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  InProcessServer(const InProcessServer&) = delete;
  InProcessServer& operator=(const InProcessServer&) = delete;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_RPC_IN_PROCESS_SERVER_H_
