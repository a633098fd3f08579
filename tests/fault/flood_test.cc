// More names, items and windows than there is room for, under limits.max_memory_bytes: the daemon
// stays below it, each line and item is taken in or refused and counted, and ten busy streams lose
// nothing and keep their certificates.
//
// A round is the flood of the test run; so many of them are the long one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/e2e/oracle.h"
#include "tests/e2e/test_daemon.h"
#include "tests/fault/busy_streams.h"
#include "tests/fault/resident_watch.h"
#include "tests/fault/rounds.h"
#include "tests/support/raw_socket.h"
#include "tests/support/wait_until.h"

namespace tidemark::fault {
namespace {

using test::TestDaemon;

constexpr std::uint64_t kNamesOfARound = 320'000;    // more than there is room for
constexpr int kNameRounds = 32;                      // 10^7 names
constexpr int kFedRounds = 4;                        // 10^6 names
constexpr std::uint64_t kFedOfARound = 100'000;      // streams, of those that were made
constexpr std::uint64_t kItemsOfARound = 1'000'000;  // more than what there is room for
constexpr int kItemRounds = 100;                     // 10^8 items
constexpr std::size_t kItemsOfABatch = 1000;
// Of each line to a stream that was made: more than a window of the smallest size.
constexpr std::uint64_t kFedValues = 300;

// A sixteenth must do for what no stream takes and is not there at first, 20 MiB: answers, batches
// under way, windows that are sorted, what allocators keep for each thread.
constexpr std::uint64_t kLimitBytes = 536'870'912;
// For items in the test run, beside what a daemon takes by itself: less than all of them would.
constexpr std::uint64_t kItemRoomBytes = std::uint64_t{72} << 20;
constexpr double kMiB = 1024.0 * 1024.0;

// A daemon with a limit, its ten busy streams and what is looked at from the beginning to the end.
class Flooded {
 public:
  Flooded(int rounds, int extended, BusyKind kind)
      : extended_(rounds >= extended),
        limit_(extended_ || kind == BusyKind::kNumbers ? kLimitBytes : Fresh() + kItemRoomBytes),
        daemon_(Flags()),
        watch_(daemon_),
        busy_(
            daemon_,
            {.kind = kind, .seed = Seed(), .pause = std::chrono::milliseconds(extended_ ? 20 : 2)}),
        begin_(std::chrono::steady_clock::now()) {
    std::printf("seed %llu, limit %.1f MiB\n", static_cast<unsigned long long>(Seed()),
                static_cast<double>(limit_) / kMiB);
    std::fflush(stdout);
  }

