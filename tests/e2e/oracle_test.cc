// Every type in every shape, through the real daemon and the real clients, against the whole truth.
// A sample of the grid: every cell of it, without sockets, is in tests/server/query, and so are the
// determinism of the bytes and, in tests/summaries, the summaries alone.
#include "tests/e2e/oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "tests/e2e/test_daemon.h"
#include "tests/e2e/values.h"

namespace tidemark::test {
namespace {

using client::Value;
using client::ValueType;

constexpr double kEpsilons[] = {0.05, 0.01, 0.001};
constexpr std::size_t kSizes[] = {0, 1, 100, 10'000};
constexpr std::size_t kLargeSize = 1'000'000;

enum class Way { kPush, kAcknowledged, kTcp };
constexpr std::size_t kWays = 3;
constexpr std::string_view kWayNames[] = {"push", "acknowledged", "tcp"};

struct Taken {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
};

template <class T>
constexpr ValueType TypeOf() {
  return static_cast<ValueType>(Value{T{}}.kind.index() + 1);
}

template <class T>
Taken PushTcp(const TestDaemon& daemon, const std::string& name, std::span<const T> values,
              std::size_t batch) {
  const auto producer = daemon.Producer();
  const auto stream = producer->Open(name, static_cast<wire::WireType>(TypeOf<T>()));
  EXPECT_TRUE(stream.ok()) << stream.status();
  if (!stream.ok()) return {};
  while (!values.empty()) {
    const auto part = values.first(std::min(batch, values.size()));
    if constexpr (std::is_same_v<T, std::string>) {
      const std::vector<std::string_view> items(part.begin(), part.end());
      EXPECT_TRUE(producer->SendStrings(*stream, items).ok());
    } else {
      EXPECT_TRUE(producer->SendBatch(*stream, std::as_bytes(part)).ok());
    }
    values = values.subspan(part.size());
  }
  EXPECT_TRUE(producer->Flush().ok());
  EXPECT_TRUE(producer->errors().empty());
  return {producer->accepted(), producer->refused()};
}

template <class T>
Taken PushGrpc(client::BatchWriter& pusher, std::span<const T> values, std::size_t batch) {
  while (!values.empty()) {
    const auto part = values.first(std::min(batch, values.size()));
    pusher.Write(part);
    values = values.subspan(part.size());
  }
  return {};
}

template <class T>
Taken PushAll(TestDaemon& daemon, Way way, const std::string& name, std::span<const T> values) {
  // Not a power of two, so that batches and windows end at different places.
  const std::size_t batch = values.size() > 100'000 ? 50'021 : 997;
  switch (way) {
    case Way::kTcp:
      return PushTcp(daemon, name, values, batch);
    case Way::kPush: {
      client::Pusher pusher = daemon.client().Push(name);
      PushGrpc(pusher, values, batch);
      const client::PushSummary summary = pusher.Finish();
      return {summary.accepted, summary.refused};
    }
    case Way::kAcknowledged: {
      client::AcknowledgedPusher pusher = daemon.client().PushAcknowledged(name);
      PushGrpc(pusher, values, batch);
      const client::AcknowledgedPushSummary summary = pusher.Finish();
      EXPECT_EQ(summary.refused_batches, 0u);
      return {summary.accepted, summary.refused};
    }
  }
  return {};
}

// `values` with a NaN of either sign before the first and after every hundredth.
template <class T>
std::vector<T> WithNan(const std::vector<T>& values) {
  std::vector<T> mixed;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 100 == 0) mixed.push_back(std::copysign(std::nan(""), i % 200 == 0 ? 1 : -1));
    mixed.push_back(values[i]);
  }
  if (values.empty()) mixed.push_back(std::nan(""));
  return mixed;
}

class OracleTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { daemon_ = std::make_unique<TestDaemon>(); }
  static void TearDownTestSuite() { daemon_.reset(); }

  // Pushes the values and asks everything about them.
  template <class T>
  void CheckStream(Shape shape, std::size_t n, double epsilon, Way way) {
    const std::uint64_t seed = ++seed_;
    const std::string name = std::string(client::TypeName(TypeOf<T>())) + "." +
                             std::string(ShapeName(shape)) + "." + std::to_string(n) + "." +
                             std::to_string(epsilon) + "." +
                             std::string(kWayNames[static_cast<std::size_t>(way)]);
    SCOPED_TRACE(name + ", seed " + std::to_string(seed));
    client::Client& client = daemon_->client();
    const client::StreamInfo created = client.CreateStream(
        name, {.type = TypeOf<T>(), .quantile_epsilon = epsilon, .frequency_epsilon = epsilon});
    EXPECT_EQ(created.config.type, TypeOf<T>());

    const std::vector<T> values = MakeValues<T>(shape, n, seed);
    std::uint64_t nan = 0;
    Taken taken;
    if constexpr (std::is_floating_point_v<T>) {
      const std::vector<T> mixed = WithNan(values);
      nan = mixed.size() - values.size();
      taken = PushAll<T>(*daemon_, way, name, mixed);
    } else {
      taken = PushAll<T>(*daemon_, way, name, values);
    }
    EXPECT_EQ(taken.accepted, n);
    EXPECT_EQ(taken.refused, nan);
    nan_sent_ += nan;

    const Oracle<T> oracle(values);
    std::mt19937_64 random(seed);
    if constexpr (!std::is_same_v<T, std::string>) {
      CheckRanks(client, name, oracle, epsilon, random);
    }
    CheckFrequencies(client, name, oracle, epsilon, random);

    const client::StreamInfo info = client.DescribeStream(name);
    EXPECT_EQ(info.count, n);
    EXPECT_EQ(info.refused, nan);
    client.DeleteStream(name);
  }

