// The framed TCP server before a sink with a log: answers wait until the log is durable, in the
// order of what they answer.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/ingest/io_threads.h"
#include "server/ingest/tcp_server.h"
#include "tests/support/fake_sink.h"
#include "tests/support/raw_socket.h"

namespace tidemark::server {
namespace {

using test::RawSocket;
using wire::WireType;

// Numbers batches from 1, and syncs when it is told to. Of a producer's batch that came before it
// says the number of then.
class LogSink final : public FakeSink {
 public:
  AppendResult AppendPacked(const StreamHandle& stream, std::span<const std::byte> values,
                            const BatchStamp& stamp) override {
    AppendResult result = FakeSink::AppendPacked(stream, values, stamp);
    const std::lock_guard lock(mutex_);
    if (!result.status.ok()) return result;
    if (stamp.from.numbered()) {
      const auto [at, fresh] = taken_.try_emplace(stamp.from.number, last_ + 1);
      result.duplicate = !fresh;
      result.log_sequence = at->second;
      if (!fresh) return result;
    }
    result.log_sequence = ++last_;
    return result;
  }
  void WhenDurable(std::uint64_t sequence, Durable done) override {
    std::uint64_t durable = 0;
    {
      const std::lock_guard lock(mutex_);
      durable = durable_;
      if (sequence > durable) {
        waiting_.emplace_back(sequence, std::move(done));
        changed_.notify_all();
        return;
      }
    }
    done(durable, absl::OkStatus());
  }

  /// Waits until somebody asks about this batch; false after ten seconds.
  bool WaitForQuestion(std::uint64_t sequence) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      return std::any_of(waiting_.begin(), waiting_.end(),
                         [&](const auto& one) { return one.first >= sequence; });
    });
  }
  void Sync(std::uint64_t durable, const absl::Status& status = absl::OkStatus()) {
    std::vector<Durable> told;
    {
      const std::lock_guard lock(mutex_);
      durable_ = durable;
      std::erase_if(waiting_, [&](auto& one) {
        if (status.ok() && one.first > durable) return false;
        told.push_back(std::move(one.second));
        return true;
      });
    }
    for (const Durable& done : told) done(durable, status);
  }
  std::uint64_t last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::uint64_t, Durable>> waiting_;
  std::map<std::uint64_t, std::uint64_t> taken_;
  std::uint64_t last_ = 0;
  std::uint64_t durable_ = 0;
};

class HeldAnswersTest : public testing::Test {
 protected:
  void StartServer(TcpServerOptions options = {}) {
    server_ = std::make_unique<TcpServer>(io_.io(), sink_, metrics_, options,
                                          Clocks{[] { return 0; }, [] { return 0; }}, LogFn());
    ASSERT_TRUE(server_->Start().ok());
  }

