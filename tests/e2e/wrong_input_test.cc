// Wrong input over real sockets: each is answered as documented, counted by its reason, and harms
// nobody else. Parsers alone: tests/wire, tests/server/ingest, tests/fuzz.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "tests/e2e/test_daemon.h"
#include "tests/support/raw_socket.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"
#include "tidemark/v1/streams.grpc.pb.h"
#include "wire/frame.h"

namespace tidemark::test {
namespace {

using client::Code;
using wire::WireType;

class WrongInputTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<TestDaemon>();
    daemon_->client().CreateStream("f64");
    daemon_->client().CreateStream("text", {.type = client::ValueType::kString});
    producer_ = daemon_->Producer();
    stream_ = *producer_->Open("bystander");
  }
  static void TearDownTestSuite() {
    producer_.reset();
    daemon_.reset();
  }
  // Whatever a test did, those who did nothing wrong are served.
  void TearDown() override {
    const std::uint64_t before = producer_->accepted();
    const double values[] = {1, 2, 3};
    ASSERT_TRUE(producer_->SendBatch(stream_, values).ok());
    ASSERT_TRUE(producer_->Flush().ok());
    EXPECT_EQ(producer_->accepted(), before + 3);
    EXPECT_EQ(daemon_->client().Quantiles("bystander", {0.5}).n, before + 3);
  }

  static double Refused(const std::string& source, const std::string& reason) {
    return daemon_->Metric("tidemark_ingest_refused_total{reason=\"" + reason + "\",source=\"" +
                           source + "\"}");
  }

  struct Answer {
    bool ended = false;  ///< the daemon closed the connection, cleanly
    std::vector<wire::ServerFrame> frames;
    std::vector<std::string> messages;  ///< of the frames; their message points here
  };
  // Sends bytes and the end of sending, and reads until the daemon closes.
  static Answer Send(const std::string& bytes) {
    RawSocket socket(daemon_->port("tcp"));
    EXPECT_TRUE(socket.connected());
    socket.Send(bytes);
    socket.EndSending();
    Answer answer;
    const std::string reply = socket.ReceiveAll(&answer.ended);
    wire::ServerFrameDecoder decoder;
    auto rest = std::as_bytes(std::span(reply));
    wire::ServerFrame frame;
    std::size_t consumed = 0, needed = 0;
    while (!rest.empty() &&
           decoder.Next(rest, frame, consumed, needed) == wire::DecodeResult::kFrame) {
      answer.messages.emplace_back(frame.message);
      answer.frames.push_back(frame);
      rest = rest.subspan(consumed);
    }
    EXPECT_TRUE(rest.empty()) << "the answer ends within a frame";
    for (std::size_t i = 0; i < answer.frames.size(); ++i) {
      answer.frames[i].message = answer.messages[i];
    }
    return answer;
  }
  static std::string Preamble() {
    std::string bytes;
    wire::AppendPreamble(bytes);
    return bytes;
  }
  static std::string Opened(std::string_view name, WireType type = WireType::kDefault) {
    std::string bytes = Preamble();
    wire::AppendOpen(bytes, 1, type, name);
    return bytes;
  }
  static std::span<const std::byte> Bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }

  // One fatal ERROR that says `part`, and the end; counted under `reason`.
  static void ExpectFatal(const std::string& bytes, const std::string& part,
                          const std::string& reason) {
    const double before = Refused("tcp", reason);
    const Answer answer = Send(bytes);
    EXPECT_TRUE(answer.ended) << part;
    ASSERT_FALSE(answer.frames.empty()) << part;
    const wire::ServerFrame& last = answer.frames.back();
    EXPECT_EQ(last.type, wire::FrameType::kError);
    EXPECT_EQ(last.flags & wire::kErrorFatal, wire::kErrorFatal);
    EXPECT_EQ(last.code, static_cast<int>(Code::kInvalidArgument));
    EXPECT_NE(last.message.find(part), std::string::npos) << last.message;
    EXPECT_EQ(Refused("tcp", reason), before + 1) << part;
  }
  // The last frame but one is an ERROR of `code` that says `part`; a good batch after it is taken
  // in.
  static void ExpectGoesOn(std::string bytes, Code code, const std::string& part,
                           const std::string& reason) {
    const double before = Refused("tcp", reason);
    wire::AppendOpen(bytes, 9, WireType::kFloat64, "good");
    const double value = 1;
    wire::AppendBatch(bytes, 9, 99, WireType::kFloat64, std::as_bytes(std::span(&value, 1)));
    const Answer answer = Send(bytes);
    EXPECT_TRUE(answer.ended);
    ASSERT_GE(answer.frames.size(), 3u) << part;
    const wire::ServerFrame& error = answer.frames[answer.frames.size() - 3];
    EXPECT_EQ(error.type, wire::FrameType::kError);
    EXPECT_EQ(error.flags & wire::kErrorFatal, 0u);
    EXPECT_EQ(error.code, static_cast<int>(code)) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    const wire::ServerFrame& ack = answer.frames.back();
    EXPECT_EQ(ack.type, wire::FrameType::kAck);
    EXPECT_EQ(ack.batch_id, 99u);
    EXPECT_EQ(ack.accepted, 1u);
    EXPECT_GT(Refused("tcp", reason), before) << part << ": values are counted, at least one";
  }

  static std::unique_ptr<TestDaemon> daemon_;
  static std::unique_ptr<client::TcpProducer> producer_;
  static client::TcpStream stream_;
};
std::unique_ptr<TestDaemon> WrongInputTest::daemon_;
std::unique_ptr<client::TcpProducer> WrongInputTest::producer_;
client::TcpStream WrongInputTest::stream_;

