// A configured host as an address, listening there, and system errors as this project words them.
#ifndef TIDEMARK_SERVER_INGEST_RESOLVE_H_
#define TIDEMARK_SERVER_INGEST_RESOLVE_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cctype>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/ingest/listen_options.h"

namespace tidemark::server {

/// "address already in use".
inline std::string ErrorText(const boost::system::error_code& error) {
  std::string text = error.message();
  if (!text.empty()) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

/// UNAVAILABLE: "cannot listen on 127.0.0.1:7071: address already in use".
inline absl::Status CannotListen(const std::string& host, std::uint16_t port,
                                 const boost::system::error_code& error) {
  return absl::UnavailableError("cannot listen on " + FormatAddress(host, port) + ": " +
                                ErrorText(error));
}

/// The address of a host given as a number or a name. Errors: INVALID_ARGUMENT.
inline absl::StatusOr<boost::asio::ip::address> ResolveHost(boost::asio::io_context& io,
                                                            const std::string& host,
                                                            std::uint16_t port) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (!error) return address;
  boost::asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty()) {
    return absl::InvalidArgumentError("cannot listen on " + FormatAddress(host, port) +
                                      ": host not found: " + ErrorText(error));
  }
  return found.begin()->endpoint().address();
}

/// Makes `acceptor` listen, and answers the port, which is another one if `port` is 0. `prepare`
/// sets what the connections are to inherit. Errors: INVALID_ARGUMENT (no such host), UNAVAILABLE;
/// the acceptor is closed then.
inline absl::StatusOr<std::uint16_t> ListenOn(
    boost::asio::io_context& io, const std::string& host, std::uint16_t port,
    boost::asio::ip::tcp::acceptor& acceptor,
    const std::function<void(boost::system::error_code&)>& prepare = {}) {
  const absl::StatusOr<boost::asio::ip::address> address = ResolveHost(io, host, port);
  if (!address.ok()) return address.status();
  using Acceptor = boost::asio::ip::tcp::acceptor;
  boost::system::error_code error;
  const Acceptor::endpoint_type endpoint(*address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
  if (!error && prepare) prepare(error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(Acceptor::max_listen_connections, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    return CannotListen(host, port, error);
  }
  return acceptor.local_endpoint(error).port();
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_RESOLVE_H_
