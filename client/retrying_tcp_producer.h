// A producer over framed TCP whose batches are counted once, though connections break.
//
// Batches are numbered under an id of 16 random bytes and kept until the server has answered them.
// When the connection breaks, or a batch is answered UNAVAILABLE (the server stops; its log's disk
// fails), it connects anew and sends again, in their order, all that is not answered; the server
// recognises what it has taken in already, even if it was killed meanwhile and has a log.
//
// Guarantee: after Flush() has returned OK each batch was taken in once (accepted()), or refused
// (errors()). Not promised: whether, after another status, a batch that is not answered was taken
// in. A connection that is dead without the kernel knowing it is not noticed.
#ifndef TIDEMARK_CLIENT_RETRYING_TCP_PRODUCER_H_
#define TIDEMARK_CLIENT_RETRYING_TCP_PRODUCER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tcp_producer.h"
#include "wire/frame.h"

namespace tidemark::client {

struct RetryingTcpOptions {
  /// After the last answer, before it gives up.
  std::chrono::milliseconds retry_for{60'000};
  /// Batches kept and not yet answered, at most 64: what a server keeps of a producer's numbers.
  std::size_t window_batches = 64;
};

/// Thread: one, which it blocks. Errors: a call that returns another status than OK has ended the
/// producer, and every later call returns the same; but for Open, where the stream is refused.
/// Costs: a batch is copied once.
class RetryingTcpProducer {
 public:
  /// Connects when it first has to.
  RetryingTcpProducer(std::string host, std::uint16_t port, RetryingTcpOptions options = {});
  RetryingTcpProducer(const RetryingTcpProducer&) = delete;
  RetryingTcpProducer& operator=(const RetryingTcpProducer&) = delete;

  /// Opens a stream, creating it if need be (kDefault: with the server's default type), and
  /// introduces the producer to it. The stream's place for Send. Errors as the server gives them.
  absl::StatusOr<std::size_t> Open(std::string_view name,
                                   wire::WireElement type = wire::WireType::kDefault);
  /// Packed little-endian values of the stream's type, or what wire::AppendString makes; of a
  /// stream with payloads these, packed, too. Waits while the window is full.
  absl::Status Send(std::size_t stream, std::span<const std::byte> values,
                    std::span<const std::byte> payloads = {});
  /// Waits until every batch is answered.
  absl::Status Flush() { return Drive(0); }

  std::uint64_t accepted() const { return accepted_; }  ///< values of answered batches
  std::uint64_t refused() const { return refused_; }    ///< one by one
  /// Batches that were refused whole; their id is their number. The first 1,000.
  const std::vector<BatchError>& errors() const { return errors_; }
  std::uint64_t connections() const { return connections_; }  ///< that were begun

 private:
  struct Stream {
    std::string name;
    wire::WireElement type;
    std::uint64_t next_number = 1;
    TcpStream open;  // on this connection, when it is first sent to
  };
  struct Batch {
    std::size_t stream;
    std::uint64_t number;
    std::string payloads;
    std::string values;
  };

  // Until at most `unanswered` batches are kept and all are sent.
  absl::Status Drive(std::size_t unanswered);
  absl::Status Step();
  absl::Status Connect();
  absl::Status WaitToRetry(const absl::Status& why);
  void OnAnswer(const BatchAnswer& answer);

  const std::string host_;
  const std::uint16_t port_;
  const RetryingTcpOptions options_;
  const std::string id_;
  std::unique_ptr<TcpProducer> connection_;  // null: to be made
  std::vector<Stream> streams_;
  std::deque<Batch> kept_;  // not answered, in their order
  std::size_t sent_ = 0;    // of them, on this connection
  absl::Status cut_;        // why the connection is of no use, though it goes on
  absl::Status over_;
  std::optional<std::chrono::steady_clock::time_point> failing_since_;
  std::chrono::milliseconds pause_{0};

  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t connections_ = 0;
  std::vector<BatchError> errors_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_RETRYING_TCP_PRODUCER_H_