TEST_F(WrongInputTest, BrokenFramingEndsTheConnection) {
  ExpectFatal("GET / HTTP/1.1\r\n\r\n", "byte 0", "bad_frame");
  ExpectFatal(std::string("TDMK\x02\x00\x00\x00", 8), "version", "bad_frame");
  ExpectFatal(std::string("TDMK\x01\x00\x00\x07", 8), "6", "bad_frame");
  ExpectFatal(Preamble() + std::string("\xff\xff\xff\x7f\x02\x00\x00\x00", 8), "byte 8",
              "frame_too_large");
  ExpectFatal(Preamble() + std::string("\x01\x00\x00\x00\x02\x00\x00\x00", 8), "byte 8",
              "bad_frame");
  ExpectFatal(Preamble() + std::string("\x0c\x00\x00\x00\x55\x00\x00\x00", 8) + std::string(8, 'x'),
              "byte 12", "bad_frame");
  // PRODUCER, of half its length.
  ExpectFatal(Preamble() + std::string("\x0c\x00\x00\x00\x03\x00\x00\x00", 8) + std::string(8, 'x'),
              "PRODUCER at byte 8 is too short", "bad_frame");
}

TEST_F(WrongInputTest, TruncatedFramesLeaveNothingBehind) {
  const std::uint64_t n = daemon_->client().DescribeStream("f64").count;
  std::string whole = Opened("f64");
  const std::size_t opened = whole.size();
  const double values[] = {1, 2, 3, 4};
  wire::AppendBatch(whole, 1, 7, WireType::kFloat64, std::as_bytes(std::span(values)));
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    const Answer answer = Send(whole.substr(0, cut));
    EXPECT_EQ(answer.frames.size() >= 1 && answer.frames[0].type == wire::FrameType::kOpened,
              cut >= opened)
        << cut;
  }
  EXPECT_EQ(daemon_->client().DescribeStream("f64").count, n) << "half a batch was taken in";
  EXPECT_TRUE(WaitUntil([&] {  // the producer's own remains
    return daemon_->Metric(R"(tidemark_ingest_connections{source="tcp"})") == 1;
  }));
}

