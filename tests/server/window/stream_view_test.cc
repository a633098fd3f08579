// Views of a stream while windows are under way: what they cover, and for how long they wait.
// (Views through the whole pipeline: tests/server/pipeline, tests/server/query.)
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "server/window/keyed_stream.h"

namespace tidemark::server {
namespace {

using Key = std::uint32_t;
constexpr std::size_t kWindow = 256;

class StreamViewTest : public testing::Test {
 protected:
  StreamViewTest() {
    context_.window_limits = {.min = kWindow, .max = kWindow};
    stream_ = MakeStream("s", {.type = ValueType::kUint32}, context_);
  }

  KeyedStream<Key>& keyed() { return static_cast<KeyedStream<Key>&>(*stream_); }

  // Three full windows under way and one value in the open window.
  std::vector<Window> Fill() {
    std::vector<Window> full;
    std::vector<Key> values(3 * kWindow + 1);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Key>(i);
    EXPECT_TRUE(stream_->AppendPacked(std::as_bytes(std::span(values)), 0, full).status.ok());
    EXPECT_EQ(full.size(), 3u);
    return full;
  }

  // A view that takes `unseen_max` values as unseen, asked for on a thread of its own; `waits` is
  // fulfilled once it has looked and found too many.
  std::future<absl::StatusOr<StreamView<Key>>> AskFor(std::uint64_t unseen_max,
                                                      std::promise<void>& waits) {
    return std::async(std::launch::async, [this, unseen_max, &waits] {
      ViewRule<Key> rule;
      rule.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      bool told = false;
      rule.tolerates = [&](const SummarySnapshot<Key>&, std::uint64_t open, std::uint64_t unseen) {
        if (open == 0) return unseen <= unseen_max;  // without the open window
        EXPECT_EQ(open, 1u);
        if (unseen > unseen_max && !std::exchange(told, true)) waits.set_value();
        return unseen <= unseen_max;
      };
      return keyed().View(rule);
    });
  }

  StreamContext context_;
  StreamHandle stream_;
};

TEST_F(StreamViewTest, WaitsForNoMoreWindowsThanTheRuleNeeds) {
  std::vector<Window> full = Fill();
  std::promise<void> waits;
  auto view = AskFor(kWindow, waits);
  waits.get_future().wait();
  stream_->Commit(std::move(full[0]), [](std::uint64_t) {});  // two are missing: still one too many
  stream_->Commit(std::move(full[1]), [](std::uint64_t) {});
  const auto got = view.get();  // without the third
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->summaries.count, 2 * kWindow);
  EXPECT_EQ(got->unseen, kWindow);
  ASSERT_EQ(got->open->size(), 1u);
  EXPECT_EQ(got->open->keys()[0], 3 * kWindow);
  stream_->Commit(std::move(full[2]), [](std::uint64_t) {});
}

TEST_F(StreamViewTest, WaitsForAllWindowsWhereNoneMayBeMissing) {
  std::vector<Window> full = Fill();
  std::promise<void> waits;
  auto view = AskFor(0, waits);
  waits.get_future().wait();
  for (const std::size_t i : {2u, 0u, 1u})
    stream_->Commit(std::move(full[i]), [](std::uint64_t) {});
  const auto got = view.get();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->summaries.count, 3 * kWindow);
  EXPECT_EQ(got->unseen, 0u);
  EXPECT_EQ(got->open->size(), 1u);
}

TEST_F(StreamViewTest, SortsNoOpenWindowBesideWindowsUnderWayWhereItNeedNot) {
  std::vector<Window> full = Fill();
  ViewRule<Key> rule;
  rule.deadline = std::chrono::steady_clock::time_point::min();
  std::uint64_t unseen_max = 3 * kWindow + 1;
  rule.tolerates = [&](const SummarySnapshot<Key>&, std::uint64_t, std::uint64_t unseen) {
    return unseen <= unseen_max;
  };
  int sorts = 0;
  rule.sort = [&](std::span<Key>) { ++sorts; };

  const auto without = keyed().View(rule);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->unseen, 3 * kWindow + 1);
  EXPECT_TRUE(without->open->empty());
  EXPECT_EQ(sorts, 0);

  --unseen_max;  // one value too many: the open window's must be seen
  const auto with = keyed().View(rule);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->unseen, 3 * kWindow);
  EXPECT_EQ(with->open->size(), 1u);
  EXPECT_EQ(sorts, 1);

  // Nothing under way: the open window is always seen, whatever the rule tolerates.
  for (Window& window : full) stream_->Commit(std::move(window), [](std::uint64_t) {});
  unseen_max = 1'000'000;
  const auto all = keyed().View(rule);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->unseen, 0u);
  EXPECT_EQ(all->open->size(), 1u);
  EXPECT_EQ(all->summaries.count, 3 * kWindow);
}

TEST(StreamViewAtOnce, SortsFewKeysAndNoMore) {
  StreamContext context;
  context.window_limits = {.min = 2 * kAtOnceKeys, .max = 2 * kAtOnceKeys};
  const StreamHandle stream = MakeStream("s", {.type = ValueType::kUint32}, context);
  const auto& keyed = static_cast<const KeyedStream<Key>&>(*stream);
  std::vector<Window> full;
  std::vector<Key> values(kAtOnceKeys, 7);
  ASSERT_TRUE(stream->AppendPacked(std::as_bytes(std::span(values)), 0, full).status.ok());
  ViewRule<Key> at_once;
  at_once.deadline = kAtOnceDeadline;
  EXPECT_TRUE(keyed.View(at_once).ok());

  values.resize(1);
  ASSERT_TRUE(stream->AppendPacked(std::as_bytes(std::span(values)), 0, full).status.ok());
  const auto refused = keyed.View(at_once);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(refused.status().message(), "stream \"s\": 16385 values were still to be sorted");

  ViewRule<Key> patient;
  patient.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ASSERT_TRUE(keyed.View(patient).ok());
  EXPECT_TRUE(keyed.View(at_once).ok()) << "what was sorted once is at hand";
}

TEST_F(StreamViewTest, SaysHowManyValuesWereMissingAtTheDeadline) {
  const std::vector<Window> full = Fill();
  ViewRule<Key> rule;
  rule.deadline = std::chrono::steady_clock::time_point::min();
  const auto got = keyed().View(rule);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(got.status().message(),
            "stream \"s\": 768 values were still waiting to be sorted when the deadline passed");
}

}  // namespace
}  // namespace tidemark::server
