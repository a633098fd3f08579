#include "client/demo/screen.h"

#include <utility>
#include <vector>

#include "client/tool/text.h"

namespace tidemark::demo {
namespace {

using tool::ShowNumber;
using tool::ShowRate;
using tool::ShowValue;
using tool::Table;

constexpr std::array<FeedId, 3> kQuantileFeeds = {kClockGaps, kWakeDelays, kLoopback};
constexpr std::array<FeedId, 3> kTopFeeds = {kClockGaps, kThreads, kPeers};
// Longer items would push the other columns off the screen.
constexpr std::size_t kItemWidth = 20;

std::string Interval(std::uint64_t low, std::uint64_t high) {
  std::string out = " [";
  out += std::to_string(low);
  out += ", ";
  out += std::to_string(high);
  out += ']';
  return out;
}

// The first `width` columns of a text of code points of one column each.
std::string Cut(const std::string& text, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0u) == 0x80u) continue;
    if (columns++ == width) return text.substr(0, i);
  }
  return text;
}

std::vector<std::string> Row(std::string heading, const std::array<std::string, 3>& cells) {
  return {std::move(heading), cells[0], cells[1], cells[2]};
}

template <typename Function>
std::array<std::string, 3> Cells(const std::array<FeedId, 3>& feeds, Function cell) {
  return {cell(feeds[0]), cell(feeds[1]), cell(feeds[2])};
}

std::string Clock(double seconds) {
  std::string out = std::to_string(static_cast<std::int64_t>(seconds));
  return out + " s";
}

}  // namespace

std::string ShowPlaces(const View& view) {
  // The reason may already begin with the sorter's name.
  const client::SorterInfo& sorter = view.info.sorter;
  const bool named = sorter.reason.starts_with(sorter.active + ":");
  Table table({"sorter", named ? sorter.reason : sorter.active + ": " + sorter.reason},
              {false, false});
  table.Add({"grpc", view.server});
  const std::string http = "http://" + view.http;
  table.Add({"metrics", view.http.empty() ? "unknown: give --http HOST:PORT" : http + "/metrics"});
  table.Add({"health", view.http.empty() ? "unknown: give --http HOST:PORT"
                                         : http + "/-/healthy, " + http + "/-/ready"});
  table.Add({"streams", view.prefix + "*"});
  return table.ToString();
}

std::string ShowAnswers(const View& view) {
  const auto title = [](FeedId id) { return std::string(kFeedInfo[id].title); };
  const auto n = [&](FeedId id) { return std::to_string(view.feeds[id].n); };
  const auto rate = [&](FeedId id) { return ShowRate(view.feeds[id].values_per_second); };
  const auto name = [](FeedId id) { return std::string(kFeedInfo[id].name); };

  Table quantiles(Row("", Cells(kQuantileFeeds, title)), {false, true, true, true});
  quantiles.Add(Row("stream", Cells(kQuantileFeeds, name)));
  quantiles.Add(Row("n", Cells(kQuantileFeeds, n)));
  quantiles.Add(Row("values/s", Cells(kQuantileFeeds, rate)));
  for (std::size_t i = 0; i < kShownPhi.size(); ++i) {
    quantiles.Add(Row("phi " + ShowNumber(kShownPhi[i]), Cells(kQuantileFeeds, [&](FeedId id) {
                        const auto& answer = view.feeds[id].quantiles;
                        if (!answer || i >= answer->answers.size()) return std::string("-");
                        const auto& a = answer->answers[i];
                        return ShowValue(a.value) + Interval(a.rank_low, a.rank_high);
                      })));
  }
  Table top(Row("", Cells(kTopFeeds, title)), {false, true, true, true});
  top.Add(Row("stream", Cells(kTopFeeds, name)));
  top.Add(Row("n", Cells(kTopFeeds, n)));
  top.Add(Row("values/s", Cells(kTopFeeds, rate)));
  for (std::uint32_t i = 0; i < kShownItems; ++i) {
    top.Add(Row("top " + std::to_string(i + 1), Cells(kTopFeeds, [&](FeedId id) {
                  const auto& answer = view.feeds[id].top;
                  if (!answer || i >= answer->items.size()) return std::string("-");
                  const auto& item = answer->items[i];
                  return Cut(ShowValue(item.value), kItemWidth) +
                         Interval(item.count_low, item.count_high);
                })));
  }
  return "value [rank_low, rank_high]\n" + quantiles.ToString() +
         "\nitem [count_low, count_high], at least " + ShowNumber(kShownSupport * 100) +
         " % of the stream\n" + top.ToString();
}

std::string ShowLines(const View& view) {
  std::string out;
  for (std::size_t i = 0; i < kFeeds; ++i) {
    const FeedView& feed = view.feeds[i];
    out += Clock(view.seconds) + "  " + view.prefix + kFeedInfo[i].name + "  n " +
           std::to_string(feed.n) + "  " + ShowRate(feed.values_per_second) + "/s";
    if (feed.quantiles) {
      for (const auto& a : feed.quantiles->answers) {
        out += "  phi " + ShowNumber(a.phi) + ": " + ShowValue(a.value) +
               Interval(a.rank_low, a.rank_high);
      }
    }
    if (feed.top && !feed.top->items.empty()) {
      const auto& item = feed.top->items.front();
      out += "  top: " + ShowValue(item.value) + Interval(item.count_low, item.count_high);
    }
    out += "\n";
  }
  return out;
}

std::string DrawScreen(const View& view, const tool::Terminal& terminal) {
  const std::string head = "Tidemark " + view.info.version + ", " + Clock(view.seconds) + ", " +
                           ShowRate(view.values_per_second) + " values/s, " +
                           std::to_string(view.acknowledged) + " of " + std::to_string(view.sent) +
                           " values acknowledged; Ctrl-C ends\n";
  const std::string text = head + ShowPlaces(view) + "\n" + ShowAnswers(view);
  std::string out = "\x1b[H";
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    out += Cut(text.substr(start, end - start), terminal.width) + "\x1b[K\r\n";
    start = end + 1;
  }
  return out + "\x1b[J";
}

}  // namespace tidemark::demo