TEST_F(WrongInputTest, RefusedBatchesAndStreams) {
  ExpectGoesOn(Opened(""), Code::kInvalidArgument, "empty", "bad_name");
  ExpectGoesOn(Opened("bad\xff"), Code::kInvalidArgument, "UTF-8", "bad_name");
  ExpectGoesOn(Opened("new\nline"), Code::kInvalidArgument, "control character", "bad_name");
  ExpectGoesOn(Opened(std::string(600, 'n')), Code::kInvalidArgument, "600 bytes", "bad_name");
  ExpectGoesOn(Opened("f64", WireType::kInt64), Code::kFailedPrecondition, "float64",
               "type_mismatch");
  ExpectGoesOn(Opened("x", static_cast<WireType>(77)), Code::kInvalidArgument, "77",
               "type_mismatch");
  const auto lost = [] { return daemon_->client().DescribeStream("f64").losses.refused_whole; };
  const std::uint64_t lost_before = lost();
  const std::string eight(8, '\0');
  std::string bytes = Opened("f64");
  wire::AppendBatch(bytes, 1, 1, WireType::kFloat32, Bytes(eight));
  ExpectGoesOn(bytes, Code::kFailedPrecondition, "float32", "type_mismatch");
  bytes = Opened("f64");
  wire::AppendBatch(bytes, 1, 1, WireType::kFloat64, Bytes("12345"));
  ExpectGoesOn(bytes, Code::kInvalidArgument, "5", "bad_value");
  EXPECT_EQ(lost() - lost_before, 2U);
  bytes = Opened("f64");
  wire::AppendBatch(bytes, 5, 1, WireType::kFloat64, Bytes(eight));
  ExpectGoesOn(bytes, Code::kNotFound, "5", "unknown_stream");
  std::string items;
  wire::AppendString(items, "fine");
  wire::AppendString(items, "\xc0\xaf");
  bytes = Opened("text");
  wire::AppendBatch(bytes, 1, 1, WireType::kString, Bytes(items));
  ExpectGoesOn(bytes, Code::kInvalidArgument, "UTF-8", "bad_utf8");
  items.clear();
  wire::AppendString(items, std::string(2000, 'i'));
  bytes = Opened("text");
  wire::AppendBatch(bytes, 1, 1, WireType::kString, Bytes(items));
  ExpectGoesOn(bytes, Code::kInvalidArgument, "2000 bytes", "item_too_large");
  EXPECT_EQ(daemon_->client().DescribeStream("text").count, 0u) << "a refused batch left an item";
}

TEST_F(WrongInputTest, NoiseIsSurvived) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string noise(random() % 4000, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    const Answer answer = Send(seed % 3 == 0 ? noise : Opened("f64") + noise);
    EXPECT_TRUE(answer.ended);
  }
}

// Over gRPC. The client library would refuse some of it itself; these go around it.
class WrongCallTest : public WrongInputTest {
 protected:
  WrongCallTest()
      : channel_(grpc::CreateChannel(daemon_->address("grpc"), grpc::InsecureChannelCredentials())),
        ingest_(v1::IngestService::NewStub(channel_)),
        streams_(v1::StreamService::NewStub(channel_)),
        query_(v1::QueryService::NewStub(channel_)) {}

