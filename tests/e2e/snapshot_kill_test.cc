// Mode snapshot ended by SIGKILL: what the last whole snapshot has is there, of each stream a
// prefix of its batches, and a producer that numbers its batches and sends them again completes it,
// each batch once. With a log: durability_test.cc; where exactly a snapshot is cut: tests/fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/summaries/cases.h"

namespace tidemark::test {
namespace {

constexpr std::uint32_t kSeed = 20'261'123;
constexpr std::size_t kBatchValues = 50;
// A number that is further behind the last one that was taken is refused (docs/protocol.md).
constexpr std::uint64_t kNumbersKept = 64;

// A producer's batches 1, 2, ... to one stream: the k-th value of all of them is k, or k modulo
// `modulus`.
class NumberedStream {
 public:
  NumberedStream(std::string stream, std::uint64_t modulus)
      : stream_(std::move(stream)), modulus_(modulus), id_(stream_) {
    id_.resize(16, '#');
  }

  // To a daemon that may have been started anew: the next batch is `number`.
  void Connect(const TestDaemon& daemon, std::uint64_t number) {
    answered_ = 0;
    too_old_ = 0;
    next_ = number;
    client::TcpProducerOptions options;
    options.producer = id_;
    options.window_batches = kNumbersKept;
    options.on_answer = [this](const client::BatchAnswer& answer) {
      if (answer.status.code() == absl::StatusCode::kFailedPrecondition) {
        ++too_old_;
        return;
      }
      EXPECT_TRUE(answer.status.ok()) << answer.status;
      EXPECT_EQ(answer.accepted, kBatchValues);
      answered_ = answer.batch_id;
    };
    producer_ = daemon.Producer(options);
    const auto opened = producer_->Open(stream_, wire::WireType::kUint64);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) open_ = *opened;
  }
  // More batches, without waiting for the last ones' answers.
  void Send(std::uint64_t batches) {
    std::vector<std::uint64_t> values(kBatchValues);
    for (std::uint64_t i = 0; i < batches; ++i, ++next_) {
      for (std::size_t j = 0; j < kBatchValues; ++j) values[j] = At((next_ - 1) * kBatchValues + j);
      const absl::Status sent =
          producer_->SendNumbered(open_, next_, {}, std::as_bytes(std::span(values)));
      EXPECT_TRUE(sent.ok()) << sent;
    }
    sent_ = std::max(sent_, next_ - 1);
  }
  void Flush() {
    const absl::Status flushed = producer_->Flush();
    EXPECT_TRUE(flushed.ok()) << flushed;
  }

  const std::string& stream() const { return stream_; }
  std::uint64_t sent() const { return sent_; }          // the highest number
  std::uint64_t answered() const { return answered_; }  // since Connect; 0: none
  std::uint64_t too_old() const { return too_old_; }    // since Connect

  // Every answer about the stream is one of its first `batches` batches.
  void ExpectPrefix(client::Client& client, std::uint64_t batches) const {
    const std::uint64_t n = batches * kBatchValues;
    const auto at_most = [&](std::uint64_t value) {  // of 0, 1, ..., n - 1
      if (modulus_ == 0) return std::min(n, value + 1);
      return n / modulus_ * std::min(modulus_, value + 1) + std::min(n % modulus_, value + 1);
    };
    const auto of = [&](std::uint64_t value) {
      return at_most(value) - (value == 0 ? 0 : at_most(value - 1));
    };
    const auto holds = [&](std::uint64_t low, std::uint64_t high, std::uint64_t truth,
                           double epsilon) {
      EXPECT_LE(low, truth);
      EXPECT_GE(high, truth);
      EXPECT_LE(static_cast<double>(high - low), 2 * epsilon * static_cast<double>(n) + 1);
    };
    const std::uint64_t top = modulus_ == 0 ? n : modulus_;
    const std::vector<client::Value> values{client::Value{std::uint64_t{0}}, client::Value{top / 7},
                                            client::Value{top / 2}, client::Value{top - 1},
                                            client::Value{top + 5}};
    const client::RanksAnswer ranks = client.Ranks(stream_, values);
    EXPECT_EQ(ranks.n, n);
    for (const client::RankAnswer& rank : ranks.answers) {
      holds(rank.rank_low, rank.rank_high, at_most(std::get<std::uint64_t>(rank.value.kind)),
            ranks.epsilon);
    }
    const client::CountsAnswer counts = client.Counts(stream_, values);
    for (const client::ItemCount& item : counts.items) {
      holds(item.count_low, item.count_high, of(std::get<std::uint64_t>(item.value.kind)),
            counts.epsilon);
    }
    const client::QuantilesAnswer quantiles = client.Quantiles(stream_, {0.01, 0.5, 0.99});
    for (const client::QuantileAnswer& answer : quantiles.answers) {
      const auto value = std::get<std::uint64_t>(answer.value.kind);
      const double asked = answer.phi * static_cast<double>(n);
      const double slack = quantiles.epsilon * static_cast<double>(n) + 1;
      EXPECT_GE(static_cast<double>(at_most(value)), asked - slack);
      EXPECT_LE(static_cast<double>(at_most(value) - of(value)), asked + slack);
    }
  }

 private:
  std::uint64_t At(std::uint64_t index) const { return modulus_ == 0 ? index : index % modulus_; }

