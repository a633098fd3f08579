// Numbered batches of producers: what is new, taken or refused (producers.h), against a model that
// forgets nothing; and of a whole stream, that each batch is counted once whatever happens to it on
// its way. What a log makes of it is tested in tests/server/durability.
#include "server/window/producers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/window/refusal.h"
#include "server/window/stream.h"
#include "tests/summaries/cases.h"

namespace tidemark::server {
namespace {

ProducerBatch Of(std::uint64_t producer, std::uint64_t number) {
  return {{producer, ~producer}, number};
}

class ProducersTest : public testing::Test {
 protected:
  enum class Found { kNew, kTaken, kRefused };
  Found Find(std::uint64_t producer, std::uint64_t number) {
    const auto found = producers_.Find(Of(producer, number));
    if (!found.ok()) {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kFailedPrecondition);
      return Found::kRefused;
    }
    return found->has_value() ? Found::kTaken : Found::kNew;
  }
  void Add(std::uint64_t producer, std::uint64_t number, TakenBatch taken = {}) {
    producers_.Add(Of(producer, number), taken);
  }

  ProducerMemory memory_{3};
  StreamProducers producers_{memory_};
};

TEST_F(ProducersTest, ANumberIsNewOnceAndThenAnsweredAsItWas) {
  EXPECT_EQ(Find(7, 1), Found::kNew);
  EXPECT_EQ(Find(7, 1), Found::kNew) << "it was not taken: refused, say";
  Add(7, 1, {.accepted = 10, .refused = 2, .log_sequence = 5});
  Add(7, 2, {.accepted = 11, .log_sequence = 6});
  const auto first = producers_.Find(Of(7, 1)).value();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->accepted, 10u);
  EXPECT_EQ(first->refused, 2u);
  EXPECT_EQ(first->log_sequence, 6u);
  EXPECT_EQ(producers_.Find(Of(7, 2)).value()->accepted, 11u);
  EXPECT_EQ(Find(8, 1), Found::kNew) << "another producer's";
}

TEST_F(ProducersTest, TheLast64AreToldApartAndOlderOnesRefused) {
  Add(7, 1);
  Add(7, 64);
  EXPECT_EQ(Find(7, 1), Found::kTaken);
  for (std::uint64_t number = 2; number < 64; ++number) EXPECT_EQ(Find(7, number), Found::kNew);
  Add(7, 3);
  EXPECT_EQ(Find(7, 3), Found::kTaken);
  Add(7, 65);
  EXPECT_EQ(Find(7, 1), Found::kRefused);
  EXPECT_EQ(Find(7, 2), Found::kNew);
  EXPECT_EQ(Find(7, 3), Found::kTaken);
  Add(7, 1'000'000);
  EXPECT_EQ(Find(7, 65), Found::kRefused);
  EXPECT_EQ(Find(7, 1'000'000 - 63), Found::kNew);
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  Add(7, kLast);
  EXPECT_EQ(Find(7, kLast), Found::kTaken);
  EXPECT_EQ(Find(7, 1'000'000), Found::kRefused);
}

TEST_F(ProducersTest, AnUnknownProducerBeginsWithOne) {
  EXPECT_EQ(Find(7, 2), Found::kRefused);
  Add(7, 5);  // of a log, after the producer was forgotten in its replay
  EXPECT_EQ(Find(7, 5), Found::kTaken);
  EXPECT_EQ(Find(7, 4), Found::kRefused) << "it may have been taken before";
  EXPECT_EQ(Find(7, 6), Found::kNew);
}

TEST_F(ProducersTest, TheLongestSilentOneOfAllStreamsIsForgotten) {
  StreamProducers other(memory_);
  Add(1, 1);
  Add(2, 1);
  other.Add(Of(1, 1), {});
  EXPECT_EQ(memory_.known(), 3u);
  EXPECT_EQ(Find(1, 1), Found::kTaken);  // so that 2 is the longest silent one
  other.Add(Of(3, 1), {});
  EXPECT_EQ(memory_.known(), 3u);
  EXPECT_EQ(memory_.TakeForgotten(), 1u);
  EXPECT_EQ(memory_.TakeForgotten(), 0u);
  EXPECT_EQ(Find(2, 2), Found::kRefused);
  EXPECT_EQ(Find(1, 1), Found::kTaken);
  EXPECT_TRUE(other.Find(Of(1, 1)).value().has_value());
}

TEST_F(ProducersTest, AStreamTakesItsProducersWithIt) {
  {
    StreamProducers other(memory_);
    other.Add(Of(1, 1), {});
    other.Add(Of(2, 1), {});
    EXPECT_EQ(memory_.known(), 2u);
  }
  EXPECT_EQ(memory_.known(), 0u);
  EXPECT_EQ(memory_.TakeForgotten(), 0u);
}

// A producer's side: at most 64 numbers from the oldest unanswered one to the newest.
struct Sender {
  std::uint64_t id;
  std::uint64_t next = 1;
  std::map<std::uint64_t, std::uint64_t> unanswered;  // values by number
};

