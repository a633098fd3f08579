// From text to batches: what each type of line appends, grouping by stream, names, gauges, what is
// refused and how it is counted. Against a naive reference in random chunks.
#include "server/ingest/statsd_batcher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/support/fake_sink.h"

namespace tidemark::server {
namespace {

// "n" and 7 are "n7".
std::string Numbered(std::string prefix, std::uint64_t number) {
  prefix += std::to_string(number);
  return prefix;
}

class StatsdBatcherTest : public testing::Test {
 protected:
  std::unique_ptr<StatsdBatcher> Make() {
    return std::make_unique<StatsdBatcher>(sink_, metrics_, Source::kStatsdTcp, gauges_, limits_,
                                           log_);
  }
  // One chunk through a batcher of its own.
  void Chunk(std::string_view text) {
    auto batcher = Make();
    batcher->Add(text, time_);
    batcher->Flush(time_);
  }
  double Refused(std::string_view reason) {
    return metrics_.Refused(Source::kStatsdTcp, reason).Value();
  }
  double Lines(std::string_view kind) {
    return metrics_.StatsdLines(Source::kStatsdTcp, kind).Value();
  }

  FakeSink sink_;
  Metrics metrics_{"test"};
  GaugeTable gauges_{100};
  StatsdLimits limits_;
  std::vector<std::string> messages_;
  LimitedLog log_{[this](IngestLogLevel, std::string_view line) { messages_.emplace_back(line); }};
  RecordedTime time_ = 5'000'000;
};

using Values = std::vector<double>;

TEST_F(StatsdBatcherTest, EveryTypeAppendsWhatItMeans) {
  Chunk(
      "t:320|ms\nt:12.5|h\nt:-1|d\n"
      "rated:100|ms|@0.1\n"
      "c:1|c\nc:5|c|@0.1\nc:-2|c\n"
      "s:alice|s\ns:bob|s\ns:alice|s\n"
      "multi:1:2:3|d\n"
      "telegraf:1|c:200|ms\n");
  EXPECT_EQ(sink_.Numbers("t"), (Values{320, 12.5, -1}));
  EXPECT_EQ(sink_.Numbers("rated"), (Values{100}));
  EXPECT_EQ(sink_.Numbers("c"), (Values{1, 50, -2}));
  EXPECT_EQ(sink_.Items("s"), (std::vector<std::string>{"alice", "bob", "alice"}));
  EXPECT_EQ(sink_.Numbers("multi"), (Values{1, 2, 3}));
  EXPECT_EQ(sink_.Numbers("telegraf"), (Values{1, 200}));
  EXPECT_EQ(Lines("timer"), 2);
  EXPECT_EQ(Lines("histogram"), 1);
  EXPECT_EQ(Lines("distribution"), 2);
  EXPECT_EQ(Lines("counter"), 4);
  EXPECT_EQ(Lines("set"), 3);
  EXPECT_EQ(metrics_.source(Source::kStatsdTcp).values.Value(), 15);
  EXPECT_EQ(metrics_.source(Source::kStatsdTcp).batches.Value(), 6);
}

TEST_F(StatsdBatcherTest, AChunkIsOneAppendForEachStreamInItsOwnOrder) {
  Chunk("a:1|ms\nb:10|ms\na:2|ms\nc:5|ms\nb:20|ms\na:3|ms");
  EXPECT_EQ(sink_.appends(), 3U);
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 2, 3}));
  EXPECT_EQ(sink_.Numbers("b"), (Values{10, 20}));
  EXPECT_EQ(sink_.Numbers("c"), (Values{5}));
}

TEST_F(StatsdBatcherTest, LineEndsMayBeMissingDoubleOrOfWindows) {
  Chunk("\n\na:1|ms\r\n\r\n\na:2|ms\n\na:3|ms");
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 2, 3}));
  EXPECT_EQ(Refused("bad_line"), 0);
}

TEST_F(StatsdBatcherTest, TagsArePartOfTheStreamAndTheirOrderIsNot) {
  Chunk("a:1|ms|#x:1,y:2\na:2|ms|#y:2,x:1\na:3|ms\na:4|ms|#x:1\n");
  EXPECT_EQ(sink_.Numbers("a{x=\"1\",y=\"2\"}"), (Values{1, 2}));
  EXPECT_EQ(sink_.Numbers("a"), (Values{3}));
  EXPECT_EQ(sink_.Numbers("a{x=\"1\"}"), (Values{4}));
}

