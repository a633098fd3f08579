// What gRPC says in words only: its log, as lines of the daemon's, and the handshakes that failed.
//
// gRPC 1.51 tells no one that a TLS handshake failed, but for a line of its log at the level debug:
// "Handshaking failed: ...", once for each connection that does not come to its end, whatever the
// reason. So that level is asked for, those lines are counted, and the others of it thrown away
// (tests/e2e/access_ports_test.cc fails where another version says it otherwise). Where the end of
// HTTP/2's handshake is waited for in vain gRPC closes the connection and says nothing.
#ifndef TIDEMARK_SERVER_DAEMON_GRPC_LOG_H_
#define TIDEMARK_SERVER_DAEMON_GRPC_LOG_H_

#include <string_view>

#include "server/telemetry/metrics.h"

namespace tidemark::server {

/// From now on gRPC's log, which is one of the whole process, goes here: errors to the daemon's
/// log, one a second at most; failed handshakes to `handshakes_failed`, or nowhere if that is null.
/// Thread: any. `handshakes_failed` outlives the next call.
void TakeGrpcLog(prometheus::Counter* handshakes_failed);

/// Whether a line of gRPC's log says that a handshake failed. `file` is where it was written.
bool SaysHandshakeFailed(std::string_view file, std::string_view message);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_GRPC_LOG_H_
