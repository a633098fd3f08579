// Who is on this machine, and what else is known of a caller, by the text of an address.
#ifndef TIDEMARK_SERVER_ACCESS_LOOPBACK_H_
#define TIDEMARK_SERVER_ACCESS_LOOPBACK_H_

#include <string>
#include <string_view>
#include <utility>

#include "server/access/policy.h"

namespace tidemark::server {

/// Of a numeric address, as the kernel's are written: 127.0.0.0/8, ::1, and the former as IPv6 has
/// it (::ffff:127.0.0.1), which is what a socket for both sees. A name is none.
constexpr bool IsLoopback(std::string_view address) {
  if (address == "::1") return true;
  constexpr std::string_view kMapped = "::ffff:";
  if (address.starts_with(kMapped)) address.remove_prefix(kMapped.size());
  return address.starts_with("127.") &&
         address.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// What is known of a caller by its numeric address, as IsLoopback takes it; "": it is not known.
inline Credentials CredentialsAt(std::string address) {
  Credentials shown;
  shown.loopback = IsLoopback(address);
  shown.address = std::move(address);
  return shown;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_LOOPBACK_H_