TEST_F(StatsdBatcherTest, NameAndTagsAreNotConfusedInTheCache) {
  // The same bytes when written one after the other.
  Chunk("ab:1|ms|#c\na:2|ms|#bc\n");
  EXPECT_EQ(sink_.Numbers("ab{c=\"\"}"), (Values{1}));
  EXPECT_EQ(sink_.Numbers("a{bc=\"\"}"), (Values{2}));
}

TEST_F(StatsdBatcherTest, GaugesMoveByWhatIsSigned) {
  auto first = Make();
  first->Add("g:10|g\ng:+5|g\ng:-3|g\ng:0|g\ng:-2.5|g\nnew:+4|g\ng:1:+1:+1|g", time_);
  first->Flush(time_);
  EXPECT_EQ(sink_.Numbers("g"), (Values{10, 15, 12, 0, -2.5, 1, 2, 3}));
  EXPECT_EQ(sink_.Numbers("new"), (Values{4}));
  // Another connection sees the same gauge, however its tags are ordered.
  auto second = Make();
  second->Add("g:+1|g\nt:8|g|#a:1,b:2\nt:+1|g|#b:2,a:1", time_);
  second->Flush(time_);
  EXPECT_EQ(sink_.Numbers("g").back(), 4);
  EXPECT_EQ(sink_.Numbers("t{a=\"1\",b=\"2\"}"), (Values{8, 9}));
  // NaN is refused and does not stick.
  first->Add("g:nan|g\ng:+nan|g\ng:+1|g", time_);
  first->Flush(time_);
  EXPECT_EQ(sink_.Numbers("g").back(), 5);
  EXPECT_EQ(Refused("nan"), 2);
  EXPECT_EQ(Lines("gauge"), 13);
}

TEST_F(StatsdBatcherTest, GaugesBeyondTheLimitAreStillValuesButCannotMove) {
  std::string text;
  for (unsigned i = 0; i < 101; ++i) text += Numbered("g", i) + ":7|g\n";
  text += "g100:+1|g\ng100:9|g\n";
  auto batcher = Make();
  batcher->Add(text, time_);
  batcher->Flush(time_);
  EXPECT_EQ(sink_.Numbers("g100"), (Values{7, 9}));
  EXPECT_EQ(Refused("gauge_limit"), 1);
  EXPECT_EQ(sink_.RefusedOf("g100"), 1U);
  EXPECT_EQ(sink_.RefusedOf("g99"), 0U);
  EXPECT_EQ(gauges_.size(), 100U);
}

TEST_F(StatsdBatcherTest, GaugesThatNobodyHasInItsCacheMakeRoom) {
  GaugeTable table(2);
  auto a = table.Get("a");
  table.Get("b");
  auto c = table.Get("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(table.Get("d"), nullptr);
  EXPECT_EQ(table.Get("a"), a);
}

TEST_F(StatsdBatcherTest, EventsChecksAndFieldsAreCounted) {
  Chunk("_e{5,4}:title|text\n_sc|db|0\na:1|c|c:abc|T1656581400|new:1|c:d\n");
  EXPECT_EQ(Lines("event"), 1);
  EXPECT_EQ(Lines("service_check"), 1);
  const auto ignored = [&](const char* field) {
    return metrics_.StatsdFieldsIgnored(Source::kStatsdTcp, field).Value();
  };
  EXPECT_EQ(ignored("container"), 2);
  EXPECT_EQ(ignored("timestamp"), 1);
  EXPECT_EQ(ignored("other"), 1);
  EXPECT_EQ(ignored("external"), 0);
  EXPECT_EQ(sink_.Names(), (std::vector<std::string>{"a"}));
}

TEST_F(StatsdBatcherTest, BadLinesAreCountedAndOneASecondIsLogged) {
  auto batcher = Make();
  batcher->Add("a:x|ms\nnonsense\x01\na:1|ms\nb:1:2:x|ms\n", time_);
  batcher->Flush(time_);
  EXPECT_EQ(Refused("bad_line"), 3);
  EXPECT_EQ(sink_.Numbers("a"), (Values{1}));
  EXPECT_TRUE(sink_.Numbers("b").empty()) << "a bad line is refused whole";
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0], "statsd_tcp: refused \"a:x|ms\": the value is no number");
  batcher->Add("nonsense\x01\n", time_ + 1'000'000);
  ASSERT_EQ(messages_.size(), 2U);
  EXPECT_EQ(messages_[1],
            "statsd_tcp: refused \"nonsense\\x01\": no ':' after the name; expected "
            "name:value|type (and 2 like it since the last)");
}

