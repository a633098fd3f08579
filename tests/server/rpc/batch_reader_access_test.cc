// A push that stays open while the rules change under it.
#include <gtest/gtest.h>

#include <string>

#include "server/rpc/batch_reader.h"
#include "tests/support/pipeline_fixture.h"

namespace tidemark::server {
namespace {

std::shared_ptr<const Policy> Ingest(const std::string& patterns) {
  const Policy::Sources none;
  const auto policy =
      Policy::Parse("[principal.anonymous]\ningest = [" + patterns + "]\n", "rules.toml", none);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(nullptr);
}

class BatchReaderAccessTest : public testing::Test {
 protected:
  absl::StatusCode Push(const std::string& stream, double value = 1) {
    v1::Batch batch;
    batch.set_stream(stream);
    batch.mutable_float64()->add_values(value);
    return reader_.Append(batch, 0).status.code();
  }
  absl::StatusCode PushIntegers(const std::string& stream) {
    v1::Batch batch;
    batch.set_stream(stream);
    batch.mutable_int64()->add_values(1);
    return reader_.Append(batch, 0).status.code();
  }

  static constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
  static constexpr absl::StatusCode kDenied = absl::StatusCode::kPermissionDenied;
  TestPipeline behind_;
  Guard guard_{behind_.metrics, [] { return std::int64_t{0}; }};
  BatchReader reader_{
      behind_.pipeline, behind_.metrics, 1 << 20,
      Caller(&guard_, "grpc", {.token = {}, .certificate_names = {}, .loopback = true})};
};

TEST_F(BatchReaderAccessTest, ARoleThatIsTakenAwayEndsWithTheNextBatch) {
  guard_.Set(Ingest("\"*\""));
  EXPECT_EQ(Push("a"), kOk);
  EXPECT_EQ(Push(""), kOk);
  guard_.Set(Ingest("\"b\""));
  EXPECT_EQ(Push(""), kDenied);
  EXPECT_EQ(Push("a"), kDenied);
  EXPECT_EQ(Push("b"), kOk);
  EXPECT_EQ(Push("a"), kDenied);
}

// A batch to another stream is asked about first, and that stream cannot be opened.
TEST_F(BatchReaderAccessTest, ABatchThatFailsElsewhereDoesNotHideTheChange) {
  guard_.Set(Ingest("\"*\""));
  EXPECT_EQ(PushIntegers("b"), kOk);
  EXPECT_EQ(Push("a"), kOk);
  guard_.Set(Ingest("\"b\""));
  EXPECT_EQ(Push("b"), absl::StatusCode::kFailedPrecondition) << "it holds integers";
  EXPECT_EQ(Push("a"), kDenied);
  EXPECT_EQ(Push("a"), kDenied) << "and is asked about again";
  EXPECT_EQ(PushIntegers("b"), kOk);
}

// What follows without a name is meant for the stream that was named last, not for one before it.
TEST_F(BatchReaderAccessTest, AfterAFailureNoNameMeansTheStreamThatFailed) {
  EXPECT_EQ(PushIntegers("b"), kOk);
  EXPECT_EQ(Push("a"), kOk);
  EXPECT_EQ(Push("b"), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Push(""), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(PushIntegers(""), kOk);
}

}  // namespace
}  // namespace tidemark::server
