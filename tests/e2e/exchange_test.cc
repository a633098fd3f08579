// Streams that leave a daemon, come into another, and are merged, through real daemons and the real
// client, against all values that went in.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "summaries/crc32c.h"
#include "tests/e2e/oracle.h"
#include "tests/e2e/test_daemon.h"
#include "tidemark/v1/summary.pb.h"

namespace tidemark::test {
namespace {

using client::Code;
using client::StreamConfig;
using client::Value;
using client::ValueType;

constexpr std::uint32_t kSeed = 20'261'122;
const std::vector<double> kShares{0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999};

std::string MessageOf(const auto& call) {
  try {
    call();
  } catch (const client::Error& error) {
    return error.what();
  }
  return "";
}

class ExchangeTest : public testing::Test {
 protected:
  template <class T>
  static void Push(TestDaemon& daemon, const std::string& stream, const std::vector<T>& values) {
    client::Pusher pusher = daemon.client().Push(stream);
    pusher.Write(values);
    EXPECT_EQ(pusher.Finish().accepted, values.size());
  }
  std::vector<double> Normal(std::size_t count, double mean) {
    std::vector<double> values(count);
    std::normal_distribution<double> normal(mean);
    for (double& value : values) value = normal(random_);
    return values;
  }

  TestDaemon here_, there_;
  std::mt19937_64 random_{kSeed};
};

TEST_F(ExchangeTest, EveryFormGoesOnElsewhereWithinItsBounds) {
  constexpr double kEpsilon = 0.005;
  for (const auto form : {client::QuantileForm::kHistogram, client::QuantileForm::kCompact,
                          client::QuantileForm::kTail}) {
    const std::string name(client::FormName(form));
    SCOPED_TRACE(name);
    StreamConfig config;
    config.type = ValueType::kFloat64;
    config.quantile_epsilon = kEpsilon;
    config.frequency_epsilon = 0.01;
    config.quantile_form = form;
    config.tail_epsilon = kEpsilon;
    here_.client().CreateStream(name, config);
    std::vector<double> values = Normal(123'456, 10);
    for (std::size_t i = 0; i < values.size(); i += 7) values[i] = 12.5;
    Push(here_, name, values);
    const std::string file = here_.client().ExportStream(name);
    EXPECT_EQ(here_.client().ExportStream(name), file) << "the same state, the same bytes";

    const auto made = there_.client().ImportStream(name, {file});
    EXPECT_EQ(made.count, values.size());
    EXPECT_EQ(made.config.quantile_form, form);
    EXPECT_EQ(there_.client().ExportStream(name).size(), file.size());
    // It goes on.
    const std::vector<double> more = Normal(77'777, 20);
    Push(there_, name, more);
    values.insert(values.end(), more.begin(), more.end());
    const Oracle<double> oracle(values);
    EXPECT_EQ(there_.client().DescribeStream(name).count, values.size());
    oracle.Check(there_.client().Quantiles(name, kShares), kShares, kEpsilon);
    oracle.Check(there_.client().HeavyHitters(name, 0.05), 0.05, 0.01);
  }
}

TEST_F(ExchangeTest, AUnionHasTheBoundsOfTheWhole) {
  constexpr double kEpsilon = 0.01;
  StreamConfig config;
  config.type = ValueType::kFloat64;
  config.quantile_epsilon = kEpsilon;
  config.frequency_epsilon = 0.01;
  std::vector<double> all;
  std::vector<std::string> names, files;
  for (int part = 0; part < 5; ++part) {
    TestDaemon& daemon = part % 2 == 0 ? here_ : there_;
    std::ostringstream name;
    name << "part" << part;
    names.push_back(name.str());
    daemon.client().CreateStream(names.back(), config);
    const auto values =
        Normal(part == 4 ? 3 : 20'000u + 10'000u * static_cast<unsigned>(part), 5.0 * part);
    Push(daemon, names.back(), values);
    all.insert(all.end(), values.begin(), values.end());
    files.push_back(daemon.client().ExportStream(names.back()));
  }
  const Oracle<double> oracle(all);
  there_.client().ImportStream("all", files);
  oracle.Check(there_.client().Quantiles("all", kShares), kShares, kEpsilon);
  oracle.Check(there_.client().HeavyHitters("all", 0.05), 0.05, 0.01);
  const std::vector<Value> asked{Value{0.0}, Value{7.5}, Value{1e9}};
  oracle.Check(there_.client().Ranks("all", asked), asked, kEpsilon);

  // In another order, some of them merged before.
  there_.client().ImportStream("even", {files[4], files[2], files[0]});
  there_.client().MergeStreams("again", {"part3", "even", "part1"});
  oracle.Check(there_.client().Quantiles("again", kShares), kShares, kEpsilon);
  EXPECT_EQ(there_.client().DescribeStream("even").count + 30'000 + 50'000, all.size());
}

TEST_F(ExchangeTest, ItemsKeepTheirTexts) {
  StreamConfig config;
  config.type = ValueType::kString;
  config.frequency_epsilon = 0.001;
  std::vector<std::string> all;
  std::vector<std::string> files;
  for (TestDaemon* daemon : {&here_, &there_}) {
    std::vector<std::string> items(30'000);
    for (std::string& item : items) {
      std::ostringstream text;
      const std::uint64_t draw = random_() % 20;
      if (draw < 4) {
        text << "often." << draw << (draw == 3 && daemon == &here_ ? ".here" : "");
      } else {
        text << "once." << random_();
      }
      item = text.str();
    }
    daemon->client().CreateStream("items", config);
    Push(*daemon, "items", items);
    all.insert(all.end(), items.begin(), items.end());
    files.push_back(daemon->client().ExportStream("items"));
  }
  there_.client().ImportStream("both", files);
  const Oracle<std::string> oracle(all);
  oracle.Check(there_.client().HeavyHitters("both", 0.01), 0.01, 0.001);
  const std::vector<Value> asked{Value{std::string("often.1")}, Value{std::string("often.3.here")},
                                 Value{std::string("never")}};
  oracle.Check(there_.client().Counts("both", asked), asked, 0.001);
}

TEST_F(ExchangeTest, WeightsPrefixesAndSums) {
  StreamConfig flows;
  flows.type = ValueType::kIpv4;
  flows.payload = client::PayloadType::kWeight;
  flows.frequency_epsilon = 0.001;
  flows.prefix_lengths = {8, 16, 24, 32};
  StreamConfig pairs;
  pairs.type = ValueType::kFloat64;
  pairs.payload = client::PayloadType::kY;
  std::vector<std::string> flow_files, pair_files;
  std::uint64_t total = 0, heavy = 0;
  double below = 0, magnitude = 0;
  for (TestDaemon* daemon : {&here_, &there_}) {
    std::vector<client::Ipv4> addresses(20'000);
    std::vector<std::uint64_t> weights(addresses.size());
    std::vector<double> x(20'000), y(x.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const bool is_heavy = i % 5 == 0;
      addresses[i].address = is_heavy ? 0xC0A80000U + static_cast<std::uint32_t>(random_() % 256)
                                      : static_cast<std::uint32_t>(random_());
      weights[i] = is_heavy ? 1000 : 10;
      total += weights[i];
      heavy += is_heavy ? weights[i] : 0;
      x[i] = static_cast<double>(random_() % 1000);
      y[i] = static_cast<double>(random_() % 7);
      magnitude += y[i];
      below += x[i] <= 500 ? y[i] : 0;
    }
    daemon->client().CreateStream("flows", flows);
    client::Pusher pusher = daemon->client().Push("flows");
    pusher.WritePacked(ValueType::kIpv4, std::as_bytes(std::span(addresses)),
                       std::span<const std::uint64_t>(weights));
    pusher.Finish();
    flow_files.push_back(daemon->client().ExportStream("flows"));
    daemon->client().CreateStream("pairs", pairs);
    client::Pusher pushing = daemon->client().Push("pairs");
    pushing.WritePacked(ValueType::kFloat64, std::as_bytes(std::span(x)),
                        std::span<const double>(y));
    pushing.Finish();
    pair_files.push_back(daemon->client().ExportStream("pairs"));
  }
  here_.client().ImportStream("both", flow_files);
  const auto prefixes = here_.client().HierarchicalHeavyHitters("both", 0.1);
  EXPECT_EQ(prefixes.n, total);
  ASSERT_EQ(prefixes.prefixes.size(), 1u);
  EXPECT_EQ(client::FormatPrefix(prefixes.prefixes[0].address, prefixes.prefixes[0].length),
            "192.168.0.0/24");
  EXPECT_TRUE(prefixes.prefixes[0].count_low <= heavy && heavy <= prefixes.prefixes[0].count_high);

  here_.client().ImportStream("both pairs", pair_files);
  const auto sums = here_.client().Sums("both pairs", {client::AtMostValue{Value{500.0}}});
  EXPECT_EQ(sums.n, 40'000u);
  EXPECT_LE(sums.answers[0].sum_low, below);
  EXPECT_GE(sums.answers[0].sum_high, below);
  EXPECT_LE(sums.answers[0].sum_high - sums.answers[0].sum_low, 2 * 0.001 * magnitude + 1e-6);
}

TEST_F(ExchangeTest, SumsOfValuesGoOnElsewhere) {
  constexpr double kEpsilon = 0.01;
  StreamConfig config;
  config.type = ValueType::kInt64;
  config.quantile_epsilon = kEpsilon;
  config.sums = true;
  here_.client().CreateStream("s", config);
  std::vector<std::int64_t> values(90'000);
  for (auto& value : values) {
    value = static_cast<std::int64_t>(random_() >> (20 + random_() % 40)) - 500;
  }
  Push(here_, "s", values);
  const auto made = there_.client().ImportStream("s", {here_.client().ExportStream("s")});
  EXPECT_EQ(made.config.sums, true);
  EXPECT_GT(made.sum_bytes, 0u);
  const std::vector<std::int64_t> more(10'000, 1'000'000'000);
  Push(there_, "s", more);
  const auto check = [&](TestDaemon& daemon) {
    std::sort(values.begin(), values.end());
    double magnitude = 0;
    for (const std::int64_t value : values) magnitude += std::abs(static_cast<double>(value));
    const auto sum = [&](std::size_t first, std::size_t last) {
      std::int64_t total = 0;  // below 2^44 each
      for (std::size_t i = first; i < last; ++i) total += values[i];
      return static_cast<double>(total);
    };
    const std::size_t n = values.size();
    const std::int64_t v = values[n / 3];
    const auto at_most = static_cast<std::size_t>(
        std::upper_bound(values.begin(), values.end(), v) - values.begin());
    const auto row = daemon.client().Sums("s", {client::AtMostValue{Value{v}}}).answers.at(0);
    EXPECT_TRUE(row.count_low <= at_most && at_most <= row.count_high);
    EXPECT_TRUE(row.sum_low <= sum(0, at_most) && sum(0, at_most) <= row.sum_high);
    EXPECT_LE(row.sum_high - row.sum_low, 2 * kEpsilon * magnitude);
    for (const double trim : {0.0, 0.05}) {
      const auto spread = daemon.client().Spread("s", {.trim = trim});
      const auto cut = static_cast<std::size_t>(trim * static_cast<double>(n));
      const double mean = sum(cut, n - cut) / static_cast<double>(n - 2 * cut);
      const double hair = 1e-12 * std::abs(mean);
      EXPECT_EQ(spread.trimmed_count, n - 2 * cut);
      EXPECT_TRUE(spread.trimmed_mean_low <= mean + hair && mean - hair <= spread.trimmed_mean_high)
          << spread.trimmed_mean_low << " to " << spread.trimmed_mean_high << ", not " << mean;
    }
  };
  check(here_);
  values.insert(values.end(), more.begin(), more.end());
  check(there_);
  config.sums = false;
  there_.client().CreateStream("plain", config);
  EXPECT_EQ(CodeOf([&] {
              there_.client().MergeStreams("no", {"s", "plain"});
            }),
            Code::kInvalidArgument);
}

// Whoever exports a stream waits for what was taken in before, not for what keeps coming.
TEST_F(ExchangeTest, ExportsWhileValuesComeAreOfAPrefix) {
  constexpr std::size_t kBatch = 20'000;
  StreamConfig config;
  config.type = ValueType::kUint32;
  here_.client().CreateStream("busy", config);
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<bool> stop{false};
  std::thread sender([&] {
    const auto producer = here_.Producer();
    const auto stream = producer->Open("busy");
    ASSERT_TRUE(stream.ok()) << stream.status();
    std::vector<std::uint32_t> batch(kBatch);
    std::uint32_t next = 0;
    for (int round = 0; !stop; ++round) {
      for (std::uint32_t& value : batch) value = next++;
      ASSERT_TRUE(producer->SendBatch(*stream, std::as_bytes(std::span(batch))).ok());
      if (round % 50 == 49) {
        ASSERT_TRUE(producer->Flush().ok());
        acknowledged = producer->accepted();
      }
    }
    ASSERT_TRUE(producer->Flush().ok());
  });
  while (acknowledged == 0) std::this_thread::yield();
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = acknowledged;
    const std::string file = here_.client().ExportStream("busy");
    std::ostringstream name;
    name << "busy" << i;
    const auto made = there_.client().ImportStream(name.str(), {file});
    EXPECT_GE(made.count, before);
    EXPECT_LE(made.count, here_.client().DescribeStream("busy").count);
    // The values are their own numbers: the first `count` of them, each once.
    const auto answer = there_.client().Quantiles(name.str(), {0, 0.5, 1});
    ASSERT_EQ(answer.answers.size(), 3u);
    const auto number = [&](std::size_t at) {
      return std::uint64_t{std::get<std::uint32_t>(answer.answers[at].value.kind)};
    };
    EXPECT_EQ(number(0), 0u);
    EXPECT_EQ(number(2), made.count - 1);
    EXPECT_LE(answer.answers[1].rank_low, number(1) + 1);
    EXPECT_GE(answer.answers[1].rank_high, number(1) + 1);
  }
  stop = true;
  sender.join();
}

TEST_F(ExchangeTest, WhatIsWrongIsSaid) {
  Push(here_, "s", Normal(10'000, 0));
  client::Client& client = here_.client();
  const std::string file = client.ExportStream("s");
  const auto import = [&](const std::string& name, const std::vector<std::string>& files) {
    return MessageOf([&] { client.ImportStream(name, files); });
  };
  EXPECT_EQ(CodeOf([&] { client.ExportStream("none"); }), Code::kNotFound);
  EXPECT_EQ(CodeOf([&] { client.ImportStream("s", {file}); }), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf([&] { client.MergeStreams("s", {"s"}); }), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf([&] { client.MergeStreams("t", {}); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.MergeStreams("t", {"s", "none"}); }), Code::kNotFound);
  EXPECT_NE(import("t", {}).find("0 files"), std::string::npos);
  EXPECT_NE(import("t", {file, ""}).find("file 2 of 2"), std::string::npos);
  // No damage is taken for a stream, wherever it is.
  for (std::size_t at = 0; at < file.size(); at += 1 + file.size() / 97) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_EQ(CodeOf([&] { client.ImportStream("t", {damaged}); }), Code::kInvalidArgument) << at;
    EXPECT_EQ(CodeOf([&] { client.ImportStream("t", {file.substr(0, at)}); }),
              Code::kInvalidArgument)
        << at;
  }
  StreamConfig other;
  other.quantile_epsilon = 0.02;
  client.CreateStream("other", other);
  const std::string settings = MessageOf([&] { client.MergeStreams("t", {"s", "other"}); });
  EXPECT_NE(settings.find("different settings"), std::string::npos) << settings;
  EXPECT_EQ(CodeOf([&] { client.DescribeStream("t"); }), Code::kNotFound) << "nothing was made";
}

// What a checksum does not guard against: a file that somebody made.
TEST_F(ExchangeTest, ContradictionsAreRefused) {
  Push(here_, "s", Normal(10'000, 0));
  v1::SummaryFile file;
  ASSERT_TRUE(file.ParseFromString(here_.client().ExportStream("s")));
  const auto import = [&](const auto& change) {
    v1::StreamSummary summary;
    EXPECT_TRUE(summary.ParseFromString(file.summary()));
    change(summary);
    v1::SummaryFile changed = file;
    changed.set_summary(summary.SerializeAsString());
    changed.set_crc32c(Crc32c(changed.summary()));
    return MessageOf([&] { here_.client().ImportStream("t", {changed.SerializeAsString()}); });
  };
  using S = v1::StreamSummary;
  EXPECT_NE(import([](S& s) { s.set_n(s.n() + 1); }).find("10000 values, not of 10001"),
            std::string::npos);
  EXPECT_NE(import([](S& s) { s.mutable_config()->set_quantile_epsilon(0.01); }).find("epsilon"),
            std::string::npos);
  EXPECT_NE(import([](S& s) { s.clear_frequencies(); }).find("no frequencies"), std::string::npos);
  EXPECT_NE(import([](S& s) { s.set_sums("x"); }).find("there are sums"), std::string::npos);
  EXPECT_NE(
      import([](S& s) { s.mutable_quantiles()->swap(*s.mutable_frequencies()); }).find("quantiles"),
      std::string::npos);
  EXPECT_NE(import([](S& s) {
              s.mutable_config()->set_quantile_form(v1::QUANTILE_FORM_COMPACT);
            }).find("another form"),
            std::string::npos);
  EXPECT_NE(import([](S& s) { s.mutable_config()->set_type(v1::VALUE_TYPE_FLOAT32); }), "");
  EXPECT_NE(import([](S& s) { s.mutable_config()->clear_type(); }).find("type"), std::string::npos);
  EXPECT_NE(import([](S& s) { s.add_items()->set_text("x"); }).find("no strings"),
            std::string::npos);
  EXPECT_NE(import([](S& s) { s.mutable_config()->set_quantile_epsilon(NAN); }), "");
  EXPECT_EQ(import([](S&) {}), "");
}

TEST_F(ExchangeTest, ValuesNeverReachTwoToThe63) {
  client::Client& client = here_.client();
  Push(here_, "s0", std::vector<double>{1});
  std::vector<std::string> names{"s0"};
  for (int i = 1; i < 63; ++i) {
    std::ostringstream name;
    name << 's' << i;
    client.MergeStreams(name.str(), {names.back(), names.back()});
    names.push_back(name.str());
  }
  EXPECT_EQ(client.MergeStreams("full", names).count, ~std::uint64_t{0} >> 1);
  EXPECT_EQ(CodeOf([&] {
              client::Pusher pusher = client.Push("full");
              pusher.Write(std::vector<double>{1});
              pusher.Finish();
            }),
            Code::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { client.MergeStreams("more", {"full", "s0"}); }), Code::kOutOfRange);
  EXPECT_NE(client.ExportStream("full"), "");
  EXPECT_EQ(client.Quantiles("full", {0.5}).n, ~std::uint64_t{0} >> 1);
}

TEST_F(ExchangeTest, TheCommandWritesReadsAndMerges) {
  Push(here_, "s", Normal(5'000, 0));
  const TemporaryFolder folder;
  const std::string file = folder / "s.tidemark";
  const auto run = [&](TestDaemon& daemon, const std::vector<std::string>& arguments) {
    return RunTidemark(daemon, arguments);
  };
  EXPECT_EQ(run(here_, {"export", "s", file}).status, 0);
  std::ifstream written(file, std::ios::binary);
  std::ostringstream bytes;
  bytes << written.rdbuf();
  EXPECT_EQ(bytes.str(), here_.client().ExportStream("s"));
  EXPECT_EQ(run(here_, {"export", "s"}).out, bytes.str());
  EXPECT_EQ(run(there_, {"import", "s", file, file}).status, 0);
  EXPECT_EQ(there_.client().DescribeStream("s").count, 10'000u);
  EXPECT_EQ(run(there_, {"merge", "t", "s", "s"}).status, 0);
  EXPECT_EQ(there_.client().DescribeStream("t").count, 20'000u);
  const Completed nowhere = run(here_, {"export", "s", "/nowhere/at/all"});
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_NE(nowhere.err.find("/nowhere/at/all"), std::string::npos) << nowhere.err;
  const Completed missing = run(there_, {"import", "u", folder / "none"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_NE(missing.err.find("none"), std::string::npos) << missing.err;
  const Completed wrong = run(there_, {"import", "u", "/etc/hostname"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("no exported stream"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace tidemark::test
