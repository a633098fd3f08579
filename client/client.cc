#include "client/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "client/connection.h"
#include "client/convert.h"

namespace tidemark::client {
namespace {

std::string ReadPem(const char* what, const std::string& path) {
  if (path.empty()) return "";
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file || text.empty()) {
    throw Error(Code::kInvalidArgument,
                std::string(what) + " cannot be read, or is empty: \"" + path + "\"");
  }
  return text;
}

bool UsesTls(const ClientOptions& options) {
  return options.tls || !options.tls_ca.empty() || !options.tls_cert.empty();
}

bool IsThisMachine(const std::string& server) {
  // Not 127.example.com, which is a name that leads anywhere.
  const std::string host = server.substr(0, server.find(':'));
  const bool v4 =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return v4 || server.starts_with("localhost:") || server.starts_with("[::1]:") ||
         server.starts_with("unix:");
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ClientOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    throw Error(Code::kInvalidArgument, "a client certificate and its key go together");
  }
  if (!UsesTls(options)) {
    if (!options.token.empty() && !IsThisMachine(options.server)) {
      throw Error(Code::kInvalidArgument, "a token is sent over TLS, or to this machine; " +
                                              options.server + " is another one");
    }
    return grpc::InsecureChannelCredentials();
  }
  return grpc::SslCredentials(
      {.pem_root_certs = ReadPem("the file of authorities", options.tls_ca),
       .pem_private_key = ReadPem("the key of the client certificate", options.tls_key),
       .pem_cert_chain = ReadPem("the client certificate", options.tls_cert)});
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(options.keepalive.count()));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // No bound on probes without data between: a watch that pushes only changes may be silent for
  // hours.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // http_proxy in the environment is meant for the web, and would swallow even 127.0.0.1.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Exports may be large; what a daemon sends is bounded by its own limits.
  arguments.SetMaxReceiveMessageSize(-1);
  // gRPC waits for a second at first, and up to 2 minutes, before it tries to connect again; a
  // daemon is back in less than a second, or in seconds.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  return grpc::CreateCustomChannel(options.server, CredentialsOf(options), arguments);
}

}  // namespace

Connection::Connection(ClientOptions given)
    : options(std::move(given)),
      channel(MakeChannel(options)),
      streams(v1::StreamService::NewStub(channel)),
      ingest(v1::IngestService::NewStub(channel)),
      query(v1::QueryService::NewStub(channel)),
      summary(v1::SummaryService::NewStub(channel)),
      subscriptions(v1::SubscriptionService::NewStub(channel)),
      info(v1::InfoService::NewStub(channel)) {}

void Connection::Show(grpc::ClientContext& context) const {
  if (!options.token.empty()) context.AddMetadata("authorization", "Bearer " + options.token);
}

Error Connection::ToError(const grpc::Status& status) const {
  const auto code = static_cast<Code>(status.error_code());
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Error(code, "the daemon at " + options.server +
                             " cannot be reached or is not ready: " + status.error_message());
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Error(code, "the daemon at " + options.server + " did not answer within " +
                             std::to_string(options.deadline.count()) + " ms");
    case grpc::StatusCode::UNIMPLEMENTED:
      if (status.error_message().empty()) {
        return Error(code, "what answers at " + options.server + " does not know this call");
      }
      break;
    default:
      break;
  }
  return Error(code, status.error_message());
}

Client::Client(ClientOptions options)
    : connection_(std::make_shared<Connection>(std::move(options))) {}
Client::~Client() = default;

const ClientOptions& Client::options() const { return connection_->options; }

StreamInfo Client::CreateStream(const std::string& name, const StreamConfig& config) {
  v1::CreateStreamRequest request;
  request.set_name(RequireUtf8("stream name", name));
  ToProto(config, request.mutable_config());
  return FromProto(
      Call(*connection_, *connection_->streams, &v1::StreamService::Stub::CreateStream, request)
          .stream());
}

std::vector<StreamInfo> Client::ListStreams(const std::string& prefix) {
  std::vector<StreamInfo> out;
  v1::ListStreamsRequest request;
  request.set_prefix(RequireUtf8("prefix", prefix));
  do {
    const v1::ListStreamsResponse page =
        Call(*connection_, *connection_->streams, &v1::StreamService::Stub::ListStreams, request);
    for (const auto& stream : page.streams()) out.push_back(FromProto(stream));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return out;
}

StreamInfo Client::DescribeStream(const std::string& name) {
  v1::DescribeStreamRequest request;
  request.set_name(RequireUtf8("stream name", name));
  return FromProto(
      Call(*connection_, *connection_->streams, &v1::StreamService::Stub::DescribeStream, request)
          .stream());
}

void Client::DeleteStream(const std::string& name) {
  v1::DeleteStreamRequest request;
  request.set_name(RequireUtf8("stream name", name));
  Call(*connection_, *connection_->streams, &v1::StreamService::Stub::DeleteStream, request);
}

std::string Client::ExportStream(const std::string& name) {
  v1::ExportStreamRequest request;
  request.set_stream(RequireUtf8("stream name", name));
  return Call(*connection_, *connection_->summary, &v1::SummaryService::Stub::ExportStream, request)
      .file()
      .SerializeAsString();
}

StreamInfo Client::ImportStream(const std::string& name, const std::vector<std::string>& files) {
  v1::ImportStreamRequest request;
  request.set_stream(RequireUtf8("stream name", name));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].empty() || !request.add_files()->ParseFromString(files[i])) {
      throw Error(Code::kInvalidArgument, "file " + std::to_string(i + 1) + " of " +
                                              std::to_string(files.size()) +
                                              ": it is no exported stream");
    }
  }
  return FromProto(
      Call(*connection_, *connection_->summary, &v1::SummaryService::Stub::ImportStream, request)
          .stream());
}

