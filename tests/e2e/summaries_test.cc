// What streams keep beside quantiles and counts, through the real daemon and the real clients,
// against the whole truth: weights, prefixes, sums of pairs, sliding windows, the forms of a
// quantile summary, and the distance of two streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/oracle.h"
#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using client::Code;
using client::Ipv4;
using client::PayloadType;
using client::StreamConfig;
using client::Value;
using client::ValueType;

constexpr std::uint32_t kSeed = 20'261'121;

class SummariesTest : public testing::Test {
 protected:
  client::Client& client() { return daemon_.client(); }
  TestDaemon daemon_;
  std::mt19937_64 random_{kSeed};
};

// Flows: a heavy address, a heavy network of light addresses, and noise.
struct Flows {
  std::vector<Ipv4> addresses;
  std::vector<std::uint64_t> bytes;
};
Flows MakeFlows(std::mt19937_64& random, std::size_t count) {
  Flows flows;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random() % 100;
    std::uint32_t address = static_cast<std::uint32_t>(random());
    if (draw < 20) address = 0x0A010200U | (address & 0xFFU);
    if (draw >= 20 && draw < 25) address = 0xC0A80007U;
    flows.addresses.push_back(Ipv4{address});
    flows.bytes.push_back(draw >= 20 && draw < 25 ? 1500 : 40 + random() % 20);
  }
  return flows;
}

TEST_F(SummariesTest, WeightsAddUpWithinTheirBounds) {
  constexpr double kEpsilon = 0.001;
  StreamConfig config;
  config.type = ValueType::kIpv4;
  config.payload = PayloadType::kWeight;
  config.frequency_epsilon = kEpsilon;
  client().CreateStream("flows", config);
  const Flows flows = MakeFlows(random_, 200'000);
  std::map<std::uint32_t, std::uint64_t> truth;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < flows.addresses.size(); ++i) {
    truth[flows.addresses[i].address] += flows.bytes[i];
    total += flows.bytes[i];
  }
  // Half over gRPC, half over framed TCP.
  const std::size_t half = flows.addresses.size() / 2;
  const auto values = std::as_bytes(std::span(flows.addresses));
  const std::span<const std::uint64_t> weights(flows.bytes);
  client::Pusher pusher = client().Push("flows");
  pusher.WritePacked(ValueType::kIpv4, values.first(4 * half), weights.first(half));
  EXPECT_EQ(pusher.Finish().accepted, half);
  const auto producer = daemon_.Producer();
  const auto stream = producer->Open("flows", {wire::WireType::kIpv4, wire::WirePayload::kWeight});
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE(producer->SendPairs(*stream, values.subspan(4 * half), weights.subspan(half)).ok());
  ASSERT_TRUE(producer->Flush().ok());
  EXPECT_TRUE(producer->errors().empty());

  const auto check = [&](const client::ItemCount& item) {
    const std::uint64_t weight = truth[std::get<Ipv4>(item.value.kind).address];
    EXPECT_LE(item.count_low, weight);
    EXPECT_GE(item.count_high, weight);
    EXPECT_LE(static_cast<double>(item.count_high - item.count_low),
              kEpsilon * static_cast<double>(total));
  };
  const auto top = client().HeavyHitters("flows", 0.01, 0, {}, true);
  EXPECT_EQ(top.n, total);
  ASSERT_EQ(top.items.size(), 1u) << "the one heavy address";
  EXPECT_EQ(std::get<Ipv4>(top.items[0].value.kind).address, 0xC0A80007U);
  check(top.items[0]);
  std::vector<Value> asked{Value{Ipv4{0x0A010203U}}, Value{Ipv4{1}}};
  for (const client::ItemCount& item : client().Counts("flows", asked, {}, true).items) check(item);
  EXPECT_EQ(client().HeavyHitters("flows", 0.01).n, flows.addresses.size()) << "and still counts";

  client().CreateStream("plain");
  EXPECT_EQ(CodeOf([&] { client().HeavyHitters("plain", 0.1, 0, {}, true); }),
            Code::kFailedPrecondition);
}

