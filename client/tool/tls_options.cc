#include "client/tool/tls_options.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "client/tool/arguments.h"
#include "client/tool/terminal.h"

namespace tidemark::tool {

void AddTlsOptions(CLI::App& app, TlsOptions& options) {
  app.add_flag("--tls", options.tls,
               "TLS, with the system's authorities unless --tls-ca names others")
      ->envname("TIDEMARK_TLS");
  app.add_option("--tls-ca", options.ca, "TLS, with the authorities of this file")
      ->option_text("FILE")
      ->envname("TIDEMARK_TLS_CA");
  app.add_option("--tls-cert", options.cert, "TLS, showing this certificate")
      ->option_text("FILE")
      ->envname("TIDEMARK_TLS_CERT");
  app.add_option("--tls-key", options.key, "The key of --tls-cert")
      ->option_text("FILE")
      ->envname("TIDEMARK_TLS_KEY");
  app.add_option("--token-file", options.token_file,
                 "Show the token of this file (default: that of TIDEMARK_TOKEN, if set)")
      ->option_text("FILE");
}

void SetTls(const TlsOptions& options, client::ClientOptions& to) {
  to.tls = options.tls;
  to.tls_ca = options.ca;
  to.tls_cert = options.cert;
  to.tls_key = options.key;
  std::string where = "TIDEMARK_TOKEN";
  if (!options.token_file.empty()) {
    where = "--token-file " + Printable(options.token_file);
    std::ifstream file(options.token_file, std::ios::binary);
    to.token.assign(std::istreambuf_iterator<char>(file), {});
    while (to.token.ends_with('\n') || to.token.ends_with('\r')) to.token.pop_back();
    if (!file || to.token.empty()) throw InputError(where + " cannot be read, or is empty");
  } else if (const char* const token = std::getenv("TIDEMARK_TOKEN")) {
    to.token = token;
  }
  // gRPC would end the process at a character that no header may hold.
  if (!std::all_of(to.token.begin(), to.token.end(), [](char c) { return c >= '!' && c <= '~'; })) {
    throw InputError(where + " holds no token; expected visible characters of ASCII on one line");
  }
}

}  // namespace tidemark::tool
