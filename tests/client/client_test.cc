// The library against a fake daemon: what is sent, what comes back, errors, deadlines, cancelling.
#include "client/client.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "tests/client/fake_server.h"

namespace tidemark::client {
namespace {

using namespace std::chrono_literals;

ClientOptions To(const FakeServer& server) {
  ClientOptions options;
  options.server = server.address();
  return options;
}

template <typename Function>
Error Caught(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "no error");
}

template <typename T>
void PushAndCompare(const std::vector<T>& values) {
  FakeServer server;
  Client client(To(server));
  Pusher pusher = client.Push("s");
  pusher.Write(std::span<const T>(values));
  const PushSummary summary = pusher.Finish();
  EXPECT_EQ(summary.accepted, values.size());
  EXPECT_EQ(summary.refused, 0u);
  EXPECT_EQ(summary.batches, (values.size() + kBatchValues - 1) / kBatchValues);
  EXPECT_LE(server.largest_batch(), kBatchValues);
  const auto arrived = server.Values("s");
  ASSERT_EQ(arrived.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(arrived[i], Value{values[i]});
}

TEST(Push, EveryType) {
  std::vector<double> doubles(40'000);
  std::iota(doubles.begin(), doubles.end(), -20'000.5);
  PushAndCompare(doubles);
  PushAndCompare(std::vector<float>{1.5f, -INFINITY});
  PushAndCompare(std::vector<std::int64_t>{-1, INT64_MIN, INT64_MAX});
  PushAndCompare(std::vector<std::uint64_t>{0, UINT64_MAX});
  PushAndCompare(std::vector<std::uint32_t>(kBatchValues + 1, 7));
  PushAndCompare(std::vector<Ipv4>{{0x0A000001u}, {0xFFFFFFFFu}});
  PushAndCompare(std::vector<std::string>{"a", "", "\xC3\xA9"});
}

TEST(Push, NothingIsAnEmptyPush) {
  FakeServer server;
  Client client(To(server));
  Pusher pusher = client.Push("s");
  pusher.Write(std::vector<double>());
  EXPECT_EQ(pusher.Finish().batches, 0u);
  EXPECT_EQ(Caught([&] { pusher.Write(std::vector<double>{1}); }).code(),
            Code::kFailedPrecondition);
}

TEST(Push, NanIsRefusedAndCounted) {
  FakeServer server;
  Client client(To(server));
  Pusher pusher = client.Push("s");
  pusher.Write(std::vector<double>{1, NAN, 2});
  const PushSummary summary = pusher.Finish();
  EXPECT_EQ(summary.accepted, 2u);
  EXPECT_EQ(summary.refused, 1u);
}

TEST(Push, LongStringsAreSplitByBytes) {
  FakeServer server;
  Client client(To(server));
  const std::vector<std::string> items(10, std::string(100'000, 'x'));
  Pusher pusher = client.Push("s");
  pusher.Write(std::span<const std::string>(items));
  EXPECT_EQ(pusher.Finish().accepted, 10u);
  EXPECT_EQ(server.largest_batch(), 2u);
}

TEST(Push, BadInputOfTheCaller) {
  FakeServer server;
  Client client(To(server));
  Pusher pusher = client.Push("s");
  const std::vector<std::string_view> items = {"ok", "\xFF"};
  EXPECT_STREQ(Caught([&] { pusher.Write(items); }).what(), "item 1 of the span is not UTF-8");
  const std::vector<std::byte> bytes(9);
  EXPECT_EQ(Caught([&] { pusher.WritePacked(ValueType::kFloat64, bytes); }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Caught([&] { pusher.WritePacked(ValueType::kString, bytes); }).code(),
            Code::kInvalidArgument);
  pusher.Write(std::vector<std::string_view>{"still usable"});
  EXPECT_EQ(pusher.Finish().accepted, 1u);
}

TEST(Push, ARefusedBatchEndsIt) {
  FakeServer server;
  server.RefuseBatch(2, 8, "too many streams");
  Client client(To(server));
  Pusher pusher = client.Push("s");
  const Error error = Caught([&] {
    // Whether Write or Finish learns of it depends on when the answer arrives.
    pusher.Write(std::vector<double>(3 * kBatchValues));
    pusher.Finish();
  });
  EXPECT_EQ(error.code(), Code::kResourceExhausted);
  EXPECT_STREQ(error.what(), "too many streams");
  EXPECT_EQ(Caught([&] { pusher.Finish(); }).code(), Code::kResourceExhausted);
  EXPECT_EQ(server.Values("s").size(), kBatchValues) << "the batch before it stays";
}

TEST(Client, TextThatIsNotUtf8IsNotSent) {
  FakeServer server;
  Client client(To(server));
  const std::string bad = "bad\xff\n";
  const std::string said = "stream name \"bad\\xff\\x0a\" is not UTF-8";
  const std::function<void()> calls[] = {
      [&] { client.CreateStream(bad); },
      [&] { client.DescribeStream(bad); },
      [&] { client.DeleteStream(bad); },
      [&] { client.Quantiles(bad, {0.5}); },
      [&] { client.Ranks(bad, {Value{1.0}}); },
      [&] { client.EquiDepthHistogram(bad, 2); },
      [&] { client.Histogram(bad, {Value{1.0}}); },
      [&] { client.HeavyHitters(bad, 0.5); },
      [&] { client.Counts(bad, {Value{1.0}}); },
      [&] { client.WatchQuantiles(bad, {0.5}); },
      [&] { client.WatchHeavyHitters(bad, 0.5); },
      [&] { client.Push(bad); },
      [&] { client.PushAcknowledged(bad); },
  };
  for (const auto& call : calls) {
    const Error error = Caught(call);
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_EQ(error.what(), said);
  }
  EXPECT_STREQ(Caught([&] { client.ListStreams("\xc0"); }).what(), "prefix \"\\xc0\" is not UTF-8");
  EXPECT_STREQ(Caught([&] { client.Counts("s", {Value{std::string("\xed\xa0\x80")}}); }).what(),
               "item \"\\xed\\xa0\\x80\" is not UTF-8");
}

TEST(Push, WithoutFinishIsCancelled) {
  FakeServer server;
  Client client(To(server));
  { client.Push("s").Write(std::vector<double>{1}); }
  Pusher pusher = client.Push("t");
  pusher.Cancel();
  EXPECT_EQ(Caught([&] { pusher.Finish(); }).code(), Code::kCancelled);
}

TEST(PushAcknowledged, EveryBatchIsAcknowledgedInOrder) {
  FakeServer server;
  server.RefuseBatch(2, 3, "no");
  Client client(To(server));
  std::vector<Acknowledgement> acknowledgements;
  AcknowledgedPushOptions options;
  options.on_acknowledgement = [&](const Acknowledgement& a) { acknowledgements.push_back(a); };
  AcknowledgedPusher pusher = client.PushAcknowledged("s", options);
  pusher.Write(std::vector<double>{1, 2});
  pusher.Write(std::vector<double>{3});
  pusher.Write(std::vector<double>{4, NAN});
  AcknowledgedPushSummary summary = pusher.Flush();
  EXPECT_EQ(summary.batches, 3u);
  EXPECT_EQ(summary.accepted, 3u);
  EXPECT_EQ(summary.refused, 1u);
  EXPECT_EQ(summary.refused_batches, 1u);
  pusher.Write(std::vector<double>{5});
  summary = pusher.Finish();
  EXPECT_EQ(summary.accepted, 4u);
  ASSERT_EQ(acknowledgements.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(acknowledgements[i].batch_id, i + 1);
  EXPECT_EQ(acknowledgements[1].code, Code::kInvalidArgument);
  EXPECT_EQ(acknowledgements[1].message, "no");
  EXPECT_EQ(server.Values("s").size(), 4u);
}

TEST(PushAcknowledged, RefusedBatchesAreThrownWhereNobodyListens) {
  FakeServer server;
  server.RefuseBatch(1, 9, "stream \"s\" is string");
  Client client(To(server));
  AcknowledgedPusher pusher = client.PushAcknowledged("s");
  pusher.Write(std::vector<double>{1});
  pusher.Write(std::vector<double>{2});
  const Error error = Caught([&] { pusher.Finish(); });
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_EQ(server.Values("s").size(), 1u) << "the call went on";
}

// The daemon acknowledges only once eight batches wait: nine pass, and never more than eight wait.
TEST(PushAcknowledged, BoundedNumberOfUnacknowledgedBatches) {
  FakeServer server;
  server.HoldAcknowledgements(8);
  Client client(To(server));
  AcknowledgedPushOptions options;
  options.max_unacknowledged = 8;
  std::uint64_t acknowledged = 0;
  options.on_acknowledgement = [&](const Acknowledgement&) { ++acknowledged; };
  AcknowledgedPusher pusher = client.PushAcknowledged("s", options);
  for (std::uint64_t sent = 1; sent <= 24; ++sent) {
    pusher.Write(std::vector<double>{1});
    EXPECT_LE(sent - acknowledged, 8u);
    EXPECT_GE(acknowledged, sent > 8 ? sent - 8 : 0);
  }
  EXPECT_EQ(pusher.Finish().accepted, 24u);
}

// The daemon ends the call while acknowledgements lie unread: they count, and nothing waits for
// ever.
TEST(PushAcknowledged, EndsWhileAcknowledgementsAreUnread) {
  FakeServer server;
  server.EndPushesAfter(3);
  Client client(To(server));
  AcknowledgedPushOptions options;
  options.max_unacknowledged = 1'000'000;  // so that Write never reads
  std::uint64_t acknowledged = 0;
  options.on_acknowledgement = [&](const Acknowledgement&) { ++acknowledged; };
  AcknowledgedPusher pusher = client.PushAcknowledged("s", options);
  const Error error = Caught([&] {
    while (true) pusher.Write(std::vector<double>{1});
  });
  EXPECT_EQ(error.code(), Code::kUnavailable) << error.what();
  EXPECT_EQ(acknowledged, 3u);
}

AcknowledgedPushOptions Retrying() {
  AcknowledgedPushOptions options;
  options.retry_for = 10s;
  return options;
}

TEST(RetryingPush, IsEffectivelyOnceWhereAnAcknowledgementIsLost) {
  FakeServer server;
  server.LoseAcknowledgementOf(3);
  Client client(To(server));
  std::vector<Acknowledgement> acknowledgements;
  AcknowledgedPushOptions options = Retrying();
  options.on_acknowledgement = [&](const Acknowledgement& a) { acknowledgements.push_back(a); };
  AcknowledgedPusher pusher = client.PushAcknowledged("s", options);
  std::vector<Value> sent;
  for (int i = 1; i <= 100; ++i) {
    pusher.Write(std::vector<double>{i + 0.5});
    sent.push_back({i + 0.5});
  }
  const AcknowledgedPushSummary summary = pusher.Finish();
  EXPECT_EQ(server.Values("s"), sent) << "each once, and in their order";
  EXPECT_EQ(summary.accepted, 100u);
  EXPECT_EQ(summary.batches, 100u);
  EXPECT_EQ(summary.retries, 1u);
  EXPECT_GE(summary.duplicates, 1u);
  ASSERT_EQ(acknowledgements.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(acknowledgements[i].batch_id, i + 1);
  EXPECT_TRUE(acknowledgements[2].duplicate);
}

TEST(RetryingPush, GoesOnWhereTheDaemonWasUnavailable) {
  FakeServer server;
  server.BeUnavailableFor(2);
  server.EndPushesAfter(5);
  Client client(To(server));
  AcknowledgedPusher pusher = client.PushAcknowledged("s", Retrying());
  std::vector<Value> sent;
  for (int i = 1; i <= 40; ++i) {
    pusher.Write(std::vector<std::string>{std::to_string(i)});
    sent.push_back({std::to_string(i)});
  }
  EXPECT_EQ(pusher.Flush().accepted, 40u);
  const AcknowledgedPushSummary summary = pusher.Finish();
  EXPECT_GE(summary.retries, 2u);
  std::vector<Value> held = server.Values("s");
  const auto less = [](const Value& a, const Value& b) { return a.kind < b.kind; };
  std::sort(held.begin(), held.end(), less);
  std::sort(sent.begin(), sent.end(), less);
  EXPECT_EQ(held, sent) << "each once";
}

TEST(RetryingPush, RefusalsAreNotTriedAgain) {
  FakeServer server;
  Client client(To(server));
  client.CreateStream("items", {ValueType::kString});
  AcknowledgedPusher pusher = client.PushAcknowledged("items", Retrying());
  const Error error = Caught([&] { pusher.Write(std::vector<double>{1}); });
  EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.what();
  EXPECT_EQ(Caught([&] { pusher.Finish(); }).code(), Code::kFailedPrecondition);
}

TEST(RetryingPush, GivesUpAfterItsTimeAndCanBeCancelled) {
  auto server = std::make_unique<FakeServer>();
  Client client(To(*server));
  AcknowledgedPushOptions options;
  options.retry_for = 50ms;
  AcknowledgedPusher pusher = client.PushAcknowledged("s", options);
  pusher.Write(std::vector<double>{1});
  pusher.Flush();
  AcknowledgedPushOptions patient;
  patient.retry_for = 1h;
  AcknowledgedPusher other = client.PushAcknowledged("s", patient);
  other.Write(std::vector<double>{2});
  other.Flush();
  server.reset();
  const Error error = Caught([&] {
    pusher.Write(std::vector<double>{3});
    pusher.Flush();
  });
  EXPECT_EQ(error.code(), Code::kUnavailable) << error.what();
  EXPECT_NE(std::string(error.what()).find("gave up"), std::string::npos) << error.what();
  std::thread cancel([&] { other.Cancel(); });
  EXPECT_EQ(Caught([&] {
              other.Write(std::vector<double>{3});
              other.Flush();
            }).code(),
            Code::kCancelled);
  cancel.join();
}

TEST(Streams, CreateListDescribeDelete) {
  FakeServer server;
  Client client(To(server));
  EXPECT_EQ(client.CreateStream("a").config.type, ValueType::kFloat64);
  const StreamInfo b = client.CreateStream("b", {ValueType::kIpv4, 0.01, 0.02});
  EXPECT_EQ(b.config.type, ValueType::kIpv4);
  EXPECT_EQ(b.config.quantile_epsilon, 0.01);
  EXPECT_EQ(b.config.frequency_epsilon, 0.02);
  for (const char* name : {"b1", "b2", "c"}) client.CreateStream(name);
  EXPECT_EQ(client.ListStreams().size(), 5u) << "pages of two";
  EXPECT_EQ(client.ListStreams("b").size(), 3u);
  EXPECT_EQ(client.DescribeStream("b").name, "b");
  EXPECT_EQ(Caught([&] { client.CreateStream("b"); }).code(), Code::kAlreadyExists);
  client.DeleteStream("b");
  const Error error = Caught([&] { client.DescribeStream("b"); });
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_STREQ(error.what(), "stream \"b\" does not exist");
}

class Queries : public testing::Test {
 protected:
  Queries() : client_(To(server_)) {
    Pusher pusher = client_.Push("s");
    std::vector<double> values(100);
    std::iota(values.begin(), values.end(), 1);
    pusher.Write(std::span<const double>(values));
    pusher.Finish();
    Pusher items = client_.Push("items");
    items.Write(std::vector<std::string_view>{"a", "b", "a", "c", "a", "b"});
    items.Finish();
  }
  FakeServer server_;
  Client client_;
};

TEST_F(Queries, Answers) {
  const QuantilesAnswer quantiles = client_.Quantiles("s", {0, 0.5, 1});
  EXPECT_EQ(quantiles.stream, "s");
  EXPECT_EQ(quantiles.n, 100u);
  EXPECT_EQ(quantiles.epsilon, 0.001);
  ASSERT_EQ(quantiles.answers.size(), 3u);
  EXPECT_EQ(quantiles.answers[1].value, Value{50.0});
  EXPECT_EQ(quantiles.answers[1].rank_low, 50u);

  const RanksAnswer ranks = client_.Ranks("s", {{-5.0}, {50.5}});
  EXPECT_EQ(ranks.answers[0].rank_high, 0u);
  EXPECT_EQ(ranks.answers[1].rank_high, 50u);

  const HistogramAnswer depth = client_.EquiDepthHistogram("s", 4);
  ASSERT_EQ(depth.buckets.size(), 4u);
  EXPECT_FALSE(depth.buckets[0].low);
  EXPECT_EQ(depth.buckets[3].high, Value{100.0});
  EXPECT_EQ(depth.buckets[3].count_low, 25u);

  const HistogramAnswer bounds = client_.Histogram("s", {{10.0}, {20.0}});
  ASSERT_EQ(bounds.buckets.size(), 3u);
  EXPECT_FALSE(bounds.buckets[2].high);
  EXPECT_EQ(bounds.buckets[1].count_high, 10u);

  const HeavyHittersAnswer top = client_.HeavyHitters("items", 0.3);
  ASSERT_EQ(top.items.size(), 2u);
  EXPECT_EQ(top.items[0].value, Value{std::string("a")});
  EXPECT_EQ(top.items[0].count_low, 3u);
  EXPECT_EQ(top.support, 0.3);

  const CountsAnswer counts = client_.Counts("items", {{std::string("c")}, {std::string("none")}});
  EXPECT_EQ(counts.items[0].count_high, 1u);
  EXPECT_EQ(counts.items[1].count_high, 0u);
}

TEST_F(Queries, ScopeIsRefusedWithoutSlidingWindows) {
  for (const Scope& scope : {Scope{10, 0us}, Scope{0, 1s}}) {
    EXPECT_EQ(Caught([&] { client_.Quantiles("s", {0.5}, scope); }).code(),
              Code::kFailedPrecondition);
  }
}

TEST_F(Queries, Deadline) {
  server_.StallQueries();
  ClientOptions options = To(server_);
  options.deadline = 50ms;
  Client hasty(options);
  const Error error = Caught([&] { hasty.Quantiles("s", {0.5}); });
  EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(std::string(error.what()),
            "the daemon at " + server_.address() + " did not answer within 50 ms");
}

TEST_F(Queries, Watch) {
  WatchOptions options;
  options.interval = 10ms;
  Watch watch = client_.WatchQuantiles("s", {0.5}, options);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto answer = watch.Next();
    ASSERT_TRUE(answer);
    EXPECT_EQ(std::get<QuantilesAnswer>(answer->answer).answers[0].value, Value{50.0});
    EXPECT_EQ(answer->skipped, i);
  }
  watch.Cancel();
  while (watch.Next()) {
  }
  EXPECT_FALSE(watch.Next());

  Watch top = client_.WatchHeavyHitters("items", 0.5, 0, options);
  EXPECT_EQ(std::get<HeavyHittersAnswer>(top.Next()->answer).items.size(), 1u);
  std::thread canceller([&] { top.Cancel(); });
  while (top.Next()) {
  }
  canceller.join();
}

TEST_F(Queries, WatchOfAnUnknownStream) {
  Watch watch = client_.WatchQuantiles("none", {0.5});
  EXPECT_EQ(Caught([&] { watch.Next(); }).code(), Code::kNotFound);
}

TEST_F(Queries, WatchThatTheDaemonEnds) {
  server_.EndWatchesAfter(1);
  WatchOptions options;
  options.interval = 10ms;
  Watch watch = client_.WatchQuantiles("s", {0.5}, options);
  EXPECT_TRUE(watch.Next());
  EXPECT_EQ(Caught([&] { watch.Next(); }).code(), Code::kUnavailable);
}

TEST_F(Queries, Info) {
  const ServerInfo info = client_.Info();
  EXPECT_EQ(info.version, "9.8.7");
  EXPECT_EQ(info.sorter.active, "cpu");
  ASSERT_EQ(info.endpoints.size(), 1u);
  EXPECT_EQ(info.endpoints[0].address, "127.0.0.1:7072");
  EXPECT_EQ(info.values, std::uint64_t{1} << 60);
}

TEST(Connection, Unreachable) {
  std::string address;
  { address = FakeServer().address(); }
  ClientOptions options;
  options.server = address;
  Client client(options);
  const Error error = Caught([&] { client.Info(); });
  EXPECT_EQ(error.code(), Code::kUnavailable);
  EXPECT_NE(std::string(error.what()).find(address), std::string::npos);
  EXPECT_EQ(Caught([&] {
              Pusher pusher = client.Push("s");
              pusher.Write(std::vector<double>{1});
              pusher.Finish();
            }).code(),
            Code::kUnavailable);
  EXPECT_EQ(Caught([&] { client.WatchQuantiles("s", {0.5}).Next(); }).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace tidemark::client