// Copies of batches that are on their way, answers that get lost, refusals of the stream for other
// reasons: the count is that of each batch once.
TEST(ProducersPropertyTest, AnyInterleavingCountsEachBatchOnce) {
  for (int round = 0; round < Cases(300, 10'000); ++round) {
    const std::uint32_t seed = 4'000u + static_cast<std::uint32_t>(round);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    StreamContext context;
    const StreamHandle stream = MakeStream("s", {.type = ValueType::kUint32}, context);
    std::vector<Sender> senders(1 + random() % 3);
    std::deque<std::pair<ProducerBatch, std::uint64_t>> wire;  // batches on their way
    std::uint64_t expected = 0;
    std::set<std::pair<std::uint64_t, std::uint64_t>> taken;
    const auto arrive = [&](std::size_t at) {
      const auto [from, values] = wire[at];
      wire.erase(wire.begin() + static_cast<std::ptrdiff_t>(at));
      const std::vector<std::uint32_t> keys(values, 9);
      std::vector<Window> full;
      const AppendResult result =
          stream->AppendPacked(std::as_bytes(std::span(keys)), {0, from}, full);
      Sender& sender = senders[from.producer[0]];
      if (!result.status.ok()) {
        // A copy of what was answered long ago; or, before number 1 was, of another.
        EXPECT_EQ(ReasonOf(result.status, Attempt::kBatch), "unknown_producer") << result.status;
        EXPECT_TRUE(!sender.unanswered.contains(from.number) || sender.unanswered.contains(1));
        return;
      }
      EXPECT_EQ(result.duplicate, !taken.emplace(from.producer[0], from.number).second);
      EXPECT_EQ(result.accepted, values);
      if (random() % 4 != 0) sender.unanswered.erase(from.number);  // else the answer is lost
    };
    for (std::size_t i = 0; i < senders.size(); ++i) senders[i].id = i;
    const auto send = [&](Sender& sender) {
      const bool waits = sender.unanswered.contains(1) && sender.next > 1;
      const bool full = !sender.unanswered.empty() &&
                        sender.next - sender.unanswered.begin()->first >= kNumbersKept;
      if (waits || full || random() % 3 == 0) {
        if (sender.unanswered.empty()) return;
        auto at = sender.unanswered.begin();
        std::advance(at, random() % sender.unanswered.size());
        wire.emplace_back(Of(sender.id, at->first), at->second);
        return;
      }
      const std::uint64_t number = sender.next++;
      const std::uint64_t values = number == 1 ? 0 : random() % 20;
      expected += values;
      sender.unanswered.emplace(number, values);
      if (random() % 5 != 0) wire.emplace_back(Of(sender.id, number), values);  // else lost
    };
    for (int step = 0; step < 400; ++step) {
      if (random() % 2 == 0 || wire.empty()) {
        send(senders[random() % senders.size()]);
      } else {
        arrive(random() % std::min<std::size_t>(wire.size(), 80));
      }
    }
    for (Sender& sender : senders) {
      while (!sender.unanswered.empty()) {
        wire.emplace_front(Of(sender.id, sender.unanswered.begin()->first),
                           sender.unanswered.begin()->second);
        arrive(0);
      }
    }
    while (!wire.empty()) arrive(0);
    const StreamStats stats = stream->Stats();
    EXPECT_EQ(stats.count, expected);
    if (testing::Test::HasFailure()) return;
  }
}

// However small the memory: at most once, and what is not refused is answered rightly.
TEST(ProducersPropertyTest, WhateverIsForgottenNothingIsTakenTwice) {
  for (int round = 0; round < Cases(300, 10'000); ++round) {
    const std::uint32_t seed = 5'000u + static_cast<std::uint32_t>(round);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    ProducerMemory memory(1 + random() % 4);
    std::vector<std::unique_ptr<StreamProducers>> streams;
    for (int i = 0; i < 2; ++i) streams.push_back(std::make_unique<StreamProducers>(memory));
    // By stream, producer and number: what it was worth.
    std::map<std::array<std::uint64_t, 3>, std::uint32_t> taken;
    for (int step = 0; step < 2'000; ++step) {
      const std::uint64_t stream = random() % streams.size();
      const std::uint64_t producer = random() % 5;
      // Number 1 of a forgotten producer begins anew: a careful one's is empty.
      const std::uint64_t number = 1 + random() % (1 + static_cast<std::uint64_t>(step) / 10);
      const auto found = streams[stream]->Find(Of(producer, number));
      const auto was = taken.find({stream, producer, number});
      if (!found.ok()) continue;
      if (found->has_value()) {
        ASSERT_NE(was, taken.end());
        EXPECT_EQ((*found)->accepted, was->second);
        continue;
      }
      if (number > 1) {
        EXPECT_EQ(was, taken.end()) << "number " << number << " taken twice";
      } else {
        // Anew: the model forgets with it.
        std::erase_if(taken, [&](const auto& entry) {
          return entry.first[0] == stream && entry.first[1] == producer;
        });
      }
      const auto worth = static_cast<std::uint32_t>(random() % 100);
      taken[{stream, producer, number}] = worth;
      streams[stream]->Add(Of(producer, number), {.accepted = worth});
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tidemark::server
