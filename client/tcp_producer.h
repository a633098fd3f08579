// A blocking producer over framed TCP: the fastest way in from one thread.
//
// Batches are sent without waiting for their acknowledgements, of which at most `window_batches`
// are outstanding; SendBatch reads answers whenever the server has some, and waits for one when the
// window is full. A server that is saturated so slows the caller.
//
// Guarantee: after Flush() has returned OK every batch was either acknowledged (in accepted()) or
// refused (in errors()). Not promised: whether an unacknowledged batch was taken in when the
// connection breaks.
#ifndef TIDEMARK_CLIENT_TCP_PRODUCER_H_
#define TIDEMARK_CLIENT_TCP_PRODUCER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "wire/frame.h"

namespace tidemark::client {

class TlsStream;

struct TcpProducerOptions {
  /// Batches sent and not yet answered. 256 acknowledgements are 8 KiB, which a socket always
  /// holds.
  std::size_t window_batches = 256;
  /// Refused batches whose errors are kept; the rest is counted in errors_dropped().
  std::size_t errors_max = 1000;
  /// TLS, and the files (PEM) that it takes: authorities of the server's certificate (empty: the
  /// system's), and the certificate to show with its key (empty: none). Any of them means TLS.
  bool tls = false;
  std::string tls_ca = {};
  std::string tls_cert = {};
  std::string tls_key = {};
  /// Shown to the server first, "" for none. Without TLS it travels in clear, and only to an
  /// address of this machine (127.x.x.x, ::1).
  std::string token = {};
  /// Not empty: 16 bytes, not all 0, under which SendNumbered's batches are recognised when they
  /// come again (docs/protocol.md).
  std::string producer;
  /// Told of each batch's answer, in their order, by the call that read it; errors are then not
  /// kept. May be empty.
  std::function<void(const struct BatchAnswer&)> on_answer = {};
};

/// What the server said to one batch. Not OK: it was refused, and the counts are 0.
struct BatchAnswer {
  std::uint64_t batch_id = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  absl::Status status;
};

/// An open stream on one connection.
struct TcpStream {
  std::uint32_t handle = 0;
  wire::WireElement type;  ///< what the server says that it holds
};

/// A batch that the server refused.
struct BatchError {
  std::uint64_t batch_id = 0;
  absl::Status status;
};

/// Thread: one. Errors: a call that returns UNAVAILABLE, or an error that the server called fatal,
/// has closed the connection; every later call returns the same.
class TcpProducer {
 public:
  /// Connects and introduces itself. Errors: INVALID_ARGUMENT for a host that cannot be resolved,
  /// UNAVAILABLE if nobody answers or TLS
  /// fails, INVALID_ARGUMENT for files that cannot be used and a token that may not be sent.
  /// A server that does not know the token says so by the first call after.
  static absl::StatusOr<std::unique_ptr<TcpProducer>> Connect(const std::string& host,
                                                              std::uint16_t port,
                                                              TcpProducerOptions options = {});
  /// Closes without waiting: call Flush before.
  ~TcpProducer();
  TcpProducer(const TcpProducer&) = delete;
  TcpProducer& operator=(const TcpProducer&) = delete;

  /// Opens a stream, creating it if need be (kDefault: with the server's default type), and waits
  /// for the answer. Errors as the server gives them.
  absl::StatusOr<TcpStream> Open(std::string_view name,
                                 wire::WireElement type = wire::WireType::kDefault);

  /// Sends packed little-endian values of the stream's type, or for a string stream what
  /// wire::AppendString makes. Returns the batch's id; whether it is taken in is said by Flush.
  absl::StatusOr<std::uint64_t> SendBatch(const TcpStream& stream,
                                          std::span<const std::byte> values);
  absl::StatusOr<std::uint64_t> SendBatch(const TcpStream& stream, std::span<const double> values) {
    return SendBatch(stream, std::as_bytes(values));
  }
  absl::StatusOr<std::uint64_t> SendBatch(const TcpStream& stream, std::span<const float> values) {
    return SendBatch(stream, std::as_bytes(values));
  }
  /// The same for a stream with payloads: one weight or y for each value.
  absl::StatusOr<std::uint64_t> SendPairs(const TcpStream& stream,
                                          std::span<const std::byte> values,
                                          std::span<const std::uint64_t> weights);
  absl::StatusOr<std::uint64_t> SendPairs(const TcpStream& stream,
                                          std::span<const std::byte> values,
                                          std::span<const double> y);
  absl::StatusOr<std::uint64_t> SendStrings(const TcpStream& stream,
                                            std::span<const std::string_view> items);

  /// The same of batch `number`, which is its id, of this producer to this stream; `payloads`
  /// packed or none. REQUIRES: options.producer.
  absl::Status SendNumbered(const TcpStream& stream, std::uint64_t number,
                            std::span<const std::byte> payloads, std::span<const std::byte> values);

  /// Waits until every batch has been answered.
  absl::Status Flush() { return AwaitAnswers(0); }
  /// Waits until at most so many batches are not.
  absl::Status AwaitAnswers(std::size_t unanswered);

  std::uint64_t accepted() const { return accepted_; }  ///< values acknowledged
  std::uint64_t refused() const {
    return refused_;
  }  ///< one by one, of acknowledged batches (docs/protocol.md)
  std::uint64_t acknowledged_batches() const { return acknowledged_; }
  const std::vector<BatchError>& errors() const { return errors_; }
  std::uint64_t errors_dropped() const { return errors_dropped_; }
  std::size_t unanswered() const { return unanswered_.size(); }

 private:
  TcpProducer(int socket, TcpProducerOptions options);

  absl::StatusOr<std::uint64_t> SendParts(const TcpStream& stream, std::span<const std::byte> first,
                                          std::span<const std::byte> values);
  absl::Status Introduce(const std::string& host, bool this_machine);
  absl::Status SendFrame(const TcpStream& stream, wire::FrameType frame, std::uint64_t id,
                         std::span<const std::byte> first, std::span<const std::byte> values);
  absl::Status Send(std::span<const std::byte> head, std::span<const std::byte> body);
  ssize_t ReceiveSome(bool wait);
  absl::Status Receive(bool wait);
  absl::Status HandleFrames();
  absl::Status HandleFrame(const wire::ServerFrame& frame);
  absl::Status Break(absl::Status why);
  absl::Status BreakAfterReadingWhy(absl::Status why);

  const int socket_;
  std::unique_ptr<TlsStream> tls_;  // null: no TLS
  const TcpProducerOptions options_;
  wire::ServerFrameDecoder decoder_;
  std::vector<std::byte> input_;  // received, not yet decoded
  std::string head_;
  std::string items_;
  absl::Status broken_;

  std::uint32_t next_handle_ = 1;
  std::uint64_t next_batch_ = 1;
  std::deque<std::uint64_t> unanswered_;
  bool open_answered_ = false;
  std::uint32_t open_handle_ = 0;
  absl::StatusOr<TcpStream> open_answer_;

  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::vector<BatchError> errors_;
  std::uint64_t errors_dropped_ = 0;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_TCP_PRODUCER_H_
