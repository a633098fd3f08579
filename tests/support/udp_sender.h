// Sends datagrams to a port of 127.0.0.1.
#ifndef TIDEMARK_TESTS_SUPPORT_UDP_SENDER_H_
#define TIDEMARK_TESTS_SUPPORT_UDP_SENDER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tidemark::test {

class UdpSender {
 public:
  explicit UdpSender(std::uint16_t port) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr generic{};
    static_assert(sizeof generic == sizeof address);
    std::copy_n(reinterpret_cast<const char*>(&address), sizeof address,
                reinterpret_cast<char*>(&generic));
    connected_ = connect(fd_, &generic, sizeof generic) == 0;
  }
  ~UdpSender() { close(fd_); }
  UdpSender(const UdpSender&) = delete;
  UdpSender& operator=(const UdpSender&) = delete;

  bool Send(std::string_view datagram) {
    return connected_ &&
           send(fd_, datagram.data(), datagram.size(), 0) == static_cast<ssize_t>(datagram.size());
  }

 private:
  const int fd_;
  bool connected_ = false;
};

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_UDP_SENDER_H_
