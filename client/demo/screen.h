// What the demo shows, as text: the whole screen, or one line a stream.
#ifndef TIDEMARK_CLIENT_DEMO_SCREEN_H_
#define TIDEMARK_CLIENT_DEMO_SCREEN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "client/answers.h"
#include "client/demo/feeds.h"
#include "client/tool/terminal.h"

namespace tidemark::demo {

inline constexpr std::array<double, 5> kShownPhi = {0.5, 0.9, 0.99, 0.999, 1};
/// Share of the stream that an item must reach to be shown, and how many are.
inline constexpr double kShownSupport = 0.01;
inline constexpr std::uint32_t kShownItems = 5;

struct FeedView {
  std::uint64_t n = 0;
  double values_per_second = 0;
  std::optional<client::QuantilesAnswer> quantiles;
  std::optional<client::HeavyHittersAnswer> top;
};

struct View {
  double seconds = 0;
  client::ServerInfo info;
  std::string server;  ///< gRPC, HOST:PORT
  std::string http;    ///< HOST:PORT; empty if unknown
  std::string prefix;
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
  double values_per_second = 0;
  std::array<FeedView, kFeeds> feeds;
};

/// Where everything is and which sorter works: the head of the screen, without the moving part.
std::string ShowPlaces(const View& view);
/// The two tables: quantiles with [rank_low, rank_high], items with [count_low, count_high].
std::string ShowAnswers(const View& view);
/// One line for each stream, for output that is no terminal.
std::string ShowLines(const View& view);
/// The whole screen, drawn over the one before from its top; no line wraps.
std::string DrawScreen(const View& view, const tool::Terminal& terminal);

}  // namespace tidemark::demo

#endif  // TIDEMARK_CLIENT_DEMO_SCREEN_H_
