// TLS as crowds and their observer speak it: a client's first words alone, and a page behind it.
#ifndef TIDEMARK_TESTS_BENCH_CROWD_BENCH_TLS_H_
#define TIDEMARK_TESTS_BENCH_CROWD_BENCH_TLS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark::bench {

/// One whole ClientHello for localhost, TLS 1.2 and 1.3, as the record that OpenSSL sends. A server
/// answers it with all that it has to say until the client is there: key exchange, certificate and
/// signature. `alpn`: the protocol that is asked for; empty: none. Errors: throws
/// std::runtime_error.
std::string ClientHello(std::string_view alpn);

/// What localhost:port answers to `request` over TLS until it closes, its certificate checked
/// against the file `ca`. Errors: throws std::runtime_error.
std::string AnswerOverTls(std::uint16_t port, const std::string& ca, std::string_view request);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_CROWD_BENCH_TLS_H_