  const std::string stream_;
  const std::uint64_t modulus_;
  std::string id_;
  std::unique_ptr<client::TcpProducer> producer_;
  client::TcpStream open_;
  std::uint64_t next_ = 1;
  std::uint64_t sent_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t too_old_ = 0;
};

class SnapshotKillTest : public testing::Test {
 protected:
  std::vector<std::string> Flags(const std::string& interval_s) const {
    return {"--data-dir", data_.path(),   "--durability", "snapshot",     "--snapshot-interval-s",
            interval_s,   "--window-min", "16",           "--window-max", "256"};
  }
  bool SnapshotUnderWay() const {
    std::error_code gone;  // a name may vanish while the folder is read
    for (const auto& entry : std::filesystem::directory_iterator(data_ / "store", gone)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("snapshot-") && name.ends_with(".tmp")) return true;
    }
    return false;
  }

  // Of a daemon that was killed and started again: of each stream a prefix, at least `certain`;
  // then all of it, by its producer.
  void ExpectPrefixesAndComplete(TestDaemon& again, const std::vector<std::uint64_t>& certain) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      NumberedStream& stream = streams_[i];
      SCOPED_TRACE(stream.stream());
      client::Client& client = again.client();
      const std::uint64_t count = client.DescribeStream(stream.stream()).count;
      EXPECT_EQ(count % kBatchValues, 0u) << "part of a batch";
      const std::uint64_t held = count / kBatchValues;
      EXPECT_GE(held, certain[i]) << "a whole snapshot had it";
      EXPECT_LE(held, stream.sent()) << "more than was ever sent";
      lost_ += stream.sent() - held;
      stream.ExpectPrefix(client, held);

      // Everything since well before that snapshot: taken, taken before, or too old to tell.
      const std::uint64_t from =
          certain[i] > 2 * kNumbersKept ? certain[i] - 2 * kNumbersKept : std::uint64_t{1};
      const std::uint64_t sent = stream.sent();
      stream.Connect(again, from);
      stream.Send(sent + 1 - from);
      stream.Flush();
      EXPECT_EQ(stream.answered(), sent);
      const std::uint64_t old = held > kNumbersKept ? held - kNumbersKept : 0;
      EXPECT_EQ(stream.too_old(), old >= from ? old - from + 1 : 0);
      EXPECT_EQ(client.DescribeStream(stream.stream()).count, sent * kBatchValues);
      stream.ExpectPrefix(client, sent);
    }
  }

  TemporaryFolder data_;
  std::array<NumberedStream, 2> streams_both_{NumberedStream("counted up", 0),
                                              NumberedStream("in turns", 97)};
  std::span<NumberedStream> streams_{streams_both_};
  std::uint64_t lost_ = 0;  // batches that no snapshot had
};

TEST_F(SnapshotKillTest, ItHasItsLastSnapshotAndProducersCompleteIt) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  const int rounds = Cases(4, 100);
  int in_the_middle = 0;
  std::optional<TestDaemon> daemon(std::in_place, Flags("1"));
  for (NumberedStream& stream : streams_) stream.Connect(*daemon, 1);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const auto snapshots = [&] {
      return daemon->Metric("tidemark_snapshots_total{result=\"ok\"}");
    };
    const auto push = [&] {
      for (NumberedStream& stream : streams_) {
        stream.Send(1 + random() % 20);
        stream.Flush();
      }
    };
    // What is acknowledged now is in the second snapshot from now on: that one begins later.
    push();
    std::vector<std::uint64_t> certain;
    for (const NumberedStream& stream : streams_) certain.push_back(stream.answered());
    const double before = snapshots();
    EXPECT_TRUE(WaitUntil([&] {
      push();
      return snapshots() >= before + 2;
    }));
    // At any moment, some batches not answered, or while one is written.
    bool under_way = false;
    if (random() % 2 == 0) {
      under_way = WaitUntil(
          [&] {
            push();
            return SnapshotUnderWay();
          },
          std::chrono::seconds(2));
    }
    if (!under_way) {
      for (std::uint64_t i = random() % 100; i > 0; --i) push();
      for (NumberedStream& stream : streams_) stream.Send(random() % kNumbersKept);
    }
    daemon->Kill();
    in_the_middle += under_way ? 1 : 0;
    daemon.emplace(Flags("1"));
    ExpectPrefixesAndComplete(*daemon, certain);
  }
  std::printf("snapshot kills: %d rounds, %d while one was written, %llu batches sent again\n",
              rounds, in_the_middle, static_cast<unsigned long long>(lost_));
  EXPECT_GT(lost_, 0u) << "nothing came behind a snapshot";
  if (rounds >= 100) {
    EXPECT_GT(in_the_middle, 0);
  }
  // A stop loses nothing.
  daemon->Stop();
  daemon.emplace(Flags("1"));
  for (const NumberedStream& stream : streams_)
    stream.ExpectPrefix(daemon->client(), stream.sent());
}

// No snapshot at all: the daemon begins with nothing, and a producer with all.
TEST_F(SnapshotKillTest, BeforeTheFirstSnapshotThereIsNothing) {
  {
    TestDaemon daemon(Flags("3600"));
    for (NumberedStream& stream : streams_) {
      stream.Connect(daemon, 1);
      stream.Send(30);
      stream.Flush();
      EXPECT_EQ(stream.answered(), 30u);
    }
    daemon.Kill();
  }
  TestDaemon again(Flags("3600"));
  EXPECT_EQ(again.client().ListStreams().size(), 0u);
  for (NumberedStream& stream : streams_) {
    stream.Connect(again, 1);
    stream.Send(30);
    stream.Flush();
    EXPECT_EQ(stream.answered(), 30u);
    stream.ExpectPrefix(again.client(), 30);
  }
}

}  // namespace
}  // namespace tidemark::test
