// A program of somebody else that only brings values in. Nobody listens on port 1.
#include <tidemark/client/tcp_producer.h>

#include <iostream>

int main() {
  const auto producer = tidemark::client::TcpProducer::Connect("127.0.0.1", 1);
  std::cout << producer.status().ToString() << "\n";
  return producer.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
}
