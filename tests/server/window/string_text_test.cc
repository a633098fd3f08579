// What string streams hold together: the bound, what a refused batch leaves behind, and how text is
// given back. (Ids and texts: dictionary_test.cc. Over the wire: tests/e2e.)
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/window/refusal.h"
#include "server/window/stream.h"

namespace tidemark::server {
namespace {

constexpr std::size_t kLimit = 64 << 10;
constexpr std::size_t kWindow = 256;

std::string Numbered(const std::string& prefix, std::size_t number) {
  std::string item = prefix;
  item += '-';
  item += std::to_string(number);
  return item;
}

class StringTextTest : public testing::Test {
 protected:
  struct Fed {
    AppendResult result;
    std::vector<Window> full;
  };
  static Fed Feed(const StreamHandle& stream, const std::vector<std::string>& items,
                  RecordedTime time = 0) {
    const std::vector<std::string_view> views(items.begin(), items.end());
    Fed fed;
    fed.result = stream->AppendStrings(views, {}, time, fed.full);
    return fed;
  }
  StreamHandle Make(const std::string& name) {
    return MakeStream(name, {.type = ValueType::kString}, context_);
  }
  // Items of one batch, none of them known before.
  static std::vector<std::string> Fresh(const std::string& prefix, std::size_t count,
                                        std::size_t bytes = 100) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < count; ++i) {
      items.push_back(Numbered(prefix, i) + std::string(bytes, 'x'));
    }
    return items;
  }
  static void ExpectTextLimit(const AppendResult& result) {
    EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted) << result.status;
    EXPECT_EQ(ReasonOf(result.status, Attempt::kBatch), "text_limit");
    EXPECT_NE(result.status.message().find("limits.max_text_bytes"), std::string::npos);
    EXPECT_EQ(result.accepted, 0u);
  }

  StreamContext context_{
      .window_limits = {.min = kWindow, .max = kWindow}, .text = TextBudget(kLimit), .pools = {}};
};

TEST_F(StringTextTest, TheBudgetTakesWhatFitsAndNoMore) {
  TextBudget budget(100);
  EXPECT_TRUE(budget.TryTake(60));
  EXPECT_FALSE(budget.TryTake(41));
  EXPECT_TRUE(budget.TryTake(40));
  EXPECT_EQ(budget.held(), 100u);
  budget.Change(40, 70);
  EXPECT_EQ(budget.held(), 130u) << "what is there counts, fitting or not";
  EXPECT_FALSE(budget.TryTake(1));
  EXPECT_TRUE(budget.TryTake(0));
  budget.Change(70, 0);
  EXPECT_EQ(budget.held(), 60u);
}

TEST_F(StringTextTest, AllStreamsTogetherStayNearTheLimit) {
  std::vector<StreamHandle> streams;
  int refused = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    streams.push_back(Make(Numbered("s", i)));
    const Fed fed = Feed(streams.back(), Fresh("item", 20));
    if (!fed.result.status.ok()) {
      ++refused;
      ExpectTextLimit(fed.result);
      EXPECT_EQ(streams.back()->Stats().count, 0u);
    }
  }
  EXPECT_GT(refused, 50);
  // A table that has grown counts with its free places, which no batch asks for beforehand.
  EXPECT_LE(context_.text.held(), kLimit + 32 * 64);
  EXPECT_GT(context_.text.held(), kLimit / 2);
  std::size_t bytes = 0;
  for (const StreamHandle& stream : streams) bytes += stream->Stats().dictionary_bytes;
  EXPECT_EQ(context_.text.held(), bytes);
  streams.clear();
  EXPECT_EQ(context_.text.held(), 0u) << "a stream that is gone holds nothing";
}