TEST_F(StatsdBatcherTest, LongLinesAreRefused) {
  limits_.line_bytes_max = 20;
  Chunk("a:1|ms|#" + std::string(12, 't') + "\na:2|ms|#" + std::string(13, 't') + "\n");
  EXPECT_EQ(Refused("bad_line"), 1);
  EXPECT_EQ(sink_.taken(), 1U);
}

TEST_F(StatsdBatcherTest, NamesThatNoStreamMayHaveAreRefusedWithoutAskingAgain) {
  auto batcher = Make();
  for (int i = 0; i < 100; ++i) batcher->Add("a b:1|ms\nn\xC3(:1|ms\nok:1|ms\n", time_);
  batcher->Flush(time_);
  EXPECT_EQ(Refused("bad_name"), 200);
  EXPECT_EQ(sink_.opens(), 2U) << "one for the bytes that are no UTF-8, one for ok";
  batcher->Add("n\xC3(:1|ms\n", time_ + 2'000'000);
  EXPECT_EQ(sink_.opens(), 3U) << "tried again after a while";
}

TEST_F(StatsdBatcherTest, TheSinksRefusalsAreCountedInLinesAndValues) {
  sink_.set_streams_max(2);
  Chunk("a:1|ms\nwords:x|s\nc:1|ms\nc:2|ms\n");
  EXPECT_EQ(Refused("stream_limit"), 2);
  Chunk("words:1|ms\na:x|s\n");
  EXPECT_EQ(Refused("type_mismatch"), 2) << "numbers for a string stream, and the reverse";
  Chunk("a:nan|ms\na:4|ms\n");
  EXPECT_EQ(Refused("nan"), 1);
  EXPECT_EQ(sink_.Numbers("a"), (Values{1, 4}));
}

