// Bytes of records and headers: what goes in comes out, and what contradicts itself is refused.
#include "server/store/log_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/server/store/store_cases.h"
#include "tests/summaries/cases.h"

namespace tidemark::store {
namespace {

TEST(LogFormatTest, EntriesComeBack) {
  for (std::uint64_t number = 0; number < Seeds(2'000); ++number) {
    const auto owned = MakeEntry(number, 200);
    auto record = EncodeEntry(owned->entry, kLogId);
    ASSERT_TRUE(record.ok()) << record.status();
    record->header.sequence = number;
    record->header.durable_sequence = number / 2;
    NumberRecord(*record, kLogId);
    const auto header = DecodeRecordHeader(record->bytes, kLogId);
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->sequence, number);
    EXPECT_EQ(header->durable_sequence, number / 2);
    EXPECT_EQ(header->kind, KindOf(owned->entry));
    EXPECT_EQ(record->bytes.size(), RecordBytes(header->body_bytes));
    const auto body = RecordBody(record->bytes, *header, kLogId);
    ASSERT_TRUE(body.has_value());
    const auto entry = DecodeEntry(header->kind, *body);
    ASSERT_TRUE(entry.ok()) << entry.status();
    EXPECT_EQ(Bytes(*entry), Bytes(owned->entry));
  }
}

// A record that a producer sent as values is none in the log: its seed is another.
TEST(LogFormatTest, ARecordIsOneOfItsLogAlone) {
  auto record = MakeRecord(RecordKind::kMark, 0, {});
  NumberRecord(record, 0);
  EXPECT_TRUE(DecodeRecordHeader(record.bytes, 0).has_value());
  EXPECT_FALSE(DecodeRecordHeader(record.bytes, kLogId).has_value());
}

TEST(LogFormatTest, FieldsOfABatchComeBack) {
  const std::string_view texts[] = {"one", "", "three"};
  std::string values;
  AppendTexts(texts, values);
  Batch batch;
  batch.stream_id = 7;
  batch.recorded_time_us = -5;
  batch.producer = {{1, 2}, 3};
  batch.value_type = 7;
  batch.form = 2;
  batch.count = 3;
  batch.values = values;
  const auto record = EncodeEntry(batch, kLogId);
  ASSERT_TRUE(record.ok());
  const std::string_view body(record->bytes.data() + kRecordHeaderBytes, record->header.body_bytes);
  const auto entry = DecodeEntry(RecordKind::kBatch, body);
  ASSERT_TRUE(entry.ok());
  const auto& read = std::get<Batch>(*entry);
  EXPECT_EQ(read.stream_id, 7u);
  EXPECT_EQ(read.recorded_time_us, -5);
  EXPECT_EQ(read.producer, batch.producer);
  EXPECT_EQ(read.value_type, 7);
  EXPECT_EQ(read.payload_type, 0);
  EXPECT_EQ(read.form, 2);
  EXPECT_EQ(BatchTexts(read), std::vector<std::string_view>(std::begin(texts), std::end(texts)));
}

// So that a segment can begin behind any record.
TEST(LogFormatTest, NumbersOfRecordsHaveABound) {
  const auto accepted = [](std::uint64_t sequence, std::uint64_t durable) {
    UnnumberedRecord record = MakeRecord(RecordKind::kMark, 5, {});
    record.header.sequence = sequence;
    record.header.durable_sequence = durable;
    NumberRecord(record, 5);
    return DecodeRecordHeader(record.bytes, 5).has_value();
  };
  EXPECT_TRUE(accepted(kNumberMax - 1, kNumberMax - 1));
  EXPECT_FALSE(accepted(kNumberMax, 0));
  EXPECT_FALSE(accepted(1, kNumberMax));
}

TEST(LogFormatTest, BatchesThatContradictThemselves) {
  const auto code = [](Batch batch) { return EncodeEntry(batch, 0).status().code(); };
  Batch batch;
  batch.value_bytes = 8;
  batch.count = 2;
  batch.values = "0123456789abcdef";
  EXPECT_TRUE(EncodeEntry(batch, 0).ok());
  batch.count = 3;
  EXPECT_EQ(code(batch), absl::StatusCode::kInvalidArgument);
  batch.count = 2;
  batch.payload_type = 1;
  EXPECT_EQ(code(batch), absl::StatusCode::kInvalidArgument);
  batch.payloads = batch.values;
  EXPECT_EQ(code(batch), absl::StatusCode::kOk);
  batch.value_bytes = 0;
  EXPECT_EQ(code(batch), absl::StatusCode::kInvalidArgument);
  const std::string huge(kBodyBytesMax + 1, 'x');
  EXPECT_EQ(EncodeEntry(StreamCreated{1, huge}, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(LogFormatTest, StatesThatContradictThemselves) {
  const StreamFromState made{.stream_id = 1, .state_bytes = 2, .definition = "d", .state = "abc"};
  EXPECT_EQ(EncodeEntry(made, 0).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(DecodeEntry(RecordKind::kStatePart, "").ok());
}

TEST(LogFormatTest, BodiesOfNoKind) {
  std::mt19937_64 random(20261122);
  for (std::uint64_t i = 0; i < Seeds(20'000); ++i) {
    std::string body(random() % 80, '\0');
    for (char& byte : body) byte = static_cast<char>(random() % 4 == 0 ? random() : 0);
    const auto kind = static_cast<RecordKind>(random() % 20);
    const auto entry = DecodeEntry(kind, body);
    if (entry.ok()) {
      EXPECT_EQ(EncodeEntry(*entry, 0)->bytes.substr(kRecordHeaderBytes, body.size()), body);
    } else {
      EXPECT_EQ(entry.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

TEST(LogFormatTest, Headers) {
  const SegmentHeader segment{4, 2, 3, 100, 5};
  for (const SegmentHeader& wrong :
       {SegmentHeader{0, 2, 0, 0, 5}, SegmentHeader{4, 0, 3, 100, 5},
        SegmentHeader{4, 2, 4, 100, 5}, SegmentHeader{4, 2, 3, 63, 5},
        SegmentHeader{4, 2, 0, 100, 5}, SegmentHeader{4, 2, 3, 100, 0},
        SegmentHeader{kNumberMax + 1, 2, 3, 100, 5}, SegmentHeader{4, UINT64_MAX, 3, 100, 5}}) {
    EXPECT_EQ(DecodeSegmentHeader(EncodeSegmentHeader(wrong)).status().code(),
              absl::StatusCode::kDataLoss);
  }
  const SnapshotHeader greatest{.number = kNumberMax, .log_position = kNumberMax - 1};
  EXPECT_EQ(*DecodeSnapshotHeader(EncodeSnapshotHeader(greatest)), greatest);
  for (const SnapshotHeader& wrong : {SnapshotHeader{.number = kNumberMax + 1, .log_position = 1},
                                      SnapshotHeader{.number = 1, .log_position = kNumberMax}}) {
    EXPECT_EQ(DecodeSnapshotHeader(EncodeSnapshotHeader(wrong)).status().code(),
              absl::StatusCode::kDataLoss);
  }
  std::string bytes = EncodeSegmentHeader(segment);
  ASSERT_EQ(bytes.size(), kFileHeaderBytes);
  EXPECT_EQ(*DecodeSegmentHeader(bytes), segment);
  EXPECT_EQ(DecodeSnapshotHeader(bytes).status().code(), absl::StatusCode::kDataLoss);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    EXPECT_EQ(DecodeSegmentHeader(bytes).status().code(), absl::StatusCode::kDataLoss);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
  }
  const SnapshotHeader snapshot{6, 7};
  EXPECT_EQ(*DecodeSnapshotHeader(EncodeSnapshotHeader(snapshot)), snapshot);
  for (const SnapshotHeader& wrong :
       {SnapshotHeader{UINT64_MAX, 7}, SnapshotHeader{6, UINT64_MAX}}) {
    EXPECT_EQ(DecodeSnapshotHeader(EncodeSnapshotHeader(wrong)).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

// The bytes themselves, so that no change of the code changes the format unseen.
TEST(LogFormatTest, BytesOfARecord) {
  Batch batch;
  batch.stream_id = 1;
  batch.recorded_time_us = 2;
  batch.producer = {{3, 4}, 5};
  batch.value_type = 2;
  batch.value_bytes = 4;
  batch.count = 1;
  batch.values = "abcd";
  auto record = EncodeEntry(batch, kLogId);
  ASSERT_TRUE(record.ok());
  record->header.sequence = 6;
  record->header.durable_sequence = 5;
  NumberRecord(*record, kLogId);
  EXPECT_EQ(record->bytes.size(), 40u + 56);
  EXPECT_EQ(GetU64(record->bytes, 8), 52u | std::uint64_t{3} << 32);
  EXPECT_EQ(GetU64(record->bytes, 0), 14432570848635430800u);
  EXPECT_EQ(GetU64(record->bytes, 32), 5642432668088288142u);
}

TEST(LogFormatTest, Names) {
  EXPECT_EQ(SegmentName(7), "log-00000000000000000007");
  EXPECT_EQ(SegmentNumber(SegmentName(kNumberMax)), kNumberMax);
  EXPECT_FALSE(SegmentNumber(SegmentName(kNumberMax + 1)).has_value());
  EXPECT_FALSE(SegmentNumber(SegmentName(UINT64_MAX)).has_value());
  EXPECT_EQ(SnapshotNumber(SnapshotName(3)), 3u);
  for (const char* name : {"log-7", "log-0000000000000000000x", "log-00000000000000000007.tmp", "",
                           "snapshot-00000000000000000007", "log-99999999999999999999"}) {
    EXPECT_FALSE(SegmentNumber(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace tidemark::store
