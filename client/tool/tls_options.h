// How the command shows who it is, and knows who the daemon is.
#ifndef TIDEMARK_CLIENT_TOOL_TLS_OPTIONS_H_
#define TIDEMARK_CLIENT_TOOL_TLS_OPTIONS_H_

#include <CLI/App.hpp>
#include <string>

#include "client/client.h"

namespace tidemark::tool {

struct TlsOptions {
  bool tls = false;
  std::string ca, cert, key;
  std::string token_file;
};

/// Lifetime: `options` outlives the parser.
void AddTlsOptions(CLI::App& app, TlsOptions& options);

/// The token is that of --token-file, else of TIDEMARK_TOKEN; never an argument, which `ps` shows.
/// Errors: InputError for a file of a token that cannot be read or holds none.
void SetTls(const TlsOptions& options, client::ClientOptions& to);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_TLS_OPTIONS_H_
