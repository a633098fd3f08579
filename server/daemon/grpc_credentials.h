// TLS for the gRPC server, with a certificate that can be replaced while it serves.
#ifndef TIDEMARK_SERVER_DAEMON_GRPC_CREDENTIALS_H_
#define TIDEMARK_SERVER_DAEMON_GRPC_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/access/tls_material.h"

namespace tidemark::server {

/// Every new connection is made with what `tls` holds then; open ones stay as they are. Whether
/// clients' certificates are asked for is that of now. `tls` outlives the server.
std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(const TlsHolder& tls);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_GRPC_CREDENTIALS_H_
