// The token that a client of framed TCP may show, once, before its preamble. Bytes:
// docs/protocol.md.
//
//   "TDMA" | u16 version = 1 | u16 bytes of the token | token | zeros up to a multiple of 8
//
// It comes before the preamble, and not as a frame behind it, so that a server that must know its
// caller need not decode anything else first.
#ifndef TIDEMARK_WIRE_TOKEN_H_
#define TIDEMARK_WIRE_TOKEN_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tidemark::wire {

inline constexpr std::array<char, 4> kTokenMagic = {'T', 'D', 'M', 'A'};
/// Longer ones are refused; a random one has some dozens.
inline constexpr std::size_t kTokenBytesMax = 4096;

enum class TokenResult {
  kNone,      ///< something else begins here: the client shows no token
  kToken,     ///< `token` and `consumed` are set
  kNeedMore,  ///< `needed` bytes are required to tell
  kError,     ///< `error` says what is wrong
};
struct TokenPreamble {
  TokenResult result = TokenResult::kNeedMore;
  std::string_view token;  ///< points into the bytes
  std::size_t consumed = 0;
  std::size_t needed = 0;
  std::string error;
};
/// Looks at the first bytes of a connection. Never throws but std::bad_alloc; no message holds a
/// byte of the token.
TokenPreamble DecodeToken(std::span<const std::byte> bytes);

/// REQUIRES: 1 to kTokenBytesMax bytes.
void AppendToken(std::string& out, std::string_view token);

}  // namespace tidemark::wire

#endif  // TIDEMARK_WIRE_TOKEN_H_