// The sink refuses a batch whole; whoever sent the other values of the chunk must not pay for it.
TEST_F(StatsdBatcherTest, AValueThatTheStreamCannotHoldCostsOnlyItself) {
  sink_.set_default_type(ValueType::kInt64);
  Chunk("n:1|ms\nn:2.5|ms\nn:3|ms\nother:7|ms\nn:0.5|ms\nn:-4|ms\n");
  EXPECT_EQ(sink_.Numbers("n"), (Values{1, 3, -4}));
  EXPECT_EQ(sink_.Numbers("other"), (Values{7}));
  EXPECT_EQ(Refused("bad_value"), 2);
  EXPECT_EQ(metrics_.source(Source::kStatsdTcp).values.Value(), 4);
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0], "statsd_tcp: refused \"n\": not a whole number");

  Chunk("words:a|s\nwords:\xFF|s\nwords:b|s\n");
  EXPECT_EQ(sink_.Items("words"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(Refused("bad_value"), 3);

  // Alone it is tried once.
  const std::size_t before = sink_.appends();
  Chunk("n:9.5|ms\n");
  EXPECT_EQ(Refused("bad_value"), 4);
  EXPECT_EQ(sink_.appends(), before);
  EXPECT_EQ(sink_.Numbers("n"), (Values{1, 3, -4}));
}

TEST_F(StatsdBatcherTest, ADeletedStreamIsOpenedAgain) {
  auto batcher = Make();
  batcher->Add("a:1|ms\ns:x|s", time_);
  batcher->Flush(time_);
  sink_.Delete("a");
  sink_.Delete("s");
  batcher->Add("a:2|ms\na:3|ms\ns:y|s", time_);
  batcher->Flush(time_);
  EXPECT_EQ(sink_.Numbers("a"), (Values{2, 3}));
  EXPECT_EQ(sink_.Items("s"), (std::vector<std::string>{"y"}));
  EXPECT_EQ(Refused("unknown_stream"), 0);
}

TEST_F(StatsdBatcherTest, MoreNamesThanTheCacheHoldsLoseNothing) {
  limits_.names_max = 10;
  auto batcher = Make();
  std::string text;
  for (unsigned round = 0; round < 3; ++round) {
    for (unsigned i = 0; i < 25; ++i) {
      text += Numbered(Numbered("n", i) + ":", round) + "|ms\n";
    }
  }
  batcher->Add(text, time_);
  batcher->Flush(time_);
  EXPECT_LE(batcher->names(), 10U);
  EXPECT_EQ(sink_.taken(), 75U);
  for (unsigned i = 0; i < 25; ++i) {
    EXPECT_EQ(sink_.Numbers(Numbered("n", i)), (Values{0, 1, 2})) << i;
  }
}

// Whoever may send nothing at all must not be remembered for it.
TEST_F(StatsdBatcherTest, LongNamesThatAreRefusedTakeNoMemory) {
  auto batcher = Make();
  batcher->Add("known:1|ms\nb d:1|ms\n", time_);
  batcher->Flush(time_);
  for (unsigned i = 0; i < limits_.names_max; ++i) {
    batcher->Add(Numbered(std::string(7'990, 'n'), i) + ":1|ms\n", time_);
    batcher->Flush(time_);
  }
  batcher->Add(std::string(7'990, ' ') + ":1|ms\n", time_);
  batcher->Flush(time_);
  EXPECT_EQ(Refused("bad_name"), static_cast<double>(limits_.names_max + 2));
  EXPECT_EQ(batcher->names(), 2U) << "short ones are, and refused without asking again";
  EXPECT_LT(batcher->memory_bytes(), 16U << 10);
  const std::size_t before = sink_.opens();
  batcher->Add("known:1|ms\nb d:1|ms\n", time_);
  batcher->Flush(time_);
  EXPECT_EQ(sink_.opens(), before);
}

TEST_F(StatsdBatcherTest, TheBytesOfAllNamesAreBounded) {
  auto batcher = Make();
  for (unsigned round = 0; round < 2; ++round) {
    std::string tags;  // one for the stream, however often it is written
    for (unsigned i = 0; i < 70; ++i) tags += "," + std::string(100, 't');
    std::string text;
    for (unsigned i = 0; i < 500; ++i) text += Numbered("n", i) + ":1|ms|#" + tags + "\n";
    batcher->Add(text, time_);
    batcher->Flush(time_);
    EXPECT_GT(batcher->names(), 0U);
    EXPECT_LT(batcher->memory_bytes(), 2U << 20);
  }
  EXPECT_EQ(sink_.taken(), 1'000U) << "what is forgotten is opened again";
}

TEST_F(StatsdBatcherTest, RoomForManyValuesIsGivenBack) {
  auto batcher = Make();
  std::string text;
  for (unsigned i = 0; i < 100'000; ++i) text += "a:1|d\ns:x|s\n";
  batcher->Add(text, time_);
  batcher->Flush(time_);
  EXPECT_EQ(sink_.taken(), 200'000U);
  EXPECT_LT(batcher->memory_bytes(), 16U << 10);
  batcher->Add("a:1|d\ns:x|s\n", time_);
  batcher->Flush(time_);
  EXPECT_GT(batcher->memory_bytes(), 0U);
  batcher->Forget();
  EXPECT_EQ(batcher->memory_bytes(), 0U);
}

// Lines whose meaning is plain, so that the reference is a few lines of code.
TEST_F(StatsdBatcherTest, RandomChunksAgreeWithANaiveReference) {
  const std::uint64_t seed = 190725;
  std::mt19937_64 random(seed);
  auto batcher = Make();
  std::map<std::string, Values> expected;
  for (int chunk = 0; chunk < 300; ++chunk) {
    std::string text;
    const std::size_t lines = random() % 200;
    for (std::size_t i = 0; i < lines; ++i) {
      const std::string name = Numbered("metric.", random() % (chunk % 2 == 0 ? 5 : 5000));
      const bool tagged = random() % 3 == 0;
      const double value = static_cast<double>(random() % 100'000) / 100;
      char number[32];
      std::snprintf(number, sizeof number, "%.2f", value);
      text += name + ":" + number + "|ms" + (tagged ? "|#host:a" : "") + "\n";
      expected[tagged ? name + "{host=\"a\"}" : name].push_back(value);
    }
    batcher->Add(text, time_);
    batcher->Flush(time_);
  }
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(sink_.Numbers(name), values) << name << ", seed " << seed;
  }
  EXPECT_EQ(sink_.Names().size(), expected.size());
}

}  // namespace
}  // namespace tidemark::server