  static v1::Batch Doubles(const std::string& stream, int count) {
    v1::Batch batch;
    batch.set_stream(stream);
    for (int i = 0; i < count; ++i) batch.mutable_float64()->add_values(i);
    return batch;
  }
  grpc::Status PushOne(const v1::Batch& batch) {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto call = ingest_->Push(&context, &response);
    v1::PushRequest request;
    *request.mutable_batch() = batch;
    call->Write(request);
    call->WritesDone();
    return call->Finish();
  }
  void ExpectRefused(const v1::Batch& batch, grpc::StatusCode code, const std::string& part,
                     const std::string& reason) {
    const double before = Refused("grpc", reason);
    const grpc::Status status = PushOne(batch);
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_NE(status.error_message().find(part), std::string::npos) << status.error_message();
    EXPECT_GT(Refused("grpc", reason), before) << part;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::IngestService::Stub> ingest_;
  std::unique_ptr<v1::StreamService::Stub> streams_;
  std::unique_ptr<v1::QueryService::Stub> query_;
};

TEST_F(WrongCallTest, RefusedBatches) {
  ExpectRefused(Doubles("", 1), grpc::INVALID_ARGUMENT, "name", "bad_name");
  ExpectRefused(Doubles("text", 1), grpc::FAILED_PRECONDITION, "string", "type_mismatch");
  ExpectRefused(Doubles("new\nline", 1), grpc::INVALID_ARGUMENT, "control", "bad_name");
  ExpectRefused(Doubles(std::string(600, 'n'), 1), grpc::INVALID_ARGUMENT, "600", "bad_name");
  const auto lost = [] { return daemon_->client().DescribeStream("f64").losses.refused_whole; };
  const std::uint64_t lost_before = lost();
  v1::Batch empty;
  empty.set_stream("f64");
  ExpectRefused(empty, grpc::INVALID_ARGUMENT, "values", "bad_value");
  v1::Batch packed;
  packed.set_stream("f64");
  packed.set_packed("12345");
  ExpectRefused(packed, grpc::INVALID_ARGUMENT, "5", "bad_value");
  EXPECT_EQ(lost() - lost_before, 2U);
  v1::Batch contradiction = Doubles("f64", 1);
  contradiction.set_type(v1::VALUE_TYPE_INT64);
  ExpectRefused(contradiction, grpc::INVALID_ARGUMENT, "int64", "type_mismatch");
  v1::Batch unknown = Doubles("f64", 1);
  unknown.set_type(static_cast<v1::ValueType>(99));
  ExpectRefused(unknown, grpc::INVALID_ARGUMENT, "99", "type_mismatch");
  v1::Batch items;
  items.set_stream("text");
  items.mutable_string()->add_values("fine");
  items.mutable_string()->add_values(std::string(2000, 'i'));
  ExpectRefused(items, grpc::INVALID_ARGUMENT, "2000 bytes", "item_too_large");
  items.mutable_string()->set_values(1, "\xc0\xaf");
  ExpectRefused(items, grpc::INVALID_ARGUMENT, "\"\\xc0\\xaf\" is not UTF-8", "bad_utf8");
  EXPECT_EQ(daemon_->client().DescribeStream("text").count, 0u) << "a refused batch left an item";
}

TEST_F(WrongCallTest, ARefusedBatchDoesNotEndAnAcknowledgedPush) {
  grpc::ClientContext context;
  const auto call = ingest_->PushAcknowledged(&context);
  v1::PushAcknowledgedRequest request;
  request.set_batch_id(1);
  *request.mutable_batch() = Doubles("text", 1);
  ASSERT_TRUE(call->Write(request));
  ASSERT_TRUE(call->Write(request));  // long answers one after the other
  request.set_batch_id(2);
  *request.mutable_batch() = Doubles("acknowledged", 5);
  ASSERT_TRUE(call->Write(request));
  call->WritesDone();
  v1::PushAcknowledgedResponse response;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(call->Read(&response));
    EXPECT_EQ(response.batch_id(), 1u);
    EXPECT_EQ(response.code(), grpc::FAILED_PRECONDITION) << response.message();
    EXPECT_EQ(response.accepted(), 0u);
  }
  ASSERT_TRUE(call->Read(&response));
  EXPECT_EQ(response.batch_id(), 2u);
  EXPECT_EQ(response.code(), grpc::OK) << response.message();
  EXPECT_EQ(response.accepted(), 5u);
  EXPECT_FALSE(call->Read(&response));
  EXPECT_TRUE(call->Finish().ok());
}

TEST_F(WrongCallTest, TooLargeABatch) {
  // The default limit of 4 MiB, one value more, and far more: each refusal is counted.
  constexpr int kMost = (4 << 20) / 8;
  ExpectRefused(Doubles("f64", kMost + 1), grpc::RESOURCE_EXHAUSTED,
                "a batch of 4194312 bytes is too large; expected at most 4194304",
                "frame_too_large");
  ExpectRefused(Doubles("f64", 5'000'000 / 8), grpc::RESOURCE_EXHAUSTED, "at most 4194304 bytes",
                "frame_too_large");
  ExpectRefused(Doubles("f64", 2 * kMost), grpc::RESOURCE_EXHAUSTED, "at most 4194304 bytes",
                "frame_too_large");
  EXPECT_EQ(daemon_->client().DescribeStream("f64").count, 0u);
  EXPECT_TRUE(PushOne(Doubles("at_most", kMost)).ok());

  // Framed TCP has the same limit.
  const std::string most(8 * kMost, '\0');
  std::string bytes = Opened("at_most");
  wire::AppendBatch(bytes, 1, 7, WireType::kFloat64, Bytes(most));
  const Answer answer = Send(bytes);
  ASSERT_EQ(answer.frames.size(), 2u);
  EXPECT_EQ(answer.frames[1].accepted, static_cast<std::uint64_t>(kMost));
  bytes = Opened("at_most");
  wire::AppendBatch(bytes, 1, 8, WireType::kFloat64, Bytes(most + std::string(8, '\0')));
  ExpectFatal(bytes, "expected at most 4194324", "frame_too_large");
  EXPECT_EQ(daemon_->client().DescribeStream("at_most").count, 2u * kMost);
}

