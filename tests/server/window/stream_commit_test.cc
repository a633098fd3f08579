// What a stream tells of itself while its windows are under way: their bytes, and the time that
// each took to be merged.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/window/keyed_stream.h"

namespace tidemark::server {
namespace {

using Key = std::uint32_t;
constexpr std::size_t kWindow = 256;
constexpr std::size_t kWindowBytes = kWindow * sizeof(Key);

class StreamCommitTest : public testing::Test {
 protected:
  StreamCommitTest() {
    context_.window_limits = {.min = kWindow, .max = kWindow};
    context_.merged = [this](std::chrono::duration<double> took) {
      merged_.push_back(took.count());
    };
    stream_ = MakeStream("s", {.type = ValueType::kUint32}, context_);
  }

  std::vector<Window> Append(std::size_t values) {
    std::vector<Window> full;
    const std::vector<Key> keys(values, 7);
    EXPECT_TRUE(stream_->AppendPacked(std::as_bytes(std::span(keys)), 0, full).status.ok());
    return full;
  }
  void Commit(Window& window) {
    stream_->Commit(std::move(window), [](std::uint64_t) {});
  }
  std::size_t bytes() const { return stream_->Stats().window_bytes; }

  StreamContext context_;
  std::vector<double> merged_;
  StreamHandle stream_;
};

// Not with the window that came back last, which publishes the others.
TEST_F(StreamCommitTest, EachWindowIsTimedWhenItIsMerged) {
  std::vector<Window> full = Append(3 * kWindow);
  ASSERT_EQ(full.size(), 3u);
  Commit(full[2]);
  Commit(full[1]);
  EXPECT_EQ(merged_.size(), 0u) << "they wait for the first";
  Commit(full[0]);
  ASSERT_EQ(merged_.size(), 3u);
  for (const double seconds : merged_) EXPECT_GT(seconds, 0);
}

TEST_F(StreamCommitTest, BytesOfWindowsUnderWayAndOfTheSortedCopyAreItsOwn) {
  std::vector<Window> full = Append(2 * kWindow);
  ASSERT_EQ(full.size(), 2u);
  EXPECT_EQ(bytes(), 2 * kWindowBytes);
  Commit(full[1]);
  EXPECT_EQ(bytes(), 2 * kWindowBytes) << "sorted, and waiting for the first";
  Commit(full[0]);
  EXPECT_EQ(bytes(), 0u);

  Append(kWindow / 2);
  const std::size_t open = bytes();
  EXPECT_GE(open, kWindowBytes / 2);
  const auto view = static_cast<const KeyedStream<Key>&>(*stream_).View(
      {.deadline = std::chrono::steady_clock::now(), .tolerates = nullptr, .sort = nullptr});
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(bytes(), open + kWindowBytes / 2) << "kept for the next view";
}

}  // namespace
}  // namespace tidemark::server