StreamInfo Client::MergeStreams(const std::string& name, const std::vector<std::string>& from) {
  v1::MergeStreamsRequest request;
  request.set_stream(RequireUtf8("stream name", name));
  for (const std::string& one : from) request.add_from(RequireUtf8("stream name", one));
  return FromProto(
      Call(*connection_, *connection_->summary, &v1::SummaryService::Stub::MergeStreams, request)
          .stream());
}

QuantilesAnswer Client::Quantiles(const std::string& stream, const std::vector<double>& phi,
                                  const Scope& scope) {
  v1::QuantilesRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  request.mutable_phi()->Add(phi.begin(), phi.end());
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Quantiles, request));
}

RanksAnswer Client::Ranks(const std::string& stream, const std::vector<Value>& values,
                          const Scope& scope) {
  v1::RanksRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  ToProto(values, request.mutable_values());
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Ranks, request));
}

HistogramAnswer Client::EquiDepthHistogram(const std::string& stream, std::uint32_t buckets,
                                           const Scope& scope) {
  v1::HistogramRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  request.set_equi_depth(buckets);
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Histogram, request));
}

HistogramAnswer Client::Histogram(const std::string& stream, const std::vector<Value>& bounds,
                                  const Scope& scope) {
  v1::HistogramRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  ToProto(bounds, request.mutable_bounds()->mutable_values());
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Histogram, request));
}

HeavyHittersAnswer Client::HeavyHitters(const std::string& stream, double support,
                                        std::uint32_t limit, const Scope& scope, bool by_weight) {
  v1::HeavyHittersRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  request.set_support(support);
  request.set_limit(limit);
  request.set_by_weight(by_weight);
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::HeavyHitters, request));
}

CountsAnswer Client::Counts(const std::string& stream, const std::vector<Value>& items,
                            const Scope& scope, bool by_weight) {
  v1::CountsRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  ToProto(items, request.mutable_items());
  request.set_by_weight(by_weight);
  SetScope(scope, &request);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Counts, request));
}

HierarchicalHeavyHittersAnswer Client::HierarchicalHeavyHitters(const std::string& stream,
                                                                double support,
                                                                const Scope& scope) {
  v1::HierarchicalHeavyHittersRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  request.set_support(support);
  SetScope(scope, &request);
  return FromProto(Call(*connection_, *connection_->query,
                        &v1::QueryService::Stub::HierarchicalHeavyHitters, request));
}

SumsAnswer Client::Sums(const std::string& stream, const std::vector<SumRange>& ranges) {
  v1::SumsRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  for (const SumRange& range : ranges) ToProto(range, request.add_ranges());
  return FromProto(Call(*connection_, *connection_->query, &v1::QueryService::Stub::Sums, request));
}

CompareAnswer Client::Compare(const std::string& stream_a, const Scope& scope_a,
                              const std::string& stream_b, const Scope& scope_b, double threshold) {
  v1::CompareRequest request;
  request.set_stream_a(RequireUtf8("stream name", stream_a));
  request.set_stream_b(RequireUtf8("stream name", stream_b));
  if (!scope_a.whole()) ToProto(scope_a, request.mutable_scope_a());
  if (!scope_b.whole()) ToProto(scope_b, request.mutable_scope_b());
  request.set_threshold(threshold);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Compare, request));
}

SpreadAnswer Client::Spread(const std::string& stream, const SpreadOptions& options) {
  v1::SpreadRequest request;
  request.set_stream(RequireUtf8("stream name", stream));
  if (!options.scope.whole()) ToProto(options.scope, request.mutable_scope());
  request.set_low_phi(options.low_phi);
  request.set_high_phi(options.high_phi);
  request.set_trim(options.trim);
  return FromProto(
      Call(*connection_, *connection_->query, &v1::QueryService::Stub::Spread, request));
}

ServerInfo Client::Info() {
  return FromProto(Call(*connection_, *connection_->info, &v1::InfoService::Stub::GetInfo,
                        v1::GetInfoRequest{}));
}

}  // namespace tidemark::client
