// Who gets in over gRPC: every call of the contract by every kind of caller; and what a reload of
// rules and certificates does to those who are there.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/e2e/access_fixture.h"
#include "tidemark/v1/info.pb.h"
#include "tidemark/v1/ingest.pb.h"
#include "tidemark/v1/query.pb.h"
#include "tidemark/v1/streams.pb.h"
#include "tidemark/v1/subscriptions.pb.h"
#include "tidemark/v1/summary.pb.h"

namespace tidemark::test {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::StatusCode;

// What each call needs, by hand: the daemon's own table is what is tested.
const std::map<std::string, std::string> kNeeds = {
    {"Push", "ingest"},
    {"PushAcknowledged", "ingest"},
    {"Quantiles", "query"},
    {"Ranks", "query"},
    {"Histogram", "query"},
    {"HeavyHitters", "query"},
    {"Counts", "query"},
    {"HierarchicalHeavyHitters", "query"},
    {"Sums", "query"},
    {"Compare", "query"},
    {"Spread", "query"},
    {"Watch", "query"},
    {"CreateStream", "admin"},
    {"ListStreams", "any"},
    {"DescribeStream", "query"},
    {"DeleteStream", "admin"},
    {"ExportStream", "query"},
    {"ImportStream", "admin"},
    {"MergeStreams", "admin query"},
    {"CreateSubscription", "query"},
    {"DeleteSubscription", "query"},
    {"ListSubscriptions", "any"},
    {"GetInfo", "any"},
};

std::vector<const MethodDescriptor*> AllMethods() {
  // Linked in, so that the pool has their files.
  const std::set<const FileDescriptor*> linked = {
      v1::GetInfoRequest::descriptor()->file(),
      v1::PushRequest::descriptor()->file(),
      v1::QuantilesRequest::descriptor()->file(),
      v1::CreateStreamRequest::descriptor()->file(),
      v1::ExportStreamRequest::descriptor()->file(),
      v1::CreateSubscriptionRequest::descriptor()->file()};
  std::vector<const MethodDescriptor*> methods;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TIDEMARK_SOURCE_FOLDER) +
                                                               "/proto/tidemark/v1")) {
    if (entry.path().extension() != ".proto") continue;
    const std::string name = "tidemark/v1/" + entry.path().filename().string();
    const FileDescriptor* const file = DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_TRUE(file != nullptr && linked.contains(file)) << name << " is not in this test";
    for (int i = 0; file != nullptr && i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(file->service(i)->method(j));
      }
    }
  }
  return methods;
}

// Names `stream` wherever a request names one.
void NameStreams(Message& message, const std::string& stream) {
  static const std::set<std::string> kNames = {"stream", "stream_a", "stream_b", "name", "from"};
  static const std::set<std::string> kInside = {"batch", "quantiles", "watch"};
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* const field = message.GetDescriptor()->field(i);
    const auto* const reflection = message.GetReflection();
    if (field->type() == FieldDescriptor::TYPE_STRING && kNames.contains(field->name())) {
      if (field->is_repeated()) {
        reflection->AddString(&message, field, stream);
      } else {
        reflection->SetString(&message, field, stream);
      }
    } else if (field->type() == FieldDescriptor::TYPE_MESSAGE && kInside.contains(field->name())) {
      NameStreams(*reflection->MutableMessage(&message, field), stream);
    }
  }
}

struct Outcome {
  StatusCode code = StatusCode::OK;
  std::string message;
};

class GrpcCaller {
 public:
  GrpcCaller(const TestDaemon& daemon, const AccessFixture& fixture, std::string token,
             const Identity& identity = {})
      : token_(std::move(token)),
        channel_(grpc::CreateChannel(
            daemon.address("grpc"),
            grpc::SslCredentials({.pem_root_certs = fixture.authority.certificate(),
                                  .pem_private_key = identity.key,
                                  .pem_cert_chain = identity.certificate}))),
        stub_(channel_) {}

