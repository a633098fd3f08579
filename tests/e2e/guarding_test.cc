// A whole daemon and its peers: each has its share, by its name; secrets that others may read are
// warned of; what is refused where nobody is told is in the answers.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/access_fixture.h"

namespace tidemark::test {
namespace {

// How often the daemon's log has said so by now.
std::size_t Said(TestDaemon& daemon, const std::string& message) {
  const std::string log = daemon.process().err();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = log.find(message, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(GuardingTest, APeerIsItsName) {
  const AccessFixture fixture;
  std::vector<std::string> flags = fixture.Flags("grpc");
  flags.insert(flags.end(), {"--max-calls-per-peer", "2"});
  TestDaemon daemon(flags);
  const auto client_of = [&](const std::string& principal) {
    return client::Client({.server = daemon.address("grpc"),
                           .tls_ca = fixture.folder / "ca.pem",
                           .token = AccessFixture::Token(principal)});
  };
  client::Client ingest = client_of("ingest");
  client::Pusher pusher = ingest.Push("prod.s");
  pusher.Write(std::vector<double>{1, 2, 3});
  pusher.Finish();
  // Two connections, one name.
  client::Client first = client_of("query");
  client::Client second = client_of("query");
  client::Watch one = first.WatchQuantiles("prod.s", {0.5});
  client::Watch two = second.WatchQuantiles("prod.s", {0.5});
  ASSERT_TRUE(one.Next().has_value());
  ASSERT_TRUE(two.Next().has_value());
  EXPECT_EQ(CodeOf([&] { second.Quantiles("prod.s", {0.5}); }), client::Code::kResourceExhausted);
  EXPECT_EQ(client_of("admin").ListStreams().size(), 1U);
  client::Pusher again = ingest.Push("prod.s");
  again.Write(std::vector<double>{4});
  EXPECT_EQ(again.Finish().accepted, 1U);
  EXPECT_EQ(
      MetricIn(Http(daemon.port("http"), "/metrics", "GET", AccessFixture::Token("query")).body,
               "tidemark_peer_refused_total{protocol=\"grpc\",reason=\"calls\"}"),
      1);
}

// By default all that is on this machine is not one peer.
TEST(GuardingTest, ThisMachineIsManyPeersUnlessItIsSaidToBeOne) {
  const auto opened = [](const TestDaemon& daemon) {
    std::vector<std::unique_ptr<client::TcpProducer>> open;
    for (int i = 0; i < 4; ++i) {
      open.push_back(daemon.Producer());
      if (!open.back()->Open("s", wire::WireType::kFloat64).ok()) open.pop_back();
    }
    return open.size();
  };
  const std::string refused =
      "tidemark_peer_refused_total{protocol=\"tcp\",reason=\"connections\"}";
  {
    const TestDaemon many({"--max-connections", "4", "--max-connections-per-peer", "2"});
    EXPECT_EQ(opened(many), 4U);
    EXPECT_EQ(many.Metric(refused), 0);
  }
  const TestDaemon one({"--max-connections", "4", "--loopback-is-one-peer"});
  EXPECT_EQ(opened(one), 2U) << "half of them";
  EXPECT_EQ(one.Metric(refused), 2);
}

// Nobody tells a sender of datagrams: who asks is told, whichever way the values came.
TEST(GuardingTest, AnswersCountWhatWasRefusedOverUdp) {
  TestDaemon daemon;
  const std::uint16_t port = daemon.port("statsd");
  SendUdp(port, "s:1|h\ns:nan|h\ns:2|h\n");
  SendUdp(port, "s:nan|h\ns:text|s\n");  // of a stream of numbers the second is no value at all
  const auto refused = [&](const std::string& reason) {
    return daemon.Metric("tidemark_ingest_refused_total{source=\"statsd_udp\",reason=\"" + reason +
                         "\"}");
  };
  EXPECT_TRUE(WaitUntil([&] { return refused("nan") == 2 && refused("type_mismatch") == 1; }));
  const auto answer = daemon.client().Quantiles("s", {0.5});
  EXPECT_EQ(answer.n, 2U);
  EXPECT_EQ(answer.refused, 2U);
}

TEST(GuardingTest, SecretsThatOthersMayReadAreWarnedOf) {
  using std::filesystem::perms;
  const AccessFixture fixture;
  const std::string key = fixture.folder / "server.key";
  const std::string token = fixture.folder.Write("token", "a-token-of-somebody-0123\n");
  fixture.WriteRules("[principal.file]\ntokens = [{ file = \"token\" }]\nquery = [\"*\"]\n");
  const auto set = [](const std::string& path, perms mode) {
    std::filesystem::permissions(path, mode);
  };
  const perms owner = perms::owner_read | perms::owner_write;
  set(key, owner | perms::group_read | perms::others_read);
  set(token, owner);
  TestDaemon daemon(fixture.Flags("grpc"));
  const std::string of_key =
      "tls.key_file: \\\"" + key + "\\\" is open to others than its owner (-rw-r--r--)";
  EXPECT_EQ(Said(daemon, of_key), 1U) << daemon.process().err();
  EXPECT_EQ(Said(daemon, "is open to others"), 1U);

  std::size_t reloads = 0;
  const auto reload = [&] {
    daemon.process().Signal(SIGHUP);
    ++reloads;
    return WaitUntil([&] { return Said(daemon, "configuration reloaded") == reloads; });
  };
  set(key, owner);
  ASSERT_TRUE(reload());
  EXPECT_EQ(Said(daemon, "is open to others"), 1U) << "nothing to warn of any more";
  set(key, perms::owner_read | perms::group_read);
  set(token, owner | perms::others_write);
  ASSERT_TRUE(reload());
  EXPECT_EQ(Said(daemon, "is open to others than its owner (-r--r-----)"), 1U);
  EXPECT_EQ(Said(daemon, "a token's file \\\"" + token + "\\\" is open to others"), 1U);

  std::vector<std::string> check = fixture.Flags();
  check.push_back("--check-config");
  const Completed checked = RunProgram({.program = TIDEMARKD_PROGRAM, .arguments = check});
  EXPECT_EQ(checked.status, 0);
  EXPECT_NE(checked.err.find("warning: tls.key_file: \"" + key + "\" is open to others"),
            std::string::npos)
      << checked.err;
}

}  // namespace
}  // namespace tidemark::test
