// Text from outside, as messages repeat it.
#ifndef TIDEMARK_SERVER_ACCESS_QUOTED_H_
#define TIDEMARK_SERVER_ACCESS_QUOTED_H_

#include <string>
#include <string_view>

namespace tidemark::server {

/// `text` in quotation marks, on one line and well-formed UTF-8 (RFC 3629) whatever it holds:
/// control characters, ends of lines, quotation marks and bytes that are no UTF-8 are escaped as in
/// C. Of more than 200 bytes those characters that begin and end within them, and "...".
std::string Quoted(std::string_view text);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_QUOTED_H_