TEST_F(WrongCallTest, BadUtf8InAName) {
  const auto create_errors = [] {
    return daemon_->Metric(
        R"(tidemark_query_errors_total{method="create_stream",code="INVALID_ARGUMENT"})");
  };
  const double errors_before = create_errors();
  grpc::ClientContext context;
  v1::CreateStreamRequest request;
  request.set_name("bad\xff");
  v1::CreateStreamResponse response;
  const grpc::Status status = streams_->CreateStream(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "name \"bad\\xff\" is not UTF-8: bad byte at offset 3");
  EXPECT_EQ(create_errors(), errors_before + 1);
  // The command says it without asking, in one line.
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"quantile", "bad\xff", "0.5"},
        std::vector<std::string>{"create", "bad\xff"},
        std::vector<std::string>{"watch", "bad\xff", "--quantile", "0.5"},
        std::vector<std::string>{"push", "bad\xff"}}) {
    const Completed done = RunTidemark(*daemon_, arguments, "1\n");
    EXPECT_EQ(done.status, 1) << arguments[0];
    EXPECT_EQ(done.err, "tidemark: stream name \"bad\\xff\" is not UTF-8 (INVALID_ARGUMENT)\n");
  }
  // Not the end of the call, as which gRPC itself would take it: that would be an OK for nothing.
  ExpectRefused(Doubles("bad\xff", 1), grpc::INVALID_ARGUMENT, "UTF-8", "bad_name");
  grpc::ClientContext acknowledged_context;
  const auto call = ingest_->PushAcknowledged(&acknowledged_context);
  v1::PushAcknowledgedRequest batch;
  *batch.mutable_batch() = Doubles("acknowledged", 1);
  EXPECT_TRUE(call->Write(batch));
  *batch.mutable_batch() = Doubles("bad\xff", 1);
  EXPECT_TRUE(call->Write(batch));
  v1::PushAcknowledgedResponse acknowledgement;
  EXPECT_TRUE(call->Read(&acknowledgement));
  EXPECT_EQ(acknowledgement.accepted(), 1u);
  EXPECT_FALSE(call->Read(&acknowledgement));
  EXPECT_EQ(call->Finish().error_code(), grpc::INVALID_ARGUMENT);
  for (const client::StreamInfo& stream : daemon_->client().ListStreams()) {
    EXPECT_TRUE(client::IsUtf8(stream.name));
  }
  // Nothing but the log's own lines: this throws for any other.
  EXPECT_FALSE(daemon_->Log().empty());
}

TEST_F(WrongCallTest, WrongQueries) {
  client::Client& client = daemon_->client();
  EXPECT_EQ(CodeOf([&] { client.Quantiles("nowhere", {0.5}); }), Code::kNotFound);
  EXPECT_EQ(CodeOf([&] { client.Quantiles("f64", {-0.1}); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.Quantiles("f64", {std::nan("")}); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.Quantiles("f64", std::vector<double>(10'001, 0.5)); }),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.HeavyHitters("f64", 0); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.Ranks("f64", {client::Value{std::string("x")}}); }),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.EquiDepthHistogram("f64", 0); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] {
              client.Histogram("f64", {client::Value{2.0}, client::Value{1.0}});
            }),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.Quantiles("f64", {0.5}, {.last_values = 5}); }),
            Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf([&] { client.CreateStream(""); }), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.CreateStream("e", {.quantile_epsilon = 0.7}); }),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { client.DeleteStream("nowhere"); }), Code::kNotFound);
  EXPECT_GE(daemon_->Metric(R"(tidemark_query_errors_total{method="quantiles"})"), 4);
}

}  // namespace
}  // namespace tidemark::test
