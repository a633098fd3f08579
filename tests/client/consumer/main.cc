// A program of somebody else: values in over gRPC and over framed TCP, one answer out of both.
//
//   consumer GRPC_PORT TCP_PORT
#include <tidemark/client/client.h>
#include <tidemark/client/tcp_producer.h>

#include <cstdint>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

namespace {

// What is wrong, or nothing.
std::string Run(std::uint16_t grpc_port, std::uint16_t tcp_port) {
  namespace client = tidemark::client;
  client::Client calls({.server = "127.0.0.1:" + std::to_string(grpc_port)});
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 1.0);

  client::Pusher pusher = calls.Push("consumer");
  pusher.Write(values);
  if (pusher.Finish().accepted != values.size()) return "gRPC did not take in every value";

  for (double& value : values) value += 1000;
  auto producer = client::TcpProducer::Connect("127.0.0.1", tcp_port);
  if (!producer.ok()) return producer.status().ToString();
  const auto stream = (*producer)->Open("consumer");
  if (!stream.ok()) return stream.status().ToString();
  if (const auto sent = (*producer)->SendBatch(*stream, values); !sent.ok()) {
    return sent.status().ToString();
  }
  if (const auto flushed = (*producer)->Flush(); !flushed.ok()) return flushed.ToString();
  if ((*producer)->accepted() != values.size()) return "framed TCP did not take in every value";

  const client::QuantilesAnswer answer = calls.Quantiles("consumer", {0, 0.5, 1});
  std::string found = std::to_string(answer.n);
  for (const auto& a : answer.answers) found += " " + FormatValue(a.value);
  return found == "2000 1 1000 2000" ? "" : "n and quantiles are " + found;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: consumer GRPC_PORT TCP_PORT\n";
    return 2;
  }
  const std::string wrong = Run(static_cast<std::uint16_t>(std::stoi(argv[1])),
                                static_cast<std::uint16_t>(std::stoi(argv[2])));
  if (!wrong.empty()) {
    std::cerr << wrong << "\n";
    return 1;
  }
  // Nobody listens on port 1.
  tidemark::client::Client nobody({.server = "127.0.0.1:1"});
  nobody.Quantiles("s", {0.5});
  return 1;
} catch (const tidemark::client::Error& error) {
  std::cout << error.what() << "\n";
  return error.code() == tidemark::client::Code::kUnavailable ? 0 : 1;
}