  static std::string Opening() {
    std::string bytes;
    wire::AppendPreamble(bytes);
    wire::AppendOpen(bytes, 1, WireType::kFloat64, "s");
    return bytes;
  }
  static void AddBatch(std::string& bytes, std::uint64_t id, std::uint32_t handle = 1) {
    const double value = 1.5;
    wire::AppendBatch(bytes, handle, id, WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
  }

  // "OPENED 1", "ACK 7", "ERROR 14 7 message".
  static std::vector<std::string> Answers(const std::string& bytes) {
    wire::ServerFrameDecoder decoder;
    std::vector<std::string> lines;
    std::span<const std::byte> rest = std::as_bytes(std::span(bytes.data(), bytes.size()));
    wire::ServerFrame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    while (decoder.Next(rest, frame, consumed, needed) == wire::DecodeResult::kFrame) {
      rest = rest.subspan(consumed);
      std::ostringstream line;
      if (frame.type == wire::FrameType::kOpened) {
        line << "OPENED " << frame.handle;
      } else if (frame.type == wire::FrameType::kAck) {
        line << "ACK " << frame.batch_id;
      } else {
        line << "ERROR " << frame.code << ' ' << frame.batch_id << ' ' << frame.message;
      }
      lines.push_back(line.str());
    }
    EXPECT_TRUE(rest.empty());
    return lines;
  }

  LogSink sink_;
  Metrics metrics_{"test"};
  IoThreads io_{2, "ingest"};
  std::unique_ptr<TcpServer> server_;
};

TEST_F(HeldAnswersTest, LeaveInTheirOrderWhenTheLogIsDurable) {
  StartServer();
  std::string bytes = Opening();
  AddBatch(bytes, 10);
  wire::AppendOpen(bytes, 2, WireType::kFloat64, "t");
  AddBatch(bytes, 11, 9);
  AddBatch(bytes, 12, 2);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  EXPECT_EQ(Answers(socket.Receive(wire::kOpenedBytes)), std::vector<std::string>{"OPENED 1"});
  ASSERT_TRUE(sink_.WaitForQuestion(2));
  sink_.Sync(2);
  socket.EndSending();
  EXPECT_EQ(
      Answers(socket.ReceiveAll()),
      (std::vector<std::string>{
          "ACK 10", "OPENED 2",
          "ERROR 5 11 batch 11: no stream is open as handle 9; expected OPEN before", "ACK 12"}));
}

TEST_F(HeldAnswersTest, ABatchThatComesAgainWaitsInItsTurn) {
  StartServer();
  std::string bytes = Opening();
  const std::string id(wire::kProducerIdBytes, 'p');
  wire::AppendProducer(bytes, id);
  const auto add = [&bytes](std::uint64_t number) {
    wire::AppendBatchHeader(bytes, 1, number, WireType::kFloat64, sizeof(double),
                            wire::FrameType::kSequencedBatch);
    bytes.append(sizeof(double), '\0');
  };
  add(1);
  AddBatch(bytes, 99);
  add(1);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  ASSERT_TRUE(sink_.WaitForQuestion(2)) << "not for record 1, which the last batch is";
  sink_.Sync(2);
  socket.EndSending();
  EXPECT_EQ(Answers(socket.ReceiveAll()),
            (std::vector<std::string>{"OPENED 1", "ACK 1", "ACK 99", "ACK 1"}));
  EXPECT_EQ(sink_.last(), 2u);
}

TEST_F(HeldAnswersTest, AFailureIsToldForWhatIsInDoubt) {
  StartServer();
  std::string bytes = Opening();
  for (std::uint64_t id = 1; id <= 3; ++id) AddBatch(bytes, id);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  ASSERT_TRUE(sink_.WaitForQuestion(3));
  sink_.Sync(1, absl::UnavailableError("no disk"));
  socket.EndSending();
  EXPECT_EQ(Answers(socket.ReceiveAll()),
            (std::vector<std::string>{
                "OPENED 1", "ACK 1", "ERROR 14 2 batch 2 was taken in and is not durable: no disk",
                "ERROR 14 3 batch 3 was taken in and is not durable: no disk"}));
  EXPECT_EQ(metrics_.Refused(Source::kTcp, "log_unavailable").Value(), 2);
}

TEST_F(HeldAnswersTest, AConnectionEndsWhenTheyHaveLeft) {
  StartServer();
  std::string bytes = Opening();
  AddBatch(bytes, 1);
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  socket.EndSending();
  ASSERT_TRUE(sink_.WaitForQuestion(1));
  sink_.Sync(1);
  bool ended_cleanly = false;
  EXPECT_EQ(Answers(socket.ReceiveAll(&ended_cleanly)),
            (std::vector<std::string>{"OPENED 1", "ACK 1"}));
  EXPECT_TRUE(ended_cleanly);
}

TEST_F(HeldAnswersTest, TooManyStopTheReading) {
  constexpr std::uint64_t kBatches = 2000;
  constexpr std::size_t kAnswers = 64;
  TcpServerOptions options;
  options.listen.outbound_bytes_max = kAnswers * wire::kAckBytes;
  StartServer(options);
  std::string bytes = Opening();
  std::vector<std::string> expected{"OPENED 1"};
  for (std::uint64_t id = 1; id <= kBatches; ++id) {
    AddBatch(bytes, id);
    expected.push_back("ACK " + std::to_string(id));
  }
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  socket.EndSending();
  ASSERT_TRUE(sink_.WaitForQuestion(1));
  EXPECT_LE(sink_.last(), kAnswers + 1);
  sink_.Sync(UINT64_MAX);
  EXPECT_EQ(Answers(socket.ReceiveAll()), expected);
}

// What waits for nothing itself counts as well.
TEST_F(HeldAnswersTest, TooManyBehindOneStopTheReading) {
  constexpr std::size_t kOpens = 3000;
  constexpr std::size_t kBytes = 16 << 10;
  constexpr std::size_t kErrorBytes = 100;  // each has more
  TcpServerOptions options;
  options.listen.outbound_bytes_max = kBytes;
  StartServer(options);
  std::string bytes = Opening();
  AddBatch(bytes, 1);
  for (std::uint32_t i = 0; i < kOpens; ++i) {
    wire::AppendOpen(bytes, 2, static_cast<WireType>(255), "t");
  }
  RawSocket socket(server_->port());
  ASSERT_TRUE(socket.Send(bytes));
  socket.EndSending();
  const auto refused = [this] { return metrics_.Refused(Source::kTcp, "type_mismatch").Value(); };
  while (metrics_.source(Source::kTcp).paused.Value() < 1 && refused() < kOpens) {
    std::this_thread::yield();
  }
  EXPECT_LE(refused() * kErrorBytes, kBytes + 2 * kErrorBytes);
  sink_.Sync(UINT64_MAX);
  const std::vector<std::string> answers = Answers(socket.ReceiveAll());
  ASSERT_EQ(answers.size(), 2 + kOpens) << "and go on when it has synced";
  EXPECT_EQ(answers[1], "ACK 1");
  EXPECT_EQ(answers[2].substr(0, 8), "ERROR 3 ");
}

TEST_F(HeldAnswersTest, AnAnswerAfterTheEndOfTheConnectionHarmsNobody) {
  StartServer();
  {
    std::string bytes = Opening();
    AddBatch(bytes, 1);
    RawSocket socket(server_->port());
    ASSERT_TRUE(socket.Send(bytes));
    ASSERT_TRUE(sink_.WaitForQuestion(1));
  }
  server_->Stop(std::chrono::milliseconds(0));
  server_.reset();
  sink_.Sync(1);
}

}  // namespace
}  // namespace tidemark::server