TEST_F(SummariesTest, ABatchMustHaveWhatTheStreamHas) {
  StreamConfig config;
  config.type = ValueType::kUint32;
  config.payload = PayloadType::kWeight;
  client().CreateStream("weighted", config);
  const std::vector<std::uint32_t> values{1, 2, 3};
  const auto push = [&](client::Payloads payloads) {
    client::Pusher pusher = client().Push("weighted");
    pusher.WritePacked(ValueType::kUint32, std::as_bytes(std::span(values)), payloads);
    pusher.Finish();
  };
  EXPECT_EQ(CodeOf([&] { push({}); }), Code::kFailedPrecondition);
  const std::vector<double> y{1, 2, 3};
  EXPECT_EQ(CodeOf([&] { push(std::span<const double>(y)); }), Code::kFailedPrecondition);
  const std::vector<std::uint64_t> huge{1, std::uint64_t{1} << 63, 1};
  EXPECT_EQ(CodeOf([&] { push(std::span<const std::uint64_t>(huge)); }), Code::kOutOfRange);
  EXPECT_EQ(client().DescribeStream("weighted").count, 0u) << "refused whole";
  const std::vector<std::uint64_t> good{1, 0, 1};
  EXPECT_EQ(CodeOf([&] { push(std::span<const std::uint64_t>(good)); }), Code::kOk);
  EXPECT_EQ(daemon_.Metric("tidemark_ingest_refused_total{source=\"grpc\"}"), 9);
}