  TestDaemon& daemon() { return daemon_; }
  void FloodEnds() {
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

  // Of the busy streams and of the memory. `what` was done: for the line that is printed.
  BusyFigures Judge(const std::string& what) {
    const BusyFigures busy = busy_.EndAndJudge();
    const std::uint64_t most = watch_.Most();
    std::printf(
        "%s; %.1f s; resident at most %.1f of %.1f MiB; ten busy streams: %llu to %llu values, "
        "error at most %llu of %.0f, judged %zu times\n",
        what.c_str(), seconds_, static_cast<double>(most) / kMiB,
        static_cast<double>(limit_) / kMiB, static_cast<unsigned long long>(busy.values_min),
        static_cast<unsigned long long>(busy.values_max),
        static_cast<unsigned long long>(busy.error_max), busy.error_allowed, busy.judged);
    std::fflush(stdout);
#ifndef TIDEMARK_SANITIZED
    EXPECT_LE(most, limit_) << "resident: " << static_cast<double>(most - limit_) / kMiB
                            << " MiB more than limits.max_memory_bytes";
#endif
    return busy;
  }

 private:
  // What a daemon takes before anybody comes.
  static std::uint64_t Fresh() { return TestDaemon().RssPeakBytes(); }
  std::vector<std::string> Flags() const {
    std::vector<std::string> flags = {"--max-memory-bytes", std::to_string(limit_), "--max-streams",
                                      "10000000"};
    // So that few values make many windows, and their summaries take the place of their text.
    if (!extended_) flags.insert(flags.end(), {"--window-max", "4096"});
    return flags;
  }

  const bool extended_;
  const std::uint64_t limit_;
  TestDaemon daemon_;
  ResidentWatch watch_;
  BusyStreams busy_;
  const std::chrono::steady_clock::time_point begin_;
  double seconds_ = 0;
};

std::string NameOf(std::uint64_t number) { return test::Numbered("flood.", number); }
// All of it there and no two the same, in no order.
std::string ItemOf(std::uint64_t number) {
  return fmt::format("item-{:016x}", number * 0x9e37'79b9'7f4a'7c15);
}

// `count` lines by StatsD over TCP; over when the daemon has read them all.
void SendLines(const TestDaemon& daemon, std::uint64_t count,
               const std::function<void(std::uint64_t, std::string&)>& append) {
  constexpr std::size_t kChunkBytes = std::size_t{1} << 16;
  test::RawSocket socket(daemon.port("statsd"));
  ASSERT_TRUE(socket.connected());
  std::string lines;
  for (std::uint64_t i = 0; i < count; ++i) {
    append(i, lines);
    if ((i + 1) % 1'000'000 == 0) {
      TellProgress("lines, in millions", static_cast<int>((i + 1) / 1'000'000),
                   static_cast<int>(count / 1'000'000));
    }
    if (lines.size() < kChunkBytes && i + 1 < count) continue;
    std::string_view left = lines;
    ASSERT_TRUE(test::WaitUntil([&] {
      left.remove_prefix(socket.SendSome(left));
      return left.empty();
    })) << "line "
        << i;
    lines.clear();
  }
  socket.EndSending();
  // It looks for ten seconds at a time.
  bool all = false;
  EXPECT_TRUE(test::WaitUntil([&] {
    EXPECT_EQ(socket.ReceiveAll(&all), "");
    return all;
  })) << "the connection was cut";
}

// What the daemon's counts say of what came by StatsD over TCP.
struct Counted {
  std::uint64_t streams = 0;
  std::uint64_t values = 0;   // taken in
  std::uint64_t lines = 0;    // well formed, of streams that are there
  std::uint64_t refused = 0;  // for want of room: lines of no stream, values of one
  std::uint64_t other = 0;    // refused for other reasons, from other sources
};
std::string MetricsOf(const TestDaemon& daemon) {
  test::HttpReply reply;
  EXPECT_TRUE(test::WaitUntil([&] {
    reply = daemon.Get("/metrics");
    return reply.code == 200;
  })) << "no metrics: "
      << reply.code;
  return reply.body;
}
Counted CountedBy(const TestDaemon& daemon) {
  const std::string metrics = MetricsOf(daemon);
  const auto at = [&](std::string_view sample) {
    return static_cast<std::uint64_t>(test::MetricIn(metrics, sample));
  };
  Counted counted;
  counted.streams = at("tidemark_streams");
  counted.values = at(R"(tidemark_ingest_values_total{source="statsd_tcp"})");
  counted.lines = at(R"(tidemark_statsd_lines_total{source="statsd_tcp"})");
  for (const char* const reason : {"memory_limit", "stream_limit"}) {
    counted.refused += at(
        fmt::format(R"(tidemark_ingest_refused_total{{source="statsd_tcp",reason="{}"}})", reason));
  }
  counted.other = at("tidemark_ingest_refused_total") - counted.refused;
  return counted;
}

// One value to each of so many new names. How many streams there are then.
std::uint64_t FloodNames(Flooded& flooded, std::uint64_t names) {
  SendLines(flooded.daemon(), names, [](std::uint64_t i, std::string& lines) {
    fmt::format_to(std::back_inserter(lines), "{}:{}|ms\n", NameOf(i), i);
  });
  const Counted counted = CountedBy(flooded.daemon());
  const std::uint64_t made = counted.streams - BusyStreams::kStreams;
  EXPECT_EQ(made + counted.refused, names) << "made " << made << ", refused " << counted.refused;
  EXPECT_EQ(counted.values, made);
  EXPECT_EQ(counted.lines, made);
  EXPECT_EQ(counted.other, 0u);
  EXPECT_GT(made, 0u);
  EXPECT_GT(counted.refused, 0u) << "the limit was not reached";
  return made;
}

TEST(Flood, OfNames) {
  const int rounds = Rounds(1, kNameRounds);
  const std::uint64_t names = kNamesOfARound * static_cast<std::uint64_t>(rounds);
  Flooded flooded(rounds, kNameRounds, BusyKind::kNumbers);
  const std::uint64_t made = FloodNames(flooded, names);
  flooded.FloodEnds();
  // Those that were made have what was sent to them.
  const std::vector<client::StreamInfo> streams = flooded.daemon().client().ListStreams("flood.");
  EXPECT_EQ(streams.size(), made);
  const std::size_t step = streams.size() / 100 + 1;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(streams[i].count, 1u) << streams[i].name;
    if (i % step != 0) continue;
    const auto answer = flooded.daemon().client().Quantiles(streams[i].name, {0.5});
    ASSERT_EQ(answer.answers.size(), 1u);
    EXPECT_EQ(NameOf(static_cast<std::uint64_t>(std::get<double>(answer.answers[0].value.kind))),
              streams[i].name);
  }
  flooded.Judge(fmt::format("{} names: {} made, {} refused", names, made, names - made));
}

// The streams that there was room for want windows, one after the other.
TEST(Flood, FedStreams) {
  const int rounds = Rounds(1, kFedRounds);
  const std::uint64_t names = kNamesOfARound * static_cast<std::uint64_t>(rounds);
  Flooded flooded(rounds, kFedRounds, BusyKind::kNumbers);
  const std::uint64_t made = FloodNames(flooded, names);
  const std::uint64_t refused_names = names - made;
  std::vector<std::string> fed;
  for (client::StreamInfo& stream : flooded.daemon().client().ListStreams("flood.")) {
    fed.push_back(std::move(stream.name));
  }
  ASSERT_EQ(fed.size(), made);
  const std::uint64_t to = std::min(made, kFedOfARound * static_cast<std::uint64_t>(rounds));
  const auto value = [](std::uint64_t i, std::uint64_t j) { return (i + 7 * j) % 997; };
  SendLines(flooded.daemon(), to, [&](std::uint64_t i, std::string& lines) {
    lines += fed[i];
    for (std::uint64_t j = 0; j < kFedValues; ++j) {
      fmt::format_to(std::back_inserter(lines), ":{}", value(i, j));
    }
    lines += "|d\n";
  });
  flooded.FloodEnds();
  const Counted counted = CountedBy(flooded.daemon());
  const std::uint64_t refused = counted.refused - refused_names;
  EXPECT_EQ(counted.streams, made + BusyStreams::kStreams);
  EXPECT_EQ(counted.lines, made + to);
  EXPECT_EQ(counted.other, 0u);
  EXPECT_EQ(counted.values - made + refused, to * kFedValues)
      << "taken in " << counted.values - made << ", refused " << refused;
  // What was acknowledged of each is in its n, and its answers are those of what was taken in.
  std::uint64_t held = 0;
  std::uint64_t whole = 0;
  const std::vector<client::StreamInfo> streams = flooded.daemon().client().ListStreams("flood.");
  ASSERT_EQ(streams.size(), made);
  const std::size_t step = streams.size() / 100 + 1;
  const std::vector<double> phi = {0.01, 0.25, 0.5, 0.75, 0.99};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    held += streams[i].count;
    if (streams[i].count != kFedValues + 1) continue;
    if (whole++ % step != 0) continue;
    std::vector<double> values = {std::stod(streams[i].name.substr(NameOf(0).size() - 1))};
    for (std::uint64_t j = 0; j < kFedValues; ++j) {
      values.push_back(static_cast<double>(value(i, j)));
    }
    test::Oracle<double>(std::move(values))
        .Check(flooded.daemon().client().Quantiles(streams[i].name, phi), phi,
               streams[i].config.quantile_epsilon);
  }
  EXPECT_EQ(held, counted.values);
  EXPECT_GT(refused, 0u) << "there was room for all";
  EXPECT_GT(whole, 0u) << "none was fed";
  flooded.Judge(fmt::format("{} names: {} made; {} values to each of {}: {} taken in, {} refused",
                            names, made, kFedValues, to, counted.values - made, refused));
}

TEST(Flood, OfItems) {
  const int rounds = Rounds(1, kItemRounds);
  const std::uint64_t items = kItemsOfARound * static_cast<std::uint64_t>(rounds);
  constexpr char kStream[] = "items";
  constexpr std::uint64_t kSliding = 100'000;
  constexpr double kSlidingEpsilon = 0.05;
  constexpr double kEpsilon = 0.001;
  Flooded flooded(rounds, kItemRounds, BusyKind::kTexts);
  client::StreamConfig config;
  config.type = client::ValueType::kString;
  config.frequency_epsilon = kEpsilon;
  config.sliding.max_values = kSliding;
  config.sliding.epsilon = kSlidingEpsilon;
  flooded.daemon().client().CreateStream(kStream, config);
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  std::vector<bool> taken(items / kItemsOfABatch);
  client::TcpProducerOptions options;
  options.on_answer = [&](const client::BatchAnswer& answer) {
    taken.at(answer.batch_id - 1) = answer.status.ok();
    accepted += answer.accepted;
    refused += answer.status.ok() ? answer.refused : kItemsOfABatch;
    EXPECT_TRUE(answer.status.ok() || absl::IsResourceExhausted(answer.status)) << answer.status;
  };
  const auto producer = flooded.daemon().Producer(options);
  const auto stream = producer->Open(kStream, wire::WireType::kString);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::vector<std::string> texts(kItemsOfABatch);
  for (std::uint64_t i = 0; i < items; i += kItemsOfABatch) {
    for (std::size_t j = 0; j < kItemsOfABatch; ++j) texts[j] = ItemOf(i + j);
    const auto sent =
        producer->SendStrings(*stream, std::vector<std::string_view>(texts.begin(), texts.end()));
    ASSERT_TRUE(sent.ok()) << sent.status();
    if ((i + kItemsOfABatch) % 10'000'000 == 0) {
      TellProgress("items, in millions", static_cast<int>((i + kItemsOfABatch) / 1'000'000),
                   static_cast<int>(items / 1'000'000));
    }
  }
  ASSERT_TRUE(producer->Flush().ok());
  flooded.FloodEnds();
  // Each is part of n, or refused and counted.
  client::Client& client = flooded.daemon().client();
  EXPECT_EQ(accepted + refused, items);
  EXPECT_EQ(client.DescribeStream(kStream).count, accepted);
  // The flood's own answers: each item that was taken in came once.
  const auto expect_counts = [&](std::uint64_t last, double epsilon) {
    const std::uint64_t n = std::min(accepted, last);
    std::uint64_t first = items;  // of the last n that were taken in
    for (std::uint64_t left = n; left > 0;
         left -= taken[first / kItemsOfABatch] ? kItemsOfABatch : 0) {
      first -= kItemsOfABatch;
    }
    std::vector<client::Value> asked;
    std::vector<std::uint64_t> truths;
    for (std::uint64_t i = 0; i < items; i += items / 100 + 1) {
      asked.push_back(client::Value{ItemOf(i)});
      truths.push_back(i >= first && taken[i / kItemsOfABatch] ? 1 : 0);
    }
    const client::Scope scope{.last_values = last < accepted ? last : 0};
    const client::CountsAnswer answer = client.Counts(kStream, asked, scope);
    EXPECT_EQ(answer.n, n);
    ASSERT_EQ(answer.items.size(), asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const client::ItemCount& item = answer.items[i];
      EXPECT_TRUE(item.count_low <= truths[i] && truths[i] <= item.count_high &&
                  static_cast<double>(item.count_high - item.count_low) <=
                      epsilon * static_cast<double>(n))
          << client::FormatValue(item.value) << " came " << truths[i] << " times, certificate ["
          << item.count_low << ", " << item.count_high << "], n " << n;
    }
    EXPECT_TRUE(client.HeavyHitters(kStream, 2 * epsilon, 0, scope).items.empty());
  };
  expect_counts(items, kEpsilon);
  expect_counts(kSliding, kSlidingEpsilon);
  const BusyFigures busy =
      flooded.Judge(fmt::format("{} items: {} taken in, {} refused", items, accepted, refused));
  const std::string metrics = MetricsOf(flooded.daemon());
  const auto counted = [&](std::string_view labels) {
    return static_cast<std::uint64_t>(
        test::MetricIn(metrics, fmt::format("tidemark_ingest_refused_total{}", labels)));
  };
  EXPECT_EQ(flooded.daemon().client().DescribeStream(kStream).losses.refused_whole, refused);
  EXPECT_EQ(counted(""), refused + busy.refused);
  EXPECT_EQ(counted(R"({source="tcp",reason="text_limit"})") +
                counted(R"({source="tcp",reason="memory_limit"})"),
            refused + busy.refused);
}

}  // namespace
}  // namespace tidemark::fault
