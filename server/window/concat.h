// Messages put together from parts.
#ifndef TIDEMARK_SERVER_WINDOW_CONCAT_H_
#define TIDEMARK_SERVER_WINDOW_CONCAT_H_

#include <fmt/format.h>

#include <iterator>
#include <string>

namespace tidemark::server {

/// The parts one after the other, numbers in their shortest form. (absl::StrCat does not take a
/// std::string_view where Abseil was built with a type of its own, as Debian 12's was.)
template <class... Parts>
std::string Concat(const Parts&... parts) {
  std::string out;
  (fmt::format_to(std::back_inserter(out), "{}", parts), ...);
  return out;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_CONCAT_H_
