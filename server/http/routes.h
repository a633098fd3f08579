// What the HTTP endpoint answers: a function of method and target, without a socket.
#ifndef TIDEMARK_SERVER_HTTP_ROUTES_H_
#define TIDEMARK_SERVER_HTTP_ROUTES_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/access/guard.h"

namespace tidemark::server {

/// What the endpoint asks of the daemon. Thread: all are called on the server's own thread, one at
/// a time; while one runs no other request is served. `count` may be empty, the others may not.
struct HttpCallbacks {
  /// The exposition, text format 0.0.4.
  std::function<std::string()> metrics;
  /// nullopt: ready; else one line that says why not.
  std::function<std::optional<std::string>()> not_ready;
  /// Reads the configuration anew; a message of a failure goes to the client.
  std::function<absl::Status()> reload;
  /// Called when a TLS handshake fails or takes too long.
  std::function<void()> tls_failed = {};
  /// Called once for each answer; `path` is one of the known paths or "other".
  std::function<void(std::string_view path, int code)> count;
};

struct HttpAnswer {
  int code = 200;
  std::string_view path = "other";  ///< for counting: a known path, or "other"
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string_view allow = {};  ///< the Allow header of a 405
  bool challenge = false;       ///< a 401, whose WWW-Authenticate says that a bearer token will do
  std::string body;             ///< ends with a newline
};

/// Answers one request. `method` as in the request line, `target` with or without a query, which is
/// ignored. HEAD gives the answer of GET; its body is not to be sent.
/// Errors: none; a callback that throws becomes a 500.
///
/// What `caller` needs: the role query over some stream for /metrics, admin over all of them for
/// /-/reload, nothing for the other pages. 401 for who is not known, 403 for who may not.
HttpAnswer Answer(std::string_view method, std::string_view target, const HttpCallbacks& callbacks,
                  Caller& caller);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_HTTP_ROUTES_H_
