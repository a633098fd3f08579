// Windows of string streams end with the text that they hold, not only with the number of items:
// every item of an open window is kept as text.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/window/stream.h"

namespace tidemark::server {
namespace {

// The numbers of items of the windows that `items` fill, the open one at the end.
std::vector<std::size_t> WindowSizes(StreamContext& context, const std::vector<std::string>& items,
                                     std::size_t batch) {
  const auto stream = MakeStream("s", {.type = ValueType::kString}, context);
  std::vector<Window> full;
  for (std::size_t i = 0; i < items.size(); i += batch) {
    const std::vector<std::string_view> views(
        items.begin() + static_cast<std::ptrdiff_t>(i),
        items.begin() + static_cast<std::ptrdiff_t>(std::min(i + batch, items.size())));
    EXPECT_TRUE(stream->AppendStrings(views, {}, 0, full).status.ok());
  }
  std::vector<std::size_t> sizes;
  sizes.reserve(full.size() + 1);
  for (const Window& window : full) sizes.push_back(window.size());
  sizes.push_back(stream->Stats().window_fill);
  return sizes;
}

std::vector<std::string> Items(std::size_t count, std::size_t bytes) {
  std::vector<std::string> items(count, std::string(bytes, 'x'));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    items[i].replace(0, std::min(bytes, number.size()), number, 0, bytes);
  }
  return items;
}

TEST(StringWindow, EndsAtFourMebibytesOfText) {
  StreamContext context;
  // Filled in no time: each window is four times as large as the one before, until the text of
  // 4,096 items of 1 KiB ends it.
  EXPECT_EQ(WindowSizes(context, Items(20'000, 1024), 1000),
            (std::vector<std::size_t>{256, 1024, 4096, 4096, 4096, 4096, 2336}));
  // Short items: the number of items ends it.
  EXPECT_EQ(WindowSizes(context, Items(100'000, 8), 1000),
            (std::vector<std::size_t>{256, 1024, 4096, 16384, 65536, 12704}));
}

TEST(StringWindow, CountsTheTextOfEachWindowAnew) {
  StreamContext context;
  context.window_limits = {.min = 4, .max = 4};
  context.string_window_bytes_max = 100;
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(WindowSizes(context, Items(12, 20), 5), (Sizes{4, 4, 4, 0})) << "ended by their number";
  EXPECT_EQ(WindowSizes(context, Items(9, 50), 9), (Sizes{2, 2, 2, 2, 1})) << "ended by their text";
  EXPECT_EQ(WindowSizes(context, Items(3, 300), 1), (Sizes{1, 1, 1, 0})) << "one is too much";
  EXPECT_EQ(WindowSizes(context, Items(5, 0), 5), (Sizes{4, 1})) << "nothing is no text";
}

}  // namespace
}  // namespace tidemark::server
