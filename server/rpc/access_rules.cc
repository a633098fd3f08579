#include "server/rpc/access_rules.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/access/loopback.h"
#include "server/window/concat.h"

namespace tidemark::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::array kQueriesStream = {NamedStreams{Role::kQuery, "stream"}};
constexpr std::array kQueriesName = {NamedStreams{Role::kQuery, "name"}};
constexpr std::array kAdminsStream = {NamedStreams{Role::kAdmin, "stream"}};
constexpr std::array kAdminsName = {NamedStreams{Role::kAdmin, "name"}};
constexpr std::array kCompared = {NamedStreams{Role::kQuery, "stream_a"},
                                  NamedStreams{Role::kQuery, "stream_b"}};
constexpr std::array kMerged = {NamedStreams{Role::kAdmin, "stream"},
                                NamedStreams{Role::kQuery, "from"}};
constexpr std::array kWatched = {NamedStreams{Role::kQuery, "quantiles.stream"},
                                 NamedStreams{Role::kQuery, "heavy_hitters.stream"},
                                 NamedStreams{Role::kQuery, "hierarchical_heavy_hitters.stream"},
                                 NamedStreams{Role::kQuery, "sums.stream"},
                                 NamedStreams{Role::kQuery, "subscription"}};
// A subscription's name is one of those that patterns are of, as its stream's.
constexpr std::array kSubscribed = {
    NamedStreams{Role::kQuery, "name"},
    NamedStreams{Role::kQuery, "watch.quantiles.stream"},
    NamedStreams{Role::kQuery, "watch.heavy_hitters.stream"},
    NamedStreams{Role::kQuery, "watch.hierarchical_heavy_hitters.stream"},
    NamedStreams{Role::kQuery, "watch.sums.stream"},
    NamedStreams{Role::kQuery, "watch.subscription"}};

constexpr RpcRule Query(std::string_view method) {
  return {.method = method, .role = Role::kQuery, .streams = kQueriesStream};
}

constexpr std::array kRules = {
    RpcRule{
        .method = "tidemark.v1.IngestService.Push", .role = Role::kIngest, .in_each_message = true},
    RpcRule{.method = "tidemark.v1.IngestService.PushAcknowledged",
            .role = Role::kIngest,
            .in_each_message = true},
    Query("tidemark.v1.QueryService.Quantiles"),
    Query("tidemark.v1.QueryService.Ranks"),
    Query("tidemark.v1.QueryService.Histogram"),
    Query("tidemark.v1.QueryService.HeavyHitters"),
    Query("tidemark.v1.QueryService.Counts"),
    Query("tidemark.v1.QueryService.HierarchicalHeavyHitters"),
    Query("tidemark.v1.QueryService.Sums"),
    Query("tidemark.v1.QueryService.Spread"),
    RpcRule{.method = "tidemark.v1.QueryService.Compare", .streams = kCompared},
    RpcRule{.method = "tidemark.v1.QueryService.Watch", .streams = kWatched},
    RpcRule{.method = "tidemark.v1.StreamService.CreateStream",
            .role = Role::kAdmin,
            .streams = kAdminsName},
    // Shows the streams that the caller sees.
    RpcRule{.method = "tidemark.v1.StreamService.ListStreams", .any_role = true},
    RpcRule{.method = "tidemark.v1.StreamService.DescribeStream", .streams = kQueriesName},
    RpcRule{.method = "tidemark.v1.StreamService.DeleteStream",
            .role = Role::kAdmin,
            .streams = kAdminsName},
    Query("tidemark.v1.SummaryService.ExportStream"),
    RpcRule{.method = "tidemark.v1.SummaryService.ImportStream",
            .role = Role::kAdmin,
            .streams = kAdminsStream},
    RpcRule{.method = "tidemark.v1.SummaryService.MergeStreams",
            .role = Role::kAdmin,
            .streams = kMerged},
    RpcRule{.method = "tidemark.v1.SubscriptionService.CreateSubscription", .streams = kSubscribed},
    // Its stream is asked for when it is found.
    RpcRule{.method = "tidemark.v1.SubscriptionService.DeleteSubscription",
            .streams = kQueriesName},
    // Shows those of which the caller sees the name and the stream.
    RpcRule{.method = "tidemark.v1.SubscriptionService.ListSubscriptions", .any_role = true},
    RpcRule{.method = "tidemark.v1.InfoService.GetInfo", .any_role = true},
};

