// Which text from outside may become a stream's name or an item.
#ifndef TIDEMARK_SERVER_WINDOW_TEXT_RULES_H_
#define TIDEMARK_SERVER_WINDOW_TEXT_RULES_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tidemark::server {

/// Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). Returns
/// the offset of the first byte that is not, or npos.
std::size_t FindInvalidUtf8(std::string_view text);

/// OK, or INVALID_ARGUMENT: empty, longer than `max_bytes`, not UTF-8, or holding a control
/// character. The message quotes the name, escaped and cut.
absl::Status CheckStreamName(std::string_view name, std::size_t max_bytes);

/// OK, or INVALID_ARGUMENT: longer than `max_bytes` or not UTF-8, which the status carries as its
/// Refusal. An empty item is an item.
absl::Status CheckItem(std::string_view item, std::size_t max_bytes);

/// `text` fit for a one-line message: control and non-ASCII bytes as \xNN, cut after 64 bytes.
std::string Printable(std::string_view text);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_TEXT_RULES_H_
