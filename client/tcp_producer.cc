#include "client/tcp_producer.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/tls_stream.h"
#include "wire/token.h"

namespace tidemark::client {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the span overloads send values as they lie in memory");

// One read of answers: 2,048 acknowledgements.
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

absl::Status SystemError(std::string_view what) {
  return absl::UnavailableError(std::string(what) + ": " + std::strerror(errno));
}

bool IsThisMachine(const addrinfo& found) {
  const void* const address = found.ai_addr;
  if (found.ai_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  if (found.ai_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpProducer>> TcpProducer::Connect(const std::string& host,
                                                                  std::uint16_t port,
                                                                  TcpProducerOptions options) {
  if (options.token.size() > wire::kTokenBytesMax) {
    return absl::InvalidArgumentError("a token of " + std::to_string(options.token.size()) +
                                      " bytes; expected at most " +
                                      std::to_string(wire::kTokenBytesMax));
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string where = host + ":" + std::to_string(port);
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
      error != 0) {
    return absl::InvalidArgumentError("cannot connect to " + where + ": " + gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(list, freeaddrinfo);
  absl::Status last = absl::UnavailableError("cannot connect to " + where + ": no address");
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      last = SystemError("cannot connect to " + where);
      continue;
    }
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
      last = SystemError("cannot connect to " + where);
      close(fd);
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::unique_ptr<TcpProducer> producer(new TcpProducer(fd, options));
    if (absl::Status status = producer->Introduce(host, IsThisMachine(*address)); !status.ok()) {
      return status;
    }
    return producer;
  }
  return last;
}

absl::Status TcpProducer::Introduce(const std::string& host, bool this_machine) {
  if (options_.tls || !options_.tls_ca.empty() || !options_.tls_cert.empty()) {
    auto tls = TlsStream::Connect(
        socket_, host, {.ca = options_.tls_ca, .cert = options_.tls_cert, .key = options_.tls_key});
    if (!tls.ok()) return tls.status();
    tls_ = *std::move(tls);
  } else if (!options_.token.empty() && !this_machine) {
    return absl::InvalidArgumentError("a token is sent over TLS, or to this machine; " + host +
                                      " is another one");
  }
  std::string bytes;
  if (!options_.token.empty()) wire::AppendToken(bytes, options_.token);
  wire::AppendPreamble(bytes);
  if (!options_.producer.empty()) wire::AppendProducer(bytes, options_.producer);
  return Send(std::as_bytes(std::span(bytes)), {});
}

TcpProducer::TcpProducer(int socket, TcpProducerOptions options)
    : socket_(socket), options_(options), open_answer_(absl::UnknownError("")) {}

TcpProducer::~TcpProducer() { close(socket_); }

absl::StatusOr<TcpStream> TcpProducer::Open(std::string_view name, wire::WireElement type) {
  if (!broken_.ok()) return broken_;
  open_handle_ = next_handle_++;
  open_answered_ = false;
  head_.clear();
  wire::AppendOpen(head_, open_handle_, type, name);
  if (absl::Status sent = Send(std::as_bytes(std::span(head_)), {}); !sent.ok()) return sent;
  while (!open_answered_) {
    if (absl::Status received = Receive(true); !received.ok()) return received;
  }
  return open_answer_;
}

absl::StatusOr<std::uint64_t> TcpProducer::SendBatch(const TcpStream& stream,
                                                     std::span<const std::byte> values) {
  return SendParts(stream, {}, values);
}

absl::StatusOr<std::uint64_t> TcpProducer::SendPairs(const TcpStream& stream,
                                                     std::span<const std::byte> values,
                                                     std::span<const std::uint64_t> weights) {
  return SendParts(stream, std::as_bytes(weights), values);
}

absl::StatusOr<std::uint64_t> TcpProducer::SendPairs(const TcpStream& stream,
                                                     std::span<const std::byte> values,
                                                     std::span<const double> y) {
  return SendParts(stream, std::as_bytes(y), values);
}

absl::StatusOr<std::uint64_t> TcpProducer::SendParts(const TcpStream& stream,
                                                     std::span<const std::byte> first,
                                                     std::span<const std::byte> values) {
  const std::uint64_t id = next_batch_;
  absl::Status sent = SendFrame(stream, wire::FrameType::kBatch, id, first, values);
  if (!sent.ok()) return sent;
  ++next_batch_;
  return id;
}

absl::Status TcpProducer::SendNumbered(const TcpStream& stream, std::uint64_t number,
                                       std::span<const std::byte> payloads,
                                       std::span<const std::byte> values) {
  return SendFrame(stream, wire::FrameType::kSequencedBatch, number, payloads, values);
}

absl::Status TcpProducer::SendFrame(const TcpStream& stream, wire::FrameType frame,
                                    std::uint64_t id, std::span<const std::byte> first,
                                    std::span<const std::byte> values) {
  if (!broken_.ok()) return broken_;
  while (unanswered_.size() >= options_.window_batches) {
    if (absl::Status received = Receive(true); !received.ok()) return received;
  }
  head_.clear();
  wire::AppendBatchHeader(head_, stream.handle, id, stream.type, first.size() + values.size(),
                          frame);
  head_.append(reinterpret_cast<const char*>(first.data()), first.size());
  unanswered_.push_back(id);
  return Send(std::as_bytes(std::span(head_)), values);
}

absl::StatusOr<std::uint64_t> TcpProducer::SendStrings(const TcpStream& stream,
                                                       std::span<const std::string_view> items) {
  items_.clear();
  for (const std::string_view item : items) wire::AppendString(items_, item);
  return SendBatch(stream, std::as_bytes(std::span(items_)));
}

absl::Status TcpProducer::AwaitAnswers(std::size_t unanswered) {
  while (broken_.ok() && unanswered_.size() > unanswered) {
    if (absl::Status received = Receive(true); !received.ok()) return received;
  }
  return broken_;
}

// Writes all; reads answers meanwhile when the socket takes no more, as the server may wait for us
// to read them before it reads on.
absl::Status TcpProducer::Send(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (tls_) {
    // A window of answers fits the sockets between, so that the server reads on whatever we read.
    absl::Status sent = tls_->Write(head);
    if (sent.ok()) sent = tls_->Write(body);
    return sent.ok() ? sent : BreakAfterReadingWhy(std::move(sent));
  }
  while (!head.empty() || !body.empty()) {
    // sendmsg does not write through iov_base.
    std::array<iovec, 2> parts = {iovec{const_cast<std::byte*>(head.data()), head.size()},
                                  iovec{const_cast<std::byte*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      const auto bytes = static_cast<std::size_t>(sent);
      const std::size_t of_head = std::min(bytes, head.size());
      head = head.subspan(of_head);
      body = body.subspan(bytes - of_head);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      return BreakAfterReadingWhy(SystemError("cannot send"));
    }
    pollfd wait{socket_, POLLIN | POLLOUT, 0};
    if (poll(&wait, 1, -1) < 0 && errno != EINTR) return Break(SystemError("cannot wait"));
    if ((wait.revents & POLLIN) != 0) {
      if (absl::Status received = Receive(false); !received.ok()) return received;
    }
  }
  return absl::OkStatus();
}

// recv into input_; errno is recv's.
ssize_t TcpProducer::ReceiveSome(bool wait) {
  const std::size_t before = input_.size();
  input_.resize(before + kReadBytes);
  ssize_t bytes = 0;
  do {
    bytes = tls_ ? tls_->Read(std::span(input_).subspan(before), wait)
                 : recv(socket_, input_.data() + before, kReadBytes, wait ? 0 : MSG_DONTWAIT);
  } while (bytes < 0 && errno == EINTR);
  input_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return bytes;
}

absl::Status TcpProducer::Receive(bool wait) {
  if (!broken_.ok()) return broken_;
  const ssize_t bytes = ReceiveSome(wait);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
    return Break(SystemError("cannot receive"));
  }
  if (bytes == 0) {
    return Break(absl::UnavailableError("the server closed the connection; " +
                                        std::to_string(unanswered_.size()) +
                                        " batches were not acknowledged"));
  }
  return HandleFrames();
}

absl::Status TcpProducer::HandleFrames() {
  std::size_t at = 0;
  for (;;) {
    wire::ServerFrame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    const auto result = decoder_.Next(std::span(input_).subspan(at), frame, consumed, needed);
    at += consumed;
    if (result == wire::DecodeResult::kError) {
      return Break(absl::InternalError("the server sent no frame: " + decoder_.error().message));
    }
    if (result == wire::DecodeResult::kNeedMore) break;
    if (absl::Status handled = HandleFrame(frame); !handled.ok()) return handled;
  }
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(at));
  return absl::OkStatus();
}

absl::Status TcpProducer::HandleFrame(const wire::ServerFrame& frame) {
  if (frame.type == wire::FrameType::kOpened) {
    if (open_answered_ || frame.handle != open_handle_) {
      return Break(absl::InternalError("the server answered an OPEN that was not sent"));
    }
    open_answered_ = true;
    const auto type = wire::ParseWireElement(frame.value_type);
    if (!type) {
      return Break(absl::InternalError("the server opened a stream of unknown type " +
                                       std::to_string(frame.value_type)));
    }
    open_answer_ = TcpStream{frame.handle, *type};
    return absl::OkStatus();
  }
  if (frame.type == wire::FrameType::kError) {
    // Numbers that name no code read as UNKNOWN; OK is none of an error's.
    const auto code = frame.code >= 1 && frame.code <= 16
                          ? static_cast<absl::StatusCode>(frame.code)
                          : absl::StatusCode::kUnknown;
    const absl::Status status(code, std::string(frame.message));
    if ((frame.flags & wire::kErrorFatal) != 0) return Break(status);
    if ((frame.flags & wire::kErrorForOpen) != 0) {
      open_answered_ = true;
      open_answer_ = status;
      return absl::OkStatus();
    }
    if (unanswered_.empty() || unanswered_.front() != frame.batch_id) {
      return Break(absl::InternalError("the server answered a batch out of order"));
    }
    unanswered_.pop_front();
    if (options_.on_answer) {
      options_.on_answer({frame.batch_id, 0, 0, status});
    } else if (errors_.size() < options_.errors_max) {
      errors_.push_back({frame.batch_id, status});
    } else {
      ++errors_dropped_;
    }
    return absl::OkStatus();
  }
  if (unanswered_.empty() || unanswered_.front() != frame.batch_id) {
    return Break(absl::InternalError("the server acknowledged a batch out of order"));
  }
  unanswered_.pop_front();
  ++acknowledged_;
  accepted_ += frame.accepted;
  refused_ += frame.refused;
  if (options_.on_answer) {
    options_.on_answer({frame.batch_id, frame.accepted, frame.refused, absl::OkStatus()});
  }
  return absl::OkStatus();
}

absl::Status TcpProducer::Break(absl::Status why) {
  if (broken_.ok()) broken_ = std::move(why);
  return broken_;
}

// Sending failed: what the server said before it closed is the better reason, where it can be read.
absl::Status TcpProducer::BreakAfterReadingWhy(absl::Status why) {
  while (ReceiveSome(false) > 0) {
    if (!HandleFrames().ok()) return broken_;
  }
  return Break(std::move(why));
}

}  // namespace tidemark::client