TEST_F(SummariesTest, PrefixesAreHeavyWithoutTheHeavyOnesBelow) {
  StreamConfig config;
  config.type = ValueType::kIpv4;
  config.frequency_epsilon = 0.001;
  config.prefix_lengths = {8, 16, 24, 32};
  client().CreateStream("flows", config);
  const Flows flows = MakeFlows(random_, 100'000);
  client::Pusher pusher = client().Push("flows");
  pusher.Write(flows.addresses);
  pusher.Finish();
  const auto answer = client().HierarchicalHeavyHitters("flows", 0.04);
  EXPECT_EQ(answer.n, flows.addresses.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, client::PrefixCount> found;
  for (const auto& prefix : answer.prefixes) {
    found[{std::get<Ipv4>(prefix.address).address, prefix.length}] = prefix;
    const std::uint32_t mask = prefix.length == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix.length);
    const auto truth = static_cast<std::uint64_t>(
        std::count_if(flows.addresses.begin(), flows.addresses.end(), [&](Ipv4 address) {
          return (address.address & mask) == std::get<Ipv4>(prefix.address).address;
        }));
    EXPECT_LE(prefix.count_low, truth) << client::FormatPrefix(prefix.address, prefix.length);
    EXPECT_GE(prefix.count_high, truth) << client::FormatPrefix(prefix.address, prefix.length);
  }
  EXPECT_TRUE(found.contains({0xC0A80007U, 32}));
  EXPECT_TRUE(found.contains({0x0A010200U, 24}));
  EXPECT_FALSE(found.contains({0x0A010000U, 16})) << "all of it is in its /24";
  EXPECT_EQ(CodeOf([&] { client().HierarchicalHeavyHitters("flows", 0.0001); }),
            Code::kInvalidArgument);
  auto watch = client().WatchHierarchicalHeavyHitters("flows", 0.04);
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(std::get<client::HierarchicalHeavyHittersAnswer>(pushed->answer).prefixes.size(),
            answer.prefixes.size());
}

TEST_F(SummariesTest, SumsOfPairsLieWithinTheirBounds) {
  constexpr double kEpsilon = 0.001;
  std::vector<double> x, y;
  std::normal_distribution<double> normal;
  double magnitude = 0;
  for (int i = 0; i < 100'000; ++i) {
    x.push_back(std::round(normal(random_) * 1000) / 1000);
    y.push_back(x.back() * 3 + static_cast<double>(random_() % 100));
    magnitude += std::abs(y.back());
  }
  x.push_back(0);
  y.push_back(std::numeric_limits<double>::infinity());  // refused alone
  client::Pusher pusher = client().Push("pairs");
  pusher.WritePacked(ValueType::kFloat64, std::as_bytes(std::span(x)), std::span<const double>(y));
  const auto pushed = pusher.Finish();
  EXPECT_EQ(pushed.accepted, x.size() - 1);
  EXPECT_EQ(pushed.refused, 1u);
  x.pop_back();
  y.pop_back();

  const auto truth = [&](double low, double high) {
    std::pair<std::uint64_t, double> found{0, 0};
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] < low || x[i] > high) continue;
      ++found.first;
      found.second += y[i];
    }
    return found;
  };
  const double inf = std::numeric_limits<double>::infinity();
  const auto answer = client().Sums(
      "pairs", {client::AtMostValue{Value{0.5}}, client::BetweenValues{Value{-1.0}, Value{1.0}},
                client::AtMostValue{Value{inf}}, client::AtMostShare{0.5},
                client::BetweenShares{0.25, 0.75}});
  EXPECT_EQ(answer.n, x.size());
  ASSERT_EQ(answer.answers.size(), 5u);
  const std::pair<double, double> ranges[] = {{-inf, 0.5}, {-1, 1}, {-inf, inf}};
  // Sums in doubles, in another order: the truth itself is known to so much.
  const double hair = 1e-9 * magnitude;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto [count, sum] = truth(ranges[i].first, ranges[i].second);
    const client::SumAnswer& a = answer.answers[i];
    EXPECT_TRUE(a.count_low <= count && count <= a.count_high) << i;
    EXPECT_TRUE(a.sum_low <= sum + hair && sum - hair <= a.sum_high) << i;
    const double share = (i == 1 ? 4 : 2) * kEpsilon;  // of a range that is cut at both ends: twice
    EXPECT_LE(a.sum_high - a.sum_low, share * magnitude + hair) << i;
    EXPECT_LE(static_cast<double>(a.count_high - a.count_low),
              share * static_cast<double>(x.size()))
        << i;
    ASSERT_TRUE(a.average_low && a.average_high) << i;
    EXPECT_TRUE(*a.average_low <= sum / static_cast<double>(count) + 1e-6 &&
                sum / static_cast<double>(count) - 1e-6 <= *a.average_high)
        << i;
  }
  // Up to a true quantile, of which equal x make a whole.
  std::vector<double> sorted = x;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double phi) {
    return sorted[static_cast<std::size_t>(std::ceil(phi * static_cast<double>(x.size()))) - 1];
  };
  const auto [below, half] = truth(-inf, at(0.5));
  EXPECT_TRUE(answer.answers[3].sum_low <= half + hair &&
              half - hair <= answer.answers[3].sum_high);
  EXPECT_TRUE(answer.answers[3].count_low <= below && below <= answer.answers[3].count_high);
  const double between = truth(-inf, at(0.75)).second - truth(-inf, at(0.25)).second;
  EXPECT_TRUE(answer.answers[4].sum_low <= between + hair &&
              between - hair <= answer.answers[4].sum_high);

  client().CreateStream("plain");
  EXPECT_EQ(CodeOf([&] { client().Sums("plain", {client::AtMostShare{0.5}}); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf([&] {
              client().Sums("pairs", {client::BetweenShares{0.7, 0.2}});
            }),
            Code::kInvalidArgument);
}

TEST_F(SummariesTest, SlidingWindowsCoverTheLastValues) {
  constexpr double kEpsilon = 0.02;
  StreamConfig config;
  config.type = ValueType::kUint32;
  config.sliding = {.max_values = 50'000, .max_time = std::chrono::hours(1), .epsilon = kEpsilon};
  client().CreateStream("s", config);
  std::vector<std::uint32_t> values;
  const std::vector<double> phi{0, 0.01, 0.25, 0.5, 0.9, 0.999, 1};
  for (const std::size_t count : {10, 990, 9'000, 41'234, 80'000}) {
    std::vector<std::uint32_t> more(count);
    // Drifts, so that what is older is told from what is newer.
    for (std::size_t i = 0; i < count; ++i) {
      more[i] = static_cast<std::uint32_t>((values.size() + i) / 10 + random_() % 1000);
    }
    values.insert(values.end(), more.begin(), more.end());
    client::Pusher pusher = client().Push("s");
    pusher.Write(more);
    pusher.Finish();
    for (const std::uint64_t width : {1, 2, 9, 100, 1023, 1024, 1025, 5'000, 20'000, 50'000}) {
      const std::size_t held = std::min<std::size_t>(width, values.size());
      const Oracle<std::uint32_t> oracle(std::vector<std::uint32_t>(
          values.end() - static_cast<std::ptrdiff_t>(held), values.end()));
      client::Scope scope;
      scope.last_values = width;
      const auto inner = std::vector<double>(phi.begin() + 1, phi.end() - 1);
      oracle.Check(client().Quantiles("s", inner, scope), inner, kEpsilon);
      const std::vector<Value> asked{Value{oracle.sorted()[held / 2]}, Value{std::uint32_t{0}}};
      oracle.Check(client().Ranks("s", asked, scope), asked, kEpsilon);
    }
    client::Scope hour;
    hour.last_time = std::chrono::hours(1);
    const Oracle<std::uint32_t> all(values);
    all.Check(client().Quantiles("s", {0.5}, hour), {0.5}, kEpsilon);
  }
  client::Scope wide;
  wide.last_values = 50'001;
  EXPECT_EQ(CodeOf([&] { client().Quantiles("s", {0.5}, wide); }), Code::kInvalidArgument);
  client::Scope both;
  both.last_values = 10;
  both.last_time = std::chrono::seconds(1);
  EXPECT_EQ(CodeOf([&] { client().Quantiles("s", {0.5}, both); }), Code::kInvalidArgument);
  client().CreateStream("plain");
  client::Scope ten;
  ten.last_values = 10;
  EXPECT_EQ(CodeOf([&] { client().Quantiles("plain", {0.5}, ten); }), Code::kFailedPrecondition);
  auto watch = client().WatchQuantiles("s", {0.5}, {.scope = ten});
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(std::get<client::QuantilesAnswer>(pushed->answer).n, 10u);
}

// Wide enough that windows begin inside blocks whose values are no longer there as they came.
TEST_F(SummariesTest, SlidingWindowsBeginInsideBlocks) {
  constexpr double kEpsilon = 0.05;
  StreamConfig config;
  config.type = ValueType::kUint32;
  config.sliding = {.max_values = 400'000, .max_time = {}, .epsilon = kEpsilon};
  client().CreateStream("s", config);
  std::vector<std::uint32_t> values;
  // Many different values, and then a single one.
  for (std::uint32_t i = 0; i < 300'000; ++i)
    values.push_back(static_cast<std::uint32_t>(random_()));
  values.insert(values.end(), 250'001, 7);
  client::Pusher pusher = client().Push("s");
  pusher.Write(values);
  pusher.Finish();
  const std::vector<double> phi{0.01, 0.25, 0.5, 0.9};
  for (const std::uint64_t width : {250'001, 250'002, 250'777, 263'333, 301'234, 399'999}) {
    SCOPED_TRACE(width);
    const std::vector<std::uint32_t> last(values.end() - static_cast<std::ptrdiff_t>(width),
                                          values.end());
    const Oracle<std::uint32_t> oracle(last);
    client::Scope scope;
    scope.last_values = width;
    oracle.Check(client().Quantiles("s", phi, scope), phi, kEpsilon);
    oracle.Check(client().HeavyHitters("s", 0.2, 0, scope), 0.2, kEpsilon);
    const auto histogram = client().EquiDepthHistogram("s", 10, scope);
    oracle.Check(histogram, kEpsilon);
    std::uint64_t most = 0;
    for (const auto& bucket : histogram.buckets) most += bucket.count_high;
    EXPECT_GE(most, width) << "no value is in no bucket";
    const auto spread = client().Spread("s", {.scope = scope});
    std::set<std::uint32_t> distinct(last.begin(), last.end());
    EXPECT_LE(spread.distinct_low, distinct.size());
    EXPECT_GE(spread.distinct_high, distinct.size());
    const auto moved = client().Compare("s", scope, "s", {}, 0.1);
    const Oracle<std::uint32_t> all(values);
    double truth = 0;
    for (const std::uint32_t v : distinct) {
      truth = std::max(
          truth, std::abs(static_cast<double>(oracle.UpTo(v)) / static_cast<double>(width) -
                          static_cast<double>(all.UpTo(v)) / static_cast<double>(values.size())));
    }
    EXPECT_GE(moved.distance_high, truth);
  }
}

TEST_F(SummariesTest, SlidingWindowsCountItemsAndKeepTheirTexts) {
  constexpr double kEpsilon = 0.04;  // windows of 20,000 values begin inside a block
  StreamConfig config;
  config.type = ValueType::kString;
  config.sliding = {.max_values = 20'000, .max_time = std::chrono::hours(1), .epsilon = kEpsilon};
  client().CreateStream("s", config);
  std::vector<std::string> values;
  for (int round = 0; round < 6; ++round) {
    // The frequent items change from round to round; most items never come again.
    std::vector<std::string> more(12'345);
    for (std::string& item : more) {
      const std::uint64_t draw = random_() % 10;
      std::ostringstream text;
      if (draw < 3) {
        text << 'r' << round << '.' << draw;
      } else {
        text << "once." << random_();
      }
      item = text.str();
    }
    values.insert(values.end(), more.begin(), more.end());
    client::Pusher pusher = client().Push("s");
    pusher.Write(more);
    pusher.Finish();
    for (const std::uint64_t width : {1, 100, 1'000, 12'345, 20'000}) {
      const std::size_t held = std::min<std::size_t>(width, values.size());
      const Oracle<std::string> oracle(
          std::vector<std::string>(values.end() - static_cast<std::ptrdiff_t>(held), values.end()));
      client::Scope scope;
      scope.last_values = width;
      oracle.Check(client().HeavyHitters("s", 0.05, 0, scope), 0.05, kEpsilon);
      const std::vector<Value> asked{Value{values.back()}, Value{std::string("r0.1")},
                                     Value{std::string("never")}};
      oracle.Check(client().Counts("s", asked, scope), asked, kEpsilon);
    }
  }
  EXPECT_LT(client().DescribeStream("s").dictionary_bytes, std::uint64_t{8} << 20)
      << "items that no summary names are forgotten";
}

TEST_F(SummariesTest, EveryFormOfAQuantileSummaryKeepsItsPromise) {
  std::vector<double> values(300'000);
  std::lognormal_distribution<double> lognormal(0, 2);
  for (double& value : values) value = lognormal(random_);
  const std::vector<double> phi{0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999};
  const Oracle<double> oracle(values);
  for (const auto form : {client::QuantileForm::kHistogram, client::QuantileForm::kCompact}) {
    const std::string name(client::FormName(form));
    StreamConfig config;
    config.type = ValueType::kFloat64;
    config.quantile_form = form;
    config.no_frequencies = true;
    client().CreateStream(name, config);
    client::Pusher pusher = client().Push(name);
    pusher.Write(values);
    pusher.Finish();
    oracle.Check(client().Quantiles(name, phi), phi, 0.001);
    EXPECT_EQ(CodeOf([&] { client().HeavyHitters(name, 0.1); }), Code::kFailedPrecondition);
  }
  StreamConfig config;
  config.type = ValueType::kFloat64;
  config.quantile_form = client::QuantileForm::kTail;
  config.tail_epsilon = 0.01;
  client().CreateStream("tail", config);
  client::Pusher pusher = client().Push("tail");
  pusher.Write(values);
  pusher.Finish();
  const auto answer = client().Quantiles("tail", phi);
  for (const auto& a : answer.answers) {
    const auto n = static_cast<double>(values.size());
    const auto target = static_cast<std::uint64_t>(std::ceil(a.phi * n - 1e-9));
    const double from_end = n - static_cast<double>(target) + 1;
    const double allowed = 0.01 * std::min(from_end, n / 2) + 1e-9;
    const double value = std::get<double>(a.value.kind);
    const std::uint64_t nearest = std::clamp(target, oracle.Below(value) + 1, oracle.UpTo(value));
    EXPECT_TRUE(a.rank_low <= nearest && nearest <= a.rank_high) << a.phi;
    EXPECT_LE(std::abs(static_cast<double>(a.rank_low) - static_cast<double>(target)), allowed)
        << a.phi;
    EXPECT_LE(std::abs(static_cast<double>(a.rank_high) - static_cast<double>(target)), allowed)
        << a.phi;
  }
}

TEST_F(SummariesTest, TheDistanceOfTwoStreamsIsBounded) {
  std::vector<double> a(50'000), b(70'000);
  std::normal_distribution<double> normal;
  for (double& value : a) value = normal(random_);
  for (double& value : b) value = normal(random_) + 0.5;
  for (const auto& [name, values] : {std::pair("a", &a), std::pair("b", &b)}) {
    client::Pusher pusher = client().Push(name);
    pusher.Write(*values);
    pusher.Finish();
  }
  const Oracle<double> of_a(a), of_b(b);
  double truth = 0;
  for (const auto* values : {&a, &b}) {
    for (const double v : *values) {
      truth = std::max(truth, std::abs(static_cast<double>(of_a.UpTo(v)) / 50'000.0 -
                                       static_cast<double>(of_b.UpTo(v)) / 70'000.0));
    }
  }
  const auto answer = client().Compare("a", {}, "b", {}, 0.1);
  EXPECT_LE(answer.distance_low, truth);
  EXPECT_GE(answer.distance_high, truth);
  EXPECT_LE(answer.distance_high - answer.distance_low, 4 * 0.001 + 1e-9);
  EXPECT_EQ(answer.moved, std::optional(true));
  EXPECT_EQ(client().Compare("a", {}, "a", {}, 0.1).moved, std::optional(false));
  EXPECT_EQ(client().Compare("a", {}, "b", {}, truth).moved, std::nullopt) << "too near to tell";
  EXPECT_EQ(CodeOf([&] { client().Compare("a", {}, "none", {}, 0.1); }), Code::kNotFound);
  EXPECT_EQ(CodeOf([&] { client().Compare("a", {}, "b", {}, 1.5); }), Code::kInvalidArgument);
  client().CreateStream("empty");
  EXPECT_EQ(CodeOf([&] { client().Compare("a", {}, "empty", {}, 0.1); }),
            Code::kFailedPrecondition);
}

TEST_F(SummariesTest, ASpreadHoldsTheTruth) {
  for (const std::size_t count : {std::size_t{500}, std::size_t{200'000}}) {
    const std::string name = count == 500 ? "few" : "many";
    std::vector<double> values(count);
    std::normal_distribution<double> normal(5, 3);
    for (double& value : values) value = std::round(normal(random_) * 1000) / 1000;
    client::Pusher pusher = client().Push(name);
    pusher.Write(values);
    pusher.Finish();
    std::sort(values.begin(), values.end());
    const auto at = [&](double phi) {
      return values[static_cast<std::size_t>(std::ceil(phi * static_cast<double>(count))) - 1];
    };
    client::SpreadOptions options;
    options.low_phi = 0.1;
    options.high_phi = 0.9;
    options.trim = 0.05;
    const auto answer = client().Spread(name, options);
    EXPECT_EQ(answer.n, count);
    EXPECT_LE(std::get<double>(answer.low_quantile.first.kind), at(0.1));
    EXPECT_GE(std::get<double>(answer.low_quantile.second.kind), at(0.1));
    EXPECT_LE(std::get<double>(answer.high_quantile.first.kind), at(0.9));
    EXPECT_GE(std::get<double>(answer.high_quantile.second.kind), at(0.9));
    EXPECT_LE(answer.range_low, at(0.9) - at(0.1) + 1e-9);
    EXPECT_GE(answer.range_high, at(0.9) - at(0.1) - 1e-9);
    EXPECT_LE(answer.range_high - answer.range_low, count == 500 ? 1e-9 : 0.2);
    const auto cut = static_cast<std::ptrdiff_t>(0.05 * static_cast<double>(count));
    double sum = 0;
    for (auto value = values.begin() + cut; value != values.end() - cut; ++value) sum += *value;
    const double mean = sum / static_cast<double>(answer.trimmed_count);
    EXPECT_EQ(answer.trimmed_count, count - 2 * static_cast<std::uint64_t>(cut));
    EXPECT_LE(answer.trimmed_mean_low, mean + 1e-9);
    EXPECT_GE(answer.trimmed_mean_high, mean - 1e-9);
    const auto distinct =
        static_cast<std::uint64_t>(std::unique(values.begin(), values.end()) - values.begin());
    EXPECT_LE(answer.distinct_low, distinct);
    EXPECT_GE(answer.distinct_high, distinct);
    if (count == 500) {
      EXPECT_EQ(answer.distinct_low, answer.distinct_high);
    }
    options.trim = 0.5;
    EXPECT_EQ(CodeOf([&] { client().Spread(name, options); }), Code::kInvalidArgument);
    options = {.low_phi = 0.5, .high_phi = 0.4};
    EXPECT_EQ(CodeOf([&] { client().Spread(name, options); }), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace tidemark::test
