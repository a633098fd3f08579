// What each call needs: one table for all of tidemark.v1. A call that it does not have is refused.
#ifndef TIDEMARK_SERVER_RPC_ACCESS_RULES_H_
#define TIDEMARK_SERVER_RPC_ACCESS_RULES_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/rpc/message_bytes.h"

namespace tidemark::server {

/// A field of a request that names streams, and the role that the caller needs over them.
struct NamedStreams {
  Role role = Role::kQuery;
  /// "stream", or "quantiles.stream" of a message in it; the field may be repeated. Empty: none.
  std::string_view path = {};
};

struct RpcRule {
  std::string_view method;  ///< "tidemark.v1.QueryService.Quantiles"
  /// Needed over some stream before the request is even parsed.
  Role role = Role::kQuery;
  /// Any role will do, instead.
  bool any_role = false;
  std::span<const NamedStreams> streams = {};
  /// Each message of the call names its stream by itself; it is checked where it is taken in.
  bool in_each_message = false;
};

std::span<const RpcRule> RpcRules();
/// That of the call whose requests are of this type: METHODRequest. Null: the table has none.
const RpcRule* FindRpcRule(const google::protobuf::Descriptor& request);

/// Who makes a call: the token of its `authorization` metadata ("Bearer TOKEN"), the names of the
/// connection's client certificate, where it comes from.
Credentials CredentialsOf(const grpc::ServerContextBase& context);
/// `guard` may be null, and outlives the caller.
inline Caller CallerOf(const Guard* guard, const grpc::ServerContextBase& context) {
  return Caller(guard, "grpc", CredentialsOf(context));
}

/// Before a request is parsed: UNAUTHENTICATED or PERMISSION_DENIED for who may not make this call
/// at all, INTERNAL for a call that the table does not have.
absl::Status MayCall(Caller& caller, const google::protobuf::Descriptor& request);
/// After: every stream that the request names, by its rule.
absl::Status MayAsk(Caller& caller, const google::protobuf::Message& request);

/// ParseRequest between the two.
template <class Request>
absl::Status ParseAllowed(Caller& caller, const grpc::ByteBuffer& bytes, Request& request) {
  absl::Status status = MayCall(caller, *Request::descriptor());
  if (status.ok()) status = ParseRequest(bytes, request);
  if (status.ok()) status = MayAsk(caller, request);
  return status;
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_ACCESS_RULES_H_
