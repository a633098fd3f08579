// A configured host as an address, and system errors as this project words them.
#ifndef TIDEMARK_SERVER_INGEST_RESOLVE_H_
#define TIDEMARK_SERVER_INGEST_RESOLVE_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cctype>
#include <cstdint>
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

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_RESOLVE_H_
