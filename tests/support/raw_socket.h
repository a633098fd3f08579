// A blocking TCP client that sends exactly the bytes it is told to, for tests of servers.
#ifndef TIDEMARK_TESTS_SUPPORT_RAW_SOCKET_H_
#define TIDEMARK_TESTS_SUPPORT_RAW_SOCKET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark::test {

/// Connected to 127.0.0.1. Every call gives up after ten seconds, so that a failing test ends.
class RawSocket {
 public:
  /// From 127.0.0.`host`.
  explicit RawSocket(std::uint16_t port, int receive_buffer_bytes = 0, std::uint32_t host = 1)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    }
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const sockaddr from = Address(host, 0);
    const sockaddr to = Address(1, port);
    connected_ =
        (host == 1 || bind(fd_, &from, sizeof from) == 0) && connect(fd_, &to, sizeof to) == 0;
  }
  ~RawSocket() { close(fd_); }
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  /// False if the peer has closed or took nothing for ten seconds.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// Sends what the socket takes without waiting; returns how much.
  std::size_t SendSome(std::string_view bytes) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  void EndSending() { shutdown(fd_, SHUT_WR); }

  /// Exactly `bytes`, or fewer if the peer ends or resets the connection.
  std::string Receive(std::size_t bytes) {
    std::string out;
    char chunk[4096];
    while (out.size() < bytes) {
      const ssize_t got = recv(fd_, chunk, std::min(sizeof chunk, bytes - out.size()), 0);
      if (got <= 0) break;
      out.append(chunk, static_cast<std::size_t>(got));
    }
    return out;
  }
  /// All until the peer ends. `ended_cleanly`: by FIN and not by reset or after ten seconds.
  std::string ReceiveAll(bool* ended_cleanly = nullptr) {
    std::string out;
    char chunk[65536];
    ssize_t got = 0;
    while ((got = recv(fd_, chunk, sizeof chunk, 0)) > 0) {
      out.append(chunk, static_cast<std::size_t>(got));
    }
    if (ended_cleanly != nullptr) *ended_cleanly = got == 0;
    return out;
  }

 private:
  static sockaddr Address(std::uint32_t host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | host);
    return std::bit_cast<sockaddr>(address);
  }

  const int fd_;
  bool connected_ = false;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_RAW_SOCKET_H_
