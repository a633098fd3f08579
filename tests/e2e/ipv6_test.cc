// IPv6 addresses through the real daemon: gRPC, framed TCP, the client and the command, against all
// addresses that went in. Answers in depth: tests/server/query/ipv6_answers_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "summaries/key_codec.h"
#include "tests/e2e/test_daemon.h"
#include "tests/support/prefix_truth.h"

namespace tidemark::test {
namespace {

using client::Code;
using client::Ipv6;
using client::StreamConfig;
using client::Value;
using client::ValueType;

std::vector<Ipv6> ToClient(std::span<const Key128> addresses) {
  std::vector<Ipv6> out;
  for (const Key128 address : addresses) out.push_back({DecodeIpv6(address).bytes});
  return out;
}
Key128 KeyOf(const Ipv6& address) { return EncodeKey(Ipv6Bytes{address.bytes}); }

std::vector<Reported> RowsOf(const client::HierarchicalHeavyHittersAnswer& answer) {
  std::vector<Reported> rows;
  for (const auto& row : answer.prefixes) {
    rows.push_back({KeyOf(std::get<Ipv6>(row.address)), static_cast<int>(row.length), row.count_low,
                    row.count_high, row.discounted_low, row.discounted_high});
  }
  return rows;
}
std::vector<Reported> RowsOf(const client::HeavyHittersAnswer& answer) {
  std::vector<Reported> rows;
  for (const auto& row : answer.items) {
    rows.push_back({KeyOf(std::get<Ipv6>(row.value.kind)), 128, row.count_low, row.count_high,
                    row.count_low, row.count_high});
  }
  return rows;
}

class Ipv6Test : public testing::Test {
 protected:
  client::Client& client() { return daemon_.client(); }
  Completed Run(std::vector<std::string> arguments, const std::string& input = "") {
    return RunTidemark(daemon_, std::move(arguments), input);
  }
  TestDaemon daemon_;
  std::mt19937_64 random_{20'261'122};
};

TEST_F(Ipv6Test, PrefixesOfHistoryAndOfTheLastValues) {
  const std::vector<int> levels{16, 32, 48, 64, 128};
  StreamConfig config;
  config.type = ValueType::kIpv6;
  config.frequency_epsilon = 0.001;
  config.prefix_lengths = {16, 32, 48, 64, 128};
  config.sliding = {.max_values = 50'000, .max_time = std::chrono::hours(1), .epsilon = 0.01};
  const auto made = client().CreateStream("flows", config);
  EXPECT_EQ(made.config.type, ValueType::kIpv6);
  EXPECT_EQ(made.config.prefix_lengths, config.prefix_lengths);

  // The first half over gRPC, the second, of other networks, over framed TCP.
  std::vector<Key128> all = MakeAddresses(random_, 40'000);
  client::Pusher pusher = client().Push("flows");
  pusher.Write(ToClient(all));
  EXPECT_EQ(pusher.Finish().accepted, all.size());
  const std::vector<Key128> more = MakeAddresses(random_, 50'000);
  all.insert(all.end(), more.begin(), more.end());
  const auto producer = daemon_.Producer();
  const auto stream = producer->Open("flows", wire::WireType::kIpv6);
  ASSERT_TRUE(stream.ok()) << stream.status();
  const std::vector<Ipv6> packed = ToClient(more);
  for (std::span<const Ipv6> rest = packed; !rest.empty();) {
    const std::size_t taken = std::min<std::size_t>(7000, rest.size());
    ASSERT_TRUE(producer->SendBatch(*stream, std::as_bytes(rest.first(taken))).ok());
    rest = rest.subspan(taken);
  }
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_EQ(producer->accepted(), more.size());

  for (const double support : {0.1, 0.02, 0.005}) {
    SCOPED_TRACE(support);
    const auto prefixes = client().HierarchicalHeavyHitters("flows", support);
    EXPECT_EQ(prefixes.n, all.size());
    EXPECT_FALSE(prefixes.prefixes.empty());
    EXPECT_EQ(WrongWith(RowsOf(prefixes), all, {}, levels, support, 0.001), "");
    EXPECT_EQ(
        WrongWith(RowsOf(client().HeavyHitters("flows", support)), all, {}, {128}, support, 0.001),
        "");
  }
  for (const std::uint64_t width : {1'000u, 20'000u, 50'000u}) {
    SCOPED_TRACE(width);
    client::Scope scope;
    scope.last_values = width;
    const auto last = std::span<const Key128>(all).last(width);
    const auto prefixes = client().HierarchicalHeavyHitters("flows", 0.05, scope);
    EXPECT_EQ(prefixes.n, width);
    EXPECT_EQ(WrongWith(RowsOf(prefixes), last, {}, levels, 0.05, 0.01), "");
    EXPECT_EQ(WrongWith(RowsOf(client().HeavyHitters("flows", 0.05, 0, scope)), last, {}, {128},
                        0.05, 0.01),
              "");
  }
  const std::vector<Value> asked{Value{ToClient(all).back()}, Value{Ipv6{}}};
  const auto counts = client().Counts("flows", asked);
  EXPECT_EQ(counts.items[0].value, asked[0]);
  const auto truth = static_cast<std::uint64_t>(std::count(all.begin(), all.end(), all.back()));
  EXPECT_TRUE(counts.items[0].count_low <= truth && truth <= counts.items[0].count_high);
  EXPECT_EQ(counts.items[1].count_low, 0u);

  client::WatchOptions options;
  options.scope.last_values = 1'000;
  auto watch = client().WatchHierarchicalHeavyHitters("flows", 0.1, options);
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(std::get<client::HierarchicalHeavyHittersAnswer>(pushed->answer).n, 1'000u);

  // A file that comes back, and a union with itself.
  client().ImportStream("again", {client().ExportStream("flows")});
  client().MergeStreams("twice", {"again", "flows"});
  std::vector<Key128> twice = all;
  twice.insert(twice.end(), all.begin(), all.end());
  EXPECT_EQ(WrongWith(RowsOf(client().HierarchicalHeavyHitters("twice", 0.02)), twice, {}, levels,
                      0.02, 0.001),
            "");
}

TEST_F(Ipv6Test, WhatCannotBeIsRefusedInOneLine) {
  client().CreateStream("s", {.type = ValueType::kIpv6});
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const client::Error& error) {
      EXPECT_EQ(error.code(), Code::kFailedPrecondition);
      return error.what();
    }
    return "taken";
  };
  const std::string no_ranks =
      "stream \"s\" holds addresses of ipv6, which have counts but no ranks";
  EXPECT_NE(message([&] { client().Quantiles("s", {0.5}); }).find(no_ranks), std::string::npos);
  EXPECT_NE(message([&] { client().Ranks("s", {Value{Ipv6{}}}); }).find(no_ranks),
            std::string::npos);
  EXPECT_NE(message([&] { client().HierarchicalHeavyHitters("s", 0.1); }).find("hierarchy"),
            std::string::npos);
  for (const auto& config :
       {StreamConfig{.type = ValueType::kIpv6, .payload = client::PayloadType::kY},
        StreamConfig{.type = ValueType::kIpv6, .no_frequencies = true},
        StreamConfig{.type = ValueType::kIpv6, .prefix_lengths = {64, 129}},
        StreamConfig{.type = ValueType::kIpv4, .prefix_lengths = {64}}}) {
    EXPECT_EQ(CodeOf([&] { client().CreateStream("t", config); }), Code::kInvalidArgument);
  }
  const auto producer = daemon_.Producer();
  EXPECT_EQ(producer->Open("s", wire::WireType::kIpv4).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const auto stream = producer->Open("s", wire::WireType::kIpv6);
  ASSERT_TRUE(stream.ok());
  const std::string bytes(40, 'b');
  ASSERT_TRUE(producer->SendBatch(*stream, std::as_bytes(std::span(bytes))).ok());
  ASSERT_TRUE(producer->Flush().ok());
  ASSERT_EQ(producer->errors().size(), 1u);
  EXPECT_NE(producer->errors()[0].status.message().find(
                "a batch of 40 bytes is not a whole number of ipv6 values of 16 bytes"),
            std::string::npos)
      << producer->errors()[0].status;
  EXPECT_EQ(client().DescribeStream("s").count, 0u);
}

TEST_F(Ipv6Test, TheCommandTakesAndGivesText) {
  const auto run = [&](std::vector<std::string> arguments, const std::string& input = "") {
    const Completed done = Run(std::move(arguments), input);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.out;
  };
  run({"create", "hosts", "--type", "ipv6", "--prefixes", "16,32,48,64,128", "--last", "1000"});
  EXPECT_NE(run({"describe", "hosts"}).find("ipv6"), std::string::npos);
  run({"push", "hosts"},
      "2001:DB8:0:1:0:0:0:1\n2001:db8:0:1::2\n2001:db8:0:2::1\n::ffff:10.0.0.1\nfe80::1\n"
      "2001:0db8:0000:0001::0001\n");
  run({"push", "hosts", "--column", "address"}, "time,address\n1,2001:db8:0:1::3\n2,::1\n");
  const auto top = nlohmann::json::parse(run({"--json", "top", "hosts", "--support", "0.25"}));
  ASSERT_EQ(top["items"].size(), 1u) << top;
  EXPECT_EQ(top["items"][0]["value"], "2001:db8:0:1::1");
  EXPECT_EQ(top["items"][0]["count_low"], 2);
  for (const auto& scope : {std::vector<std::string>{}, {"--last", "8"}}) {
    std::vector<std::string> ask{"--json", "top", "hosts", "--support", "0.5", "--hierarchical"};
    ask.insert(ask.end(), scope.begin(), scope.end());
    const auto prefixes = nlohmann::json::parse(run(ask));
    ASSERT_EQ(prefixes["prefixes"].size(), 1u) << prefixes;
    EXPECT_EQ(prefixes["prefixes"][0]["prefix"], "2001:db8:0:1::/64");
    EXPECT_EQ(prefixes["prefixes"][0]["count_low"], 4);
  }
  EXPECT_NE(run({"top", "hosts", "--support", "0.5", "--hierarchical"}).find("2001:db8:0:1::/64"),
            std::string::npos);
  EXPECT_NE(run({"count", "hosts", "::FFFF:10.0.0.1"}).find("::ffff:10.0.0.1"), std::string::npos);

  const Completed bad = Run({"push", "hosts"}, "::1\n10.0.0.1\n");
  EXPECT_NE(bad.status, 0);
  EXPECT_NE(bad.err.find("\"10.0.0.1\" is not an ipv6 (as one, it is written ::ffff:10.0.0.1)"),
            std::string::npos)
      << bad.err;
  EXPECT_NE(Run({"push", "hosts"}, "fe80::1%eth0\n").status, 0);
  const Completed quantile = Run({"quantile", "hosts", "0.5"});
  EXPECT_EQ(quantile.status, 1);
  EXPECT_NE(quantile.err.find("addresses of ipv6, which have counts but no ranks"),
            std::string::npos)
      << quantile.err;
}

}  // namespace
}  // namespace tidemark::test