  // One message there, and what comes first: an answer or the end.
  Outcome Call(const MethodDescriptor& method, const std::string& stream) {
    google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<Message> request(factory.GetPrototype(method.input_type())->New());
    NameStreams(*request, stream);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    if (!token_.empty()) context.AddMetadata("authorization", "Bearer " + token_);
    grpc::CompletionQueue queue;
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const auto call = stub_.PrepareCall(
        &context, "/" + method.service()->full_name() + "/" + method.name(), &queue);
    call->StartCall(nullptr);
    grpc::ByteBuffer answer;
    bool answered = false;
    if (next()) {
      const grpc::Slice bytes(request->SerializeAsString());
      call->WriteLast(grpc::ByteBuffer(&bytes, 1), {}, nullptr);
      next();
      call->Read(&answer, nullptr);
      answered = next();
    }
    if (answered && method.server_streaming()) context.TryCancel();  // it has been let in
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    queue.Shutdown();
    if (answered) return Answered(method, answer);
    return {status.error_code(), status.error_message()};
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  // Of a refused batch the answer says it.
  static Outcome Answered(const MethodDescriptor& method, const grpc::ByteBuffer& answer) {
    if (method.name() != "PushAcknowledged") return {};
    std::vector<grpc::Slice> slices;
    answer.Dump(&slices).ok();
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    v1::PushAcknowledgedResponse response;
    response.ParseFromString(bytes);
    return {static_cast<StatusCode>(response.code()), response.message()};
  }

  const std::string token_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

bool LetIn(const Outcome& outcome) {
  return outcome.code != StatusCode::UNAUTHENTICATED &&
         outcome.code != StatusCode::PERMISSION_DENIED && outcome.code != StatusCode::UNAVAILABLE &&
         outcome.code != StatusCode::INTERNAL && outcome.code != StatusCode::UNKNOWN &&
         outcome.code != StatusCode::DEADLINE_EXCEEDED;
}

class AccessTest : public testing::Test {
 protected:
  Identity Named(const std::string& name, long expires_in_s = kDaySeconds) const {
    return IdentityOf(fixture_.authority.Sign({.common_name = name, .expires_in_s = expires_in_s}));
  }
  // Of a daemon with rules, whose HTTP is in clear.
  static double Metric(const TestDaemon& daemon, const std::string& sample) {
    return MetricIn(
        Http(daemon.port("http"), "/metrics", "GET", AccessFixture::Token("query")).body, sample);
  }
  const AccessFixture fixture_;
};

TEST_F(AccessTest, EveryCallByEveryCaller) {
  TestDaemon daemon(fixture_.Flags("grpc"));
  const std::vector<const MethodDescriptor*> methods = AllMethods();
  ASSERT_EQ(methods.size(), kNeeds.size());

  struct Case {
    std::string caller;
    std::string roles;   // those that it has over prod.*
    StatusCode refusal;  // of what it has no role for
    GrpcCaller call;
  };
  const TestCertificate stranger = TestCertificate::Authority("another authority");
  std::vector<std::unique_ptr<Case>> cases;
  const auto add = [&](std::string caller, std::string roles, StatusCode refusal,
                       const std::string& token, const Identity& identity = {}) {
    cases.push_back(std::unique_ptr<Case>(new Case{std::move(caller), std::move(roles), refusal,
                                                   GrpcCaller(daemon, fixture_, token, identity)}));
  };
  add("nobody", "", StatusCode::UNAUTHENTICATED, "");
  add("a wrong token", "", StatusCode::UNAUTHENTICATED, "no-token-that-anybody-gave");
  add("an expired token", "", StatusCode::UNAUTHENTICATED, AccessFixture::Token("expired"));
  add("an unknown certificate", "", StatusCode::UNAUTHENTICATED, "", Named("nobody.example"));
  add("an expired certificate", "", StatusCode::UNAVAILABLE, "", Named("admin.example", -3600));
  add("a stranger's certificate", "", StatusCode::UNAVAILABLE, "",
      IdentityOf(stranger.Sign({.common_name = "admin.example"})));
  add("a wrong token beside a right certificate", "", StatusCode::UNAUTHENTICATED, "wrong",
      Named("query.example"));
  for (const std::string role : {"ingest", "query", "admin"}) {
    add(role + "'s token", role, StatusCode::PERMISSION_DENIED, AccessFixture::Token(role));
    add(role + "'s certificate", role, StatusCode::PERMISSION_DENIED, "", Named(role + ".example"));
  }
  add("another's token", "other", StatusCode::PERMISSION_DENIED, AccessFixture::Token("other"));

  int refused = 0;
  for (const auto& one : cases) {
    for (const MethodDescriptor* method : methods) {
      const auto needs = kNeeds.find(method->name());
      ASSERT_NE(needs, kNeeds.end()) << method->full_name() << " has no rule in this test";
      const bool expected =
          needs->second == "any" ? !one->roles.empty() : needs->second == one->roles;
      const Outcome outcome = one->call.Call(*method, "prod.s");
      EXPECT_EQ(LetIn(outcome), expected) << one->caller << " calls " << method->name() << ": "
                                          << outcome.code << " " << outcome.message;
      if (!expected) {
        EXPECT_EQ(outcome.code, one->refusal) << one->caller << " calls " << method->name();
        EXPECT_FALSE(outcome.message.empty());
        refused += outcome.code == StatusCode::UNAVAILABLE ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(Metric(daemon, "tidemark_access_refused_total{protocol=\"grpc\"}"), refused);
  for (const char* secret : {"no-token-that-anybody-gave", "token-of-"}) {
    EXPECT_EQ(daemon.process().err().find(secret), std::string::npos);
  }
}

// A call that the daemon's table lacks is refused where there are rules.
TEST_F(AccessTest, RolesAddUp) {
  fixture_.WriteRules(
      "[principal.both]\ncertificates = [\"both.example\"]\n"
      "admin = [\"prod.*\"]\nquery = [\"prod.*\"]\n");
  TestDaemon daemon(fixture_.Flags("grpc"));
  GrpcCaller both(daemon, fixture_, "", Named("both.example"));
  for (const MethodDescriptor* method : AllMethods()) {
    const bool expected = kNeeds.at(method->name()) != "ingest";
    EXPECT_EQ(LetIn(both.Call(*method, "prod.s")), expected) << method->name();
    const Outcome elsewhere = both.Call(*method, "test.s");
    const bool names_none = kNeeds.at(method->name()) == "any";
    EXPECT_EQ(LetIn(elsewhere), names_none) << method->name() << ": " << elsewhere.message;
  }
}

client::ClientOptions OptionsFor(const TestDaemon& daemon, const AccessFixture& fixture,
                                 const std::string& principal) {
  return {.server = daemon.address("grpc"),
          .deadline = std::chrono::milliseconds(30'000),
          .tls_ca = fixture.folder / "ca.pem",
          .token = AccessFixture::Token(principal)};
}

TEST_F(AccessTest, AListShowsWhatItsReaderMaySee) {
  TestDaemon daemon(fixture_.Flags("grpc"));
  client::Client admin(OptionsFor(daemon, fixture_, "admin"));
  for (const char* name : {"other.x", "prod.a", "prod.b", "test.c"}) admin.CreateStream(name);
  const auto names = [&](const std::string& principal) {
    std::string all;
    for (const auto& stream :
         client::Client(OptionsFor(daemon, fixture_, principal)).ListStreams()) {
      all += stream.name + " ";
    }
    return all;
  };
  EXPECT_EQ(names("admin"), "other.x prod.a prod.b test.c ");
  EXPECT_EQ(names("query"), "prod.a prod.b ");
  EXPECT_EQ(names("other"), "other.x ");
}

TEST_F(AccessTest, TheCommandShowsATokenFromAFileOrTheEnvironment) {
  TestDaemon daemon(fixture_.Flags("grpc"));
  const std::string token = fixture_.folder.Write("token", AccessFixture::Token("query") + "\n");
  const std::string ca = fixture_.folder / "ca.pem";
  EXPECT_EQ(RunTidemark(daemon, {"--tls-ca", ca, "--token-file", token, "info"}).status, 0);
  const Completed refused = RunTidemark(daemon, {"--tls-ca", ca, "info"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("(UNAUTHENTICATED)"), std::string::npos) << refused.err;
  EXPECT_EQ(RunProgram({.program = TIDEMARK_PROGRAM,
                        .arguments = {"--server", daemon.address("grpc"), "--tls-ca", ca, "info"},
                        .environment = {{"TIDEMARK_TOKEN", AccessFixture::Token("admin")}}})
                .status,
            0);
  const Identity admin = Named("admin.example");
  const std::string cert = fixture_.folder.Write("admin.pem", admin.certificate);
  const std::string key = fixture_.folder.Write("admin.key", admin.key);
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--tls-ca", ca, "--tls-cert", cert, "--tls-key", key});
    return RunTidemark(daemon, more);
  };
  EXPECT_EQ(with({"create", "prod.new"}).status, 0);
  EXPECT_EQ(with({"quantile", "prod.new", "0.5"}).status, 1);
  const Completed in_clear =
      RunProgram({.program = TIDEMARK_PROGRAM,
                  .arguments = {"--server", "192.0.2.1:7070", "--token-file", token, "info"}});
  EXPECT_EQ(in_clear.status, 1);
  EXPECT_NE(in_clear.err.find("a token is sent over TLS"), std::string::npos) << in_clear.err;
}

TEST_F(AccessTest, WithoutAuthoritiesNoClientIsAskedForACertificate) {
  TestDaemon daemon({"--rules-file", fixture_.folder / "rules.toml", "--tls-cert-file",
                     fixture_.folder / "server.pem", "--tls-key-file",
                     fixture_.folder / "server.key", "--tls-listeners", "grpc"});
  EXPECT_EQ(client::Client(OptionsFor(daemon, fixture_, "query")).Info().streams, 0U);
  client::ClientOptions options = OptionsFor(daemon, fixture_, "query");
  options.token = "";
  const Identity admin = Named("admin.example");
  options.tls_cert = fixture_.folder.Write("admin.pem", admin.certificate);
  options.tls_key = fixture_.folder.Write("admin.key", admin.key);
  EXPECT_EQ(CodeOf([&] { client::Client(options).Info(); }), client::Code::kUnauthenticated)
      << "a certificate that nobody checked counts for nothing";
}

TEST_F(AccessTest, WhereCertificatesAreRequiredATokenAloneIsNotEnough) {
  std::vector<std::string> flags = fixture_.Flags("grpc http");
  flags.push_back("--tls-require-client-cert");
  TestDaemon daemon(flags);
  client::ClientOptions options = OptionsFor(daemon, fixture_, "query");
  EXPECT_EQ(CodeOf([&] { client::Client(options).Info(); }), client::Code::kUnavailable);
  EXPECT_EQ(Https(daemon.port("http"), fixture_.authority.certificate(), "/-/ready").code, 0);
  const Identity query = Named("query.example");
  options.token = "";
  options.tls_cert = fixture_.folder.Write("query.pem", query.certificate);
  options.tls_key = fixture_.folder.Write("query.key", query.key);
  EXPECT_EQ(client::Client(options).Info().streams, 0U);
  EXPECT_EQ(
      Https(daemon.port("http"), fixture_.authority.certificate(), "/metrics", "", query).code,
      200);
}

// How often the daemon's log has said so by now.
std::size_t Said(TestDaemon& daemon, const std::string& message) {
  const std::string log = daemon.process().err();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = log.find(message, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_F(AccessTest, AReloadHoldsForThoseWhoAreThereOrChangesNothing) {
  TestDaemon daemon(fixture_.Flags("grpc"));
  const auto reload = [&](const std::string& expected) {
    const std::size_t before = Said(daemon, expected);
    daemon.process().Signal(SIGHUP);
    return WaitUntil([&] { return Said(daemon, expected) > before; });
  };
  client::Client ingest(OptionsFor(daemon, fixture_, "ingest"));
  client::AcknowledgedPusher pusher = ingest.PushAcknowledged("prod.s", {});
  pusher.Write(std::vector<double>{1, 2, 3});
  pusher.Flush();
  client::Client query(OptionsFor(daemon, fixture_, "query"));
  client::Watch watch =
      query.WatchQuantiles("prod.s", {0.5}, {.interval = std::chrono::microseconds(20'000)});
  ASSERT_TRUE(watch.Next().has_value());

  // A file that is wrong changes nothing, and says so once.
  const std::string rules = ReadFile(fixture_.folder / "rules.toml");
  fixture_.folder.Write("rules.toml", "[principal.x]\nquerry = []\n");
  EXPECT_TRUE(reload("rules.toml:2:1: unknown key"));
  fixture_.folder.Write("rules.toml", rules);
  const std::string key = ReadFile(fixture_.folder / "server.key");
  fixture_.folder.Write("server.key", fixture_.authority.key());
  EXPECT_TRUE(reload("is not the key of"));
  fixture_.folder.Write("server.key", key);
  EXPECT_EQ(Said(daemon, "reload refused; the configuration in use stays"), 2U);
  EXPECT_EQ(Metric(daemon, "tidemark_config_reloads_total{result=\"failed\"}"), 2);
  ASSERT_TRUE(watch.Next().has_value());
  pusher.Write(std::vector<double>{4});
  pusher.Flush();

  // Another certificate: new connections get it, and open ones stay.
  const TestCertificate other = TestCertificate::Authority("another authority");
  fixture_.WriteServer(
      other.Sign({.common_name = "localhost", .alternative_names = "IP:127.0.0.1"}));
  EXPECT_TRUE(reload("configuration reloaded"));
  ASSERT_TRUE(watch.Next().has_value());
  pusher.Write(std::vector<double>{5});
  pusher.Flush();
  EXPECT_FALSE(TlsConnection(daemon.port("grpc"), fixture_.authority.certificate()).good());
  const TlsConnection fresh(daemon.port("grpc"), other.certificate());
  EXPECT_TRUE(fresh.good()) << fresh.error();

  // Rules that know neither of them any more.
  fixture_.folder.Write("rules.toml", "[principal.anonymous]\nquery = [\"*\"]\n");
  EXPECT_TRUE(reload("configuration reloaded"));
  EXPECT_EQ(CodeOf([&] {
              while (watch.Next()) {
              }
            }),
            client::Code::kUnauthenticated);
  client::Code code = CodeOf([&] {
    pusher.Write(std::vector<double>{6});
    pusher.Finish();
  });
  EXPECT_TRUE(code == client::Code::kUnauthenticated || code == client::Code::kOk)
      << static_cast<int>(code);
  EXPECT_EQ(query.options().token, AccessFixture::Token("query"));
  EXPECT_EQ(CodeOf([&] { query.Quantiles("prod.s", {0.5}); }), client::Code::kUnauthenticated);
  // Anonymous over TLS, with the new certificate.
  client::Client anonymous({.server = daemon.address("grpc"),
                            .tls_ca = fixture_.folder.Write("other.pem", other.certificate())});
  EXPECT_EQ(anonymous.DescribeStream("prod.s").count, 5U);
}

// Somebody whose certificate was verified is somebody, and nobody that the rules know.
TEST_F(AccessTest, ACertificateWithoutANameIsNotAnonymous) {
  fixture_.WriteRules("[principal.anonymous]\nquery = [\"*\"]\ningest = [\"*\"]\n");
  TestDaemon daemon(fixture_.Flags("grpc http"));
  const Identity nameless = Named("");
  client::ClientOptions options = OptionsFor(daemon, fixture_, "query");
  options.token = "";
  EXPECT_EQ(client::Client(options).Info().streams, 0U) << "anonymous may";
  options.tls_cert = fixture_.folder.Write("nameless.pem", nameless.certificate);
  options.tls_key = fixture_.folder.Write("nameless.key", nameless.key);
  EXPECT_EQ(CodeOf([&] { client::Client(options).Info(); }), client::Code::kUnauthenticated);
  const std::string ca = fixture_.authority.certificate();
  EXPECT_EQ(Https(daemon.port("http"), ca, "/metrics").code, 200);
  EXPECT_EQ(Https(daemon.port("http"), ca, "/metrics", "", nameless).code, 401);
}

// What is no file where a file should be is a fault like any other.
TEST_F(AccessTest, AFolderInPlaceOfAFileEndsNothing) {
  TestDaemon daemon(fixture_.Flags("grpc"));
  fixture_.folder.Write("rules.toml", "[principal.x]\ntokens = [{ file = \".\" }]\n");
  daemon.process().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Said(daemon, "Is a directory") == 1; }));
  std::filesystem::remove(fixture_.folder / "rules.toml");
  std::filesystem::create_directory(fixture_.folder / "rules.toml");
  daemon.process().Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Said(daemon, "Is a directory") == 2; }));
  EXPECT_EQ(Metric(daemon, "tidemark_config_reloads_total{result=\"failed\"}"), 2);
  EXPECT_EQ(client::Client(OptionsFor(daemon, fixture_, "query")).Info().streams, 0U);
  const Completed checked =
      RunProgram({.program = TIDEMARKD_PROGRAM,
                  .arguments = {"--rules-file", fixture_.folder.path(), "--check-config"}});
  EXPECT_EQ(checked.status, 2);
  EXPECT_NE(checked.err.find("access.rules_file: "), std::string::npos) << checked.err;
  EXPECT_NE(checked.err.find("Is a directory"), std::string::npos) << checked.err;
}

TEST_F(AccessTest, BeyondThisMachineNeedsBothOrAnExplicitSetting) {
  const auto check = [](std::vector<std::string> flags) {
    flags.push_back("--check-config");
    return RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = std::move(flags)});
  };
  const Completed refused = check({"--tcp", "0.0.0.0:0"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("listen.tcp (0.0.0.0:0) has neither TLS nor rules"), std::string::npos)
      << refused.err;
  std::vector<std::string> flags = fixture_.Flags();
  flags.insert(flags.end(), {"--tcp", "0.0.0.0:0"});
  EXPECT_EQ(check(flags).status, 0);
  flags = fixture_.Flags("grpc http");
  flags.insert(flags.end(), {"--tcp", "0.0.0.0:0"});
  EXPECT_NE(check(flags).err.find("has no TLS"), std::string::npos);
  TestDaemon daemon({"--tcp", "0.0.0.0:0", "--allow-insecure"});
  EXPECT_EQ(Said(daemon, "insecure: other machines reach a listener"), 1U);
  // Faulty files are faults of the configuration.
  fixture_.folder.Write("rules.toml", "x = 1\n");
  const Completed faulty = check(fixture_.Flags());
  EXPECT_EQ(faulty.status, 2);
  EXPECT_NE(faulty.err.find("rules.toml:1:1: unknown key \"x\""), std::string::npos) << faulty.err;
}

}  // namespace
}  // namespace tidemark::test
