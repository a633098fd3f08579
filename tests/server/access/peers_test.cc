// Shares of a peer's limits: who is one peer, what is refused, what comes back.
#include "server/access/peers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "server/access/guard.h"

namespace tidemark::server {
namespace {

TEST(PeerOfAddressTest, OneHostIsOnePeer) {
  EXPECT_EQ(PeerOfAddress("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(PeerOfAddress("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(PeerOfAddress("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(PeerOfAddress("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_NE(PeerOfAddress("2001:db8:1:3::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(PeerOfAddress("fe80::1%eth0"), "fe80::/64");
  EXPECT_EQ(PeerOfAddress("not an address"), "not an address");
}

class PeerTableTest : public ::testing::Test {
 protected:
  absl::Status Take(const std::string& peer, PeerResource what, std::uint64_t amount,
                    PeerShare& share) {
    return table_.Take(peer, what, amount, "tcp", share);
  }
  double Refused(const std::string& reason) { return metrics_.PeerRefused("tcp", reason).Value(); }

  Metrics metrics_{"test"};
  PeerTable table_{{.connections = 2, .calls = 0, .bytes = 100}, metrics_};
};

TEST_F(PeerTableTest, EachPeerHasItsOwnLimit) {
  PeerShare shares[4];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Take("a", PeerResource::kConnections, 1, shares[i]).ok());
  }
  EXPECT_EQ(Take("a", PeerResource::kConnections, 1, shares[2]),
            absl::ResourceExhaustedError(
                "this peer has 2 connections, which is the limit of one peer; try again later"));
  EXPECT_EQ(Refused("connections"), 1);
  EXPECT_TRUE(Take("b", PeerResource::kConnections, 1, shares[3]).ok());
  EXPECT_EQ(table_.peers(), 2U);
  EXPECT_EQ(metrics_.peers().Value(), 2);
  shares[0] = {};
  EXPECT_TRUE(Take("a", PeerResource::kConnections, 1, shares[2]).ok());
  for (PeerShare& share : shares) share = {};
  EXPECT_EQ(table_.peers(), 0U);
  EXPECT_EQ(metrics_.peers().Value(), 0);
}

TEST_F(PeerTableTest, WhatIsNotLimitedIsNotKept) {
  PeerShare calls;
  EXPECT_TRUE(Take("a", PeerResource::kCalls, 1'000'000, calls).ok());
  PeerShare nobody;
  EXPECT_TRUE(Take("", PeerResource::kConnections, 1'000'000, nobody).ok());
  EXPECT_TRUE(nobody.Resize(1'000'000'000));
  EXPECT_EQ(table_.peers(), 0U);
}

TEST_F(PeerTableTest, AShareMovesToWhoSomebodyTurnsOutToBe) {
  PeerShare first;
  PeerShare second;
  PeerShare third;
  ASSERT_TRUE(Take("address", PeerResource::kConnections, 1, first).ok());
  ASSERT_TRUE(Take("address", PeerResource::kConnections, 1, second).ok());
  ASSERT_TRUE(Take("name", PeerResource::kConnections, 1, first).ok());
  // The same again takes no second place, even where there is none.
  ASSERT_TRUE(Take("address", PeerResource::kConnections, 1, third).ok());
  EXPECT_TRUE(Take("address", PeerResource::kConnections, 1, third).ok());
  ASSERT_TRUE(Take("name", PeerResource::kConnections, 1, second).ok());
  // Refused: it stays what it was.
  EXPECT_FALSE(Take("name", PeerResource::kConnections, 1, third).ok());
  EXPECT_TRUE(third.IsOf("address"));
}

TEST_F(PeerTableTest, BytesGrowWithinTheLimitAndMayBeForced) {
  PeerShare one;
  PeerShare two;
  ASSERT_TRUE(Take("a", PeerResource::kBytes, 0, one).ok());
  ASSERT_TRUE(Take("a", PeerResource::kBytes, 0, two).ok());
  EXPECT_TRUE(one.Resize(60));
  EXPECT_TRUE(two.Resize(40));
  EXPECT_FALSE(two.Resize(41));
  EXPECT_EQ(two.amount(), 40U);
  EXPECT_FALSE(two.TryResize(41));
  EXPECT_EQ(Refused("bytes"), 1) << "and TryResize counts nothing";
  two.Force(200);
  EXPECT_FALSE(one.Resize(61)) << "no wrapping around above the limit";
  EXPECT_TRUE(one.Resize(10)) << "shrinking is never refused";
  two.Force(0);
  EXPECT_TRUE(one.Resize(100));
  EXPECT_FALSE(two.Resize(UINT64_MAX));
}

TEST_F(PeerTableTest, ManyThreadsNeverHoldMoreThanTheLimit) {
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        PeerShare share;
        if (!Take("a", PeerResource::kConnections, 1, share).ok()) continue;
        const int now = held.fetch_add(1) + 1;
        int before = most.load();
        while (before < now && !most.compare_exchange_weak(before, now)) {
        }
        taken.fetch_add(1);
        held.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 2);
  EXPECT_GT(taken.load(), 0);
  EXPECT_EQ(table_.peers(), 0U);
  EXPECT_EQ(metrics_.peers().Value(), 0);
}

constexpr char kToken[] = "a-token-of-0123456789";

TEST(CallersAsPeersTest, TheNameIfThereIsOneElseTheAddress) {
  Metrics metrics("test");
  PeerTable table({.connections = 1}, metrics);
  Guard guard(metrics, [] { return std::int64_t{0}; });
  guard.HoldTo(&table);
  const Credentials remote{.token = {}, .certificate_names = {}, .address = "192.0.2.7"};
  const Credentials local{
      .token = {}, .certificate_names = {}, .loopback = true, .address = "127.0.0.1"};
  const Credentials certified{.token = {},
                              .certificate_names = {"collector", "other"},
                              .certificate = true,
                              .loopback = true,
                              .address = "127.0.0.1"};
  EXPECT_EQ(Caller(&guard, "tcp", remote).Peer(), "192.0.2.7");
  EXPECT_EQ(Caller(&guard, "tcp", local).Peer(), "") << "one address is many programs";
  EXPECT_EQ(Caller(&guard, "tcp", certified).Peer(), "certificate collector");

  const Policy::Sources sources{
      .file = [](const std::string&) -> absl::StatusOr<std::string> { return std::string(kToken); },
      .environment = [](const char*) -> const char* { return nullptr; }};
  const auto rules = Policy::Parse(
      "anonymous_beyond_loopback = true\n[principal.anonymous]\ningest = [\"*\"]\n"
      "[principal.a]\ntokens = [{ file = \"t\" }]\ncertificates = [\"other\"]\ningest = [\"*\"]\n",
      "rules.toml", sources);
  ASSERT_TRUE(rules.ok()) << rules.status();
  guard.Set(*rules);
  EXPECT_EQ(Caller(&guard, "tcp", remote).Peer(), "192.0.2.7") << "anonymous is everybody";
  EXPECT_EQ(Caller(&guard, "tcp", certified).Peer(), "principal a");
  Caller unknown(&guard, "tcp", remote);
  unknown.Show(HashToken("none-that-is-known"));
  EXPECT_EQ(unknown.Peer(), "192.0.2.7") << "a wrong token is nobody's name";
  unknown.Show(HashToken(kToken));
  EXPECT_EQ(unknown.Peer(), "principal a");
}

TEST(CallersAsPeersTest, OneMachineMayBeOnePeer) {
  Metrics metrics("test");
  PeerTable table({.connections = 1, .loopback_is_one_peer = true}, metrics);
  Guard guard(metrics, [] { return std::int64_t{0}; });
  guard.HoldTo(&table);
  const Credentials local{
      .token = {}, .certificate_names = {}, .loopback = true, .address = "127.0.0.1"};
  Caller one(&guard, "http", local);
  Caller two(&guard, "http", local);
  PeerShare first;
  PeerShare second;
  EXPECT_TRUE(one.Hold(PeerResource::kConnections, 1, first).ok());
  EXPECT_EQ(two.Hold(PeerResource::kConnections, 1, second).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(metrics.PeerRefused("http", "connections").Value(), 1);
  Caller elsewhere(&guard, "tcp", local);
  PeerShare other;
  EXPECT_TRUE(elsewhere.Hold(PeerResource::kConnections, 1, other).ok()) << "of each protocol";
  Caller unheld(nullptr, "http", local);
  EXPECT_TRUE(unheld.Hold(PeerResource::kConnections, 1, second).ok());
}

}  // namespace
}  // namespace tidemark::server