TEST_F(StringTextTest, KnownItemsAreTakenAtTheLimit) {
  const StreamHandle stream = Make("s");
  const std::vector<std::string> known = Fresh("known", 10);
  ASSERT_TRUE(Feed(stream, known).result.status.ok());
  const StreamHandle other = Make("other");
  std::size_t n = 0;
  while (n < 10'000 && Feed(other, {Numbered("fill", n)}).result.status.ok()) ++n;
  ExpectTextLimit(Feed(stream, Fresh("new", 10)).result);
  EXPECT_EQ(Feed(stream, known).result.accepted, 10u);
  // So that a window fills up and its text can go.
  for (int i = 0; i < 24; ++i) ASSERT_TRUE(Feed(stream, known).full.size() <= 1);
  EXPECT_EQ(stream->Stats().count, 260u);
}

TEST_F(StringTextTest, ARefusedBatchLeavesNoTrace) {
  context_.window_limits.min = 16;
  const StreamHandle stream = Make("s");
  StreamContext wide{.window_limits = context_.window_limits, .pools = {}};
  const StreamHandle reference = MakeStream("s", {.type = ValueType::kString}, wide);
  std::vector<Window> windows;
  std::vector<Window> expected;
  int refused = 0;
  RecordedTime time = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    time += 100'000;  // so that windows shrink at times
    // The small ones are known after a while, the large ones never fit.
    const std::vector<std::string> batch =
        i % 3 == 2 ? Fresh(Numbered("large", i), 700) : Fresh("small", 1 + i % 40);
    Fed fed = Feed(stream, batch, time);
    if (!fed.result.status.ok()) {
      ++refused;
      EXPECT_TRUE(fed.full.empty());
      continue;
    }
    for (Window& window : fed.full) windows.push_back(std::move(window));
    for (Window& window : Feed(reference, batch, time).full) expected.push_back(std::move(window));
  }
  EXPECT_EQ(refused, 66);
  ASSERT_GT(windows.size(), 3u);
  ASSERT_EQ(windows.size(), expected.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto keys = std::get<KeyBuffer<std::uint64_t>>(windows[i].keys).keys();
    const auto same = std::get<KeyBuffer<std::uint64_t>>(expected[i].keys).keys();
    EXPECT_TRUE(std::equal(keys.begin(), keys.end(), same.begin(), same.end())) << i;
  }
  windows.clear();
  expected.clear();
}

TEST_F(StringTextTest, TextOfSummarizedWindowsIsGivenBackWhenItIsNeeded) {
  // So coarse that a summary keeps next to nothing of items that came once.
  const StreamHandle stream =
      MakeStream("s", {.type = ValueType::kString, .frequency_epsilon = 0.01}, context_);
  for (std::size_t round = 0; round < 20; ++round) {
    Fed fed = Feed(stream, Fresh(Numbered("round", round), kWindow, 20));
    ASSERT_TRUE(fed.result.status.ok()) << "round " << round << ": " << fed.result.status;
    ASSERT_EQ(fed.full.size(), 1u);
    auto& keys = std::get<KeyBuffer<std::uint64_t>>(fed.full[0].keys);
    std::sort(keys.keys().begin(), keys.keys().end());
    stream->Commit(std::move(fed.full[0]), [](std::uint64_t) {});
  }
  EXPECT_GT(context_.text.held(), 20'000u);
  stream->TrimStorage();
  EXPECT_GT(context_.text.held(), 20'000u) << "a batch has just come";
  stream->TrimStorage();
  EXPECT_LT(context_.text.held(), 10'000u) << "idle: nothing holds those items any more";
}

TEST_F(StringTextTest, TextCountsWhileItWaits) {
  const StreamHandle stream = Make("s");
  const std::vector<std::string> item = {std::string(200, 'i')};
  std::vector<std::string> same;
  for (std::size_t i = 0; i < kWindow; ++i) same.push_back(item[0]);
  Fed fed = Feed(stream, same);
  ASSERT_EQ(fed.full.size(), 1u);
  EXPECT_EQ(fed.full[0].size(), kWindow);
  EXPECT_GT(fed.full[0].weight(), kWindow + 200 / 8) << "one new text";
  EXPECT_LT(fed.full[0].weight(), kWindow + 300 / 8);
  std::uint64_t left = 0;
  const std::uint64_t weight = fed.full[0].weight();
  stream->Commit(std::move(fed.full[0]), [&](std::uint64_t weighed) { left = weighed; });
  EXPECT_EQ(left, weight) << "what leaves the gate is what entered it";
  fed = Feed(stream, same);
  ASSERT_EQ(fed.full.size(), 1u);
  EXPECT_EQ(fed.full[0].weight(), kWindow) << "nothing new";
}

}  // namespace
}  // namespace tidemark::server