  template <class T>
  static std::vector<Value> SomeValues(const Oracle<T>& oracle, std::mt19937_64& random) {
    std::vector<Value> some;
    for (int i = 0; i < 10 && oracle.n() > 0; ++i) {
      some.push_back(Value{oracle.sorted()[random() % oracle.n()]});
    }
    if (oracle.n() > 0) {
      some.push_back(Value{oracle.sorted().front()});
      some.push_back(Value{oracle.sorted().back()});
    }
    // Mostly none of the stream's.
    for (const Shape shape : {Shape::kUniform, Shape::kExtremes, Shape::kTiny}) {
      for (int i = 0; i < 3; ++i) some.push_back(Value{ValueOf<T>(shape, 0, 1, random)});
    }
    return some;
  }

  template <class T>
  static void CheckRanks(client::Client& client, const std::string& name, const Oracle<T>& oracle,
                         double epsilon, std::mt19937_64& random) {
    std::vector<double> phi = {0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
    for (int i = 0; i < 10; ++i) {
      phi.push_back(std::uniform_real_distribution<double>(0, 1)(random));
    }
    oracle.Check(client.Quantiles(name, phi), phi, epsilon);
    std::vector<Value> asked = SomeValues(oracle, random);
    oracle.Check(client.Ranks(name, asked), asked, epsilon);
    const client::HistogramAnswer equi_depth = client.EquiDepthHistogram(name, 10);
    EXPECT_EQ(equi_depth.buckets.empty(), oracle.n() == 0);
    EXPECT_LE(equi_depth.buckets.size(), 10u);
    oracle.Check(equi_depth, epsilon);
    std::sort(asked.begin(), asked.end(), [](const Value& a, const Value& b) {
      return std::get<T>(a.kind) < std::get<T>(b.kind);
    });
    const client::HistogramAnswer bounded = client.Histogram(name, asked);
    EXPECT_EQ(bounded.buckets.size(), asked.size() + 1);
    oracle.Check(bounded, epsilon);
  }

  template <class T>
  static void CheckFrequencies(client::Client& client, const std::string& name,
                               const Oracle<T>& oracle, double epsilon, std::mt19937_64& random) {
    for (const double support : {1.0, 0.3, 0.1, 2 * epsilon, 1.25 * epsilon}) {
      oracle.Check(client.HeavyHitters(name, support), support, epsilon);
    }
    const std::vector<Value> asked = SomeValues(oracle, random);
    oracle.Check(client.Counts(name, asked), asked, epsilon);
  }

  template <class T>
  void CheckType() {
    const double nan_before = daemon_->Metric(R"(tidemark_ingest_refused_total{reason="nan"})");
    const double values_before = daemon_->Metric("tidemark_ingest_values_total");
    nan_sent_ = 0;
    std::uint64_t sent = 0;
    std::size_t turn = 0;
    for (const Shape shape : kShapes) {
      for (const double epsilon : kEpsilons) {
        for (const std::size_t n : kSizes) {
          CheckStream<T>(shape, n, epsilon, static_cast<Way>(turn++ % kWays));
          sent += n;
        }
      }
    }
    // Each error bound and each way in once at full size, with shapes that differ by type.
    std::size_t shape = static_cast<std::size_t>(TypeOf<T>());
    for (const double epsilon : kEpsilons) {
      CheckStream<T>(kShapes[shape++ % std::size(kShapes)], kLargeSize, epsilon,
                     static_cast<Way>(turn++ % kWays));
      sent += kLargeSize;
    }
    EXPECT_EQ(daemon_->Metric(R"(tidemark_ingest_refused_total{reason="nan"})") - nan_before,
              static_cast<double>(nan_sent_));
    EXPECT_EQ(daemon_->Metric("tidemark_ingest_values_total") - values_before,
              static_cast<double>(sent));
  }

  static std::unique_ptr<TestDaemon> daemon_;
  std::uint64_t seed_ = 20'000;
  std::uint64_t nan_sent_ = 0;
};
std::unique_ptr<TestDaemon> OracleTest::daemon_;

TEST_F(OracleTest, Float64) { CheckType<double>(); }
TEST_F(OracleTest, Float32) { CheckType<float>(); }
TEST_F(OracleTest, Int64) { CheckType<std::int64_t>(); }
TEST_F(OracleTest, Uint64) { CheckType<std::uint64_t>(); }
TEST_F(OracleTest, Uint32) { CheckType<std::uint32_t>(); }
TEST_F(OracleTest, Ipv4) { CheckType<client::Ipv4>(); }
TEST_F(OracleTest, String) {
  CheckType<std::string>();
  daemon_->client().CreateStream("words", {.type = ValueType::kString});
  try {
    daemon_->client().Quantiles("words", {0.5});
    FAIL() << "strings have no quantiles";
  } catch (const client::Error& error) {
    EXPECT_EQ(error.code(), client::Code::kFailedPrecondition) << error.what();
  }
}

// The same values by three ways at once into one stream: the answer covers all of them.
TEST_F(OracleTest, WaysMix) {
  const std::vector<double> values = MakeValues<double>(Shape::kLognormal, 30'000, 7);
  daemon_->client().CreateStream("mix", {.quantile_epsilon = 0.01, .frequency_epsilon = 0.01});
  std::vector<double> all;
  for (const Way way : {Way::kPush, Way::kTcp, Way::kAcknowledged, Way::kTcp}) {
    EXPECT_EQ(PushAll<double>(*daemon_, way, "mix", values).accepted, values.size());
    all.insert(all.end(), values.begin(), values.end());
    const std::vector<double> phi = {0, 0.5, 0.9, 0.99, 1};
    Oracle<double>(all).Check(daemon_->client().Quantiles("mix", phi), phi, 0.01);
  }
}

}  // namespace
}  // namespace tidemark::test
