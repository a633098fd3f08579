// Full-speed senders over framed TCP, and a reader that does nothing but count.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_TCP_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_TCP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/tcp_producer.h"

namespace tidemark::bench {

/// client::TcpProducer with its one float32 stream open. Errors: throws std::runtime_error.
class Sender {
 public:
  Sender(std::uint16_t port, const std::string& stream, client::TcpProducerOptions options = {});

  /// The next `values` of UniformValues().
  void SendFrame(std::size_t values);
  /// Waits for every acknowledgement; throws if any value was refused.
  void Flush();
  std::uint64_t sent() const { return sent_; }

 private:
  std::unique_ptr<client::TcpProducer> producer_;
  client::TcpStream stream_;
  std::size_t at_ = 0;
  std::uint64_t sent_ = 0;
};

/// Answers the OPEN of each connection and counts the bytes after it.
class CountingReader {
 public:
  CountingReader();
  ~CountingReader();
  CountingReader(const CountingReader&) = delete;
  CountingReader& operator=(const CountingReader&) = delete;

  std::uint16_t port() const { return port_; }
  /// Waits until `connections` have come and ended.
  void WaitForEnd(int connections);

 private:
  void Accept();
  void Read(int socket);

  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> ended_{0};
  std::vector<std::thread> readers_;  // touched by the accepting thread until it has ended
  std::thread acceptor_;
};

/// Waits until every value of the stream is in its summary or in the open window, and throws
/// unless there are `expected` of them.
void WaitUntilSummarized(client::Client& client, const std::string& stream, std::uint64_t expected);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_TCP_H_