absl::Status MayNameAll(Caller& caller, Role role, const Message& message,
                        const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  if (!field.is_repeated()) {
    return caller.MayOver(role, reflection.GetStringReference(message, &field, &scratch));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    absl::Status status =
        caller.MayOver(role, reflection.GetRepeatedStringReference(message, &field, i, &scratch));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Down the path to the field that names; a message on the way that is not set names nothing.
absl::Status MayName(Caller& caller, const NamedStreams& named, const Message& request) {
  const Message* message = &request;
  const std::vector<std::string> parts = absl::StrSplit(std::string(named.path), '.');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const FieldDescriptor* const inner = message->GetDescriptor()->FindFieldByName(parts[i]);
    if (inner == nullptr) return absl::InternalError(Concat("no field ", named.path));
    if (!message->GetReflection()->HasField(*message, inner)) return absl::OkStatus();
    message = &message->GetReflection()->GetMessage(*message, inner);
  }
  const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(parts.back());
  if (field == nullptr) return absl::InternalError(Concat("no field ", named.path));
  // One of several ways to ask, and another one was taken.
  const bool one_of = field->containing_oneof() != nullptr;
  if (one_of && !message->GetReflection()->HasField(*message, field)) return absl::OkStatus();
  return MayNameAll(caller, named.role, *message, *field);
}

// The address in a peer as gRPC writes it: "ipv4:127.0.0.1:80", "ipv6:%5B::1%5D:80", in a URI or
// with the brackets. Empty: it has none.
std::string_view AddressOf(std::string_view peer) {
  if (peer.starts_with("ipv4:")) return peer.substr(5, peer.find(':', 5) - 5);
  for (const auto& [open, close] : {std::pair("ipv6:%5B", "%5D"), std::pair("ipv6:[", "]")}) {
    if (!peer.starts_with(open)) continue;
    peer.remove_prefix(std::string_view(open).size());
    return peer.substr(0, peer.find(close));
  }
  return {};
}

void AddNames(const grpc::AuthContext& auth, const char* property,
              std::vector<std::string>& names) {
  for (const grpc::string_ref& value : auth.FindPropertyValues(property)) {
    names.emplace_back(value.data(), value.size());
  }
}

}  // namespace

std::span<const RpcRule> RpcRules() { return kRules; }

const RpcRule* FindRpcRule(const google::protobuf::Descriptor& request) {
  constexpr std::string_view kEnd = "Request";
  const std::string_view type = request.name();
  if (!type.ends_with(kEnd)) return nullptr;
  const std::string_view name = type.substr(0, type.size() - kEnd.size());
  const auto found = std::find_if(kRules.begin(), kRules.end(), [&](const RpcRule& rule) {
    return rule.method.substr(rule.method.rfind('.') + 1) == name;
  });
  return found == kRules.end() ? nullptr : &*found;
}

Credentials CredentialsOf(const grpc::ServerContextBase& context) {
  Credentials shown;
  const std::string peer = context.peer();
  shown.address = std::string(AddressOf(peer));
  shown.loopback = peer.starts_with("unix:") || IsLoopback(shown.address);
  const auto& metadata = context.client_metadata();
  // More than one is as wrong as a wrong one: which of them would be meant?
  if (const auto range = metadata.equal_range("authorization"); range.first != range.second) {
    const std::string_view text(range.first->second.data(), range.first->second.size());
    shown.token = std::next(range.first) == range.second ? BearerToken(text) : HashToken("");
  }
  const auto auth = context.auth_context();
  // Without a name gRPC calls the peer not authenticated; its certificate was verified all the
  // same.
  shown.certificate = auth && !auth->FindPropertyValues("x509_pem_cert").empty();
  if (auth && auth->IsPeerAuthenticated()) {
    AddNames(*auth, "x509_common_name", shown.certificate_names);
    for (const char* kind : {"peer_dns", "peer_uri", "peer_email"}) {
      AddNames(*auth, kind, shown.certificate_names);
    }
  }
  return shown;
}

absl::Status MayCall(Caller& caller, const google::protobuf::Descriptor& request) {
  if (!caller.guarded()) return absl::OkStatus();
  const RpcRule* const rule = FindRpcRule(request);
  if (rule == nullptr) {
    return absl::InternalError(Concat("a call with ", request.name(), " has no rule of access"));
  }
  return rule->any_role ? caller.MayAnything() : caller.MayOverAny(rule->role);
}

absl::Status MayAsk(Caller& caller, const Message& request) {
  if (!caller.guarded()) return absl::OkStatus();
  const RpcRule* const rule = FindRpcRule(*request.GetDescriptor());
  if (rule == nullptr) return absl::InternalError("a call without a rule of access");
  for (const NamedStreams& named : rule->streams) {
    if (absl::Status status = MayName(caller, named, request); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace tidemark::server
