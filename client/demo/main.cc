// tidemark-demo: real values of this machine into a daemon, and its answers live.
//
// Exit status: 0 when the time is over or on Ctrl-C or SIGTERM, with every value acknowledged and
// found again in the daemon's n; 1 when something failed or a count does not agree; 2 usage.
#include <poll.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "client/client.h"
#include "client/demo/feeds.h"
#include "client/demo/screen.h"
#include "client/tool/interrupt.h"
#include "client/tool/text.h"

namespace tidemark::demo {
namespace {

using Clock = std::chrono::steady_clock;

// One wish to end may come as several signals: `timeout` signals the process and then its group, a
// terminal the group while a script passes its own on. Only a signal that comes later than this
// after the first is a second wish.
constexpr std::chrono::seconds kSameWish{1};

struct DemoOptions {
  std::string server = "127.0.0.1:7070";
  std::string http;
  std::string prefix = "demo.";
  double seconds = 0;  // 0: until Ctrl-C
};

std::array<std::uint64_t, kFeeds> Counts(client::Client* client, const std::string& prefix) {
  std::array<std::uint64_t, kFeeds> counts{};
  for (std::size_t i = 0; i < kFeeds; ++i) {
    try {
      counts[i] = client->DescribeStream(Feeds::StreamName(prefix, static_cast<FeedId>(i))).count;
    } catch (const client::Error& error) {
      if (error.code() != client::Code::kNotFound) throw;
    }
  }
  return counts;
}

class Demo {
 public:
  Demo(const DemoOptions& options, tool::Interrupt* interrupt)
      : options_(options),
        interrupt_(interrupt),
        client_({.server = options.server}),
        terminal_(tool::FindTerminal(STDOUT_FILENO)) {
    view_.server = options.server;
    view_.prefix = options.prefix;
  }

  int Run() {
    view_.info = client_.Info();
    view_.http = options_.http;
    for (const auto& endpoint : view_.info.endpoints) {
      if (view_.http.empty() && endpoint.name == "http") view_.http = endpoint.address;
    }
    const auto before = Counts(&client_, options_.prefix);
    last_n_ = before;
    Feeds feeds(&client_, options_.prefix);
    // The first signal ends the demo; a second one does not wait for acknowledgements.
    Clock::time_point first;
    interrupt_->SetAction([&feeds, &first](int count) {
      if (count == 1) first = Clock::now();
      if (Clock::now() - first > kSameWish) feeds.Cancel();
    });
    struct ClearAction {
      tool::Interrupt* interrupt;
      ~ClearAction() { interrupt->SetAction({}); }
    } clear_action{interrupt_};

    start_ = last_look_ = Clock::now();
    if (terminal_.is_terminal) {
      std::cout << "\x1b[H\x1b[J";
    } else {
      std::cout << "Tidemark " << view_.info.version << "\n" << ShowPlaces(view_);
    }
    std::cout << std::flush;
    while (Wait(feeds)) {
      Look(feeds);
      std::cout << (terminal_.is_terminal ? DrawScreen(view_, terminal_) : ShowLines(view_))
                << std::flush;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    feeds.Stop();
    Look(feeds);
    // The last screen has the averages.
    view_.seconds = seconds;
    view_.values_per_second = 0;
    for (std::size_t i = 0; i < kFeeds; ++i) {
      FeedView& feed = view_.feeds[i];
      feed.values_per_second = static_cast<double>(feed.n - before[i]) / seconds;
      view_.values_per_second += feed.values_per_second;
    }
    return Summarise(feeds, before);
  }

 private:
  // Until the next look; false when the demo is over or a thread of it failed.
  bool Wait(const Feeds& feeds) {
    const auto interval = std::chrono::milliseconds(terminal_.is_terminal ? 1000 : 2000);
    auto until = Clock::now() + interval;
    bool last = false;
    if (options_.seconds > 0) {
      const auto end = start_ + std::chrono::duration_cast<Clock::duration>(
                                    std::chrono::duration<double>(options_.seconds));
      last = end <= until;
      until = std::min(until, end);
    }
    pollfd interrupted = {interrupt_->fd(), POLLIN, 0};
    while (Clock::now() < until && !interrupt_->raised() && !feeds.error()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      // A failure of a thread is looked for ten times a second.
      poll(&interrupted, 1, std::min(static_cast<int>(left) + 1, 100));
    }
    return !last && !interrupt_->raised() && !feeds.error();
  }

  // Asks the daemon everything that is shown.
  void Look(const Feeds& feeds) {
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - last_look_).count();
    view_.seconds = std::chrono::duration<double>(now - start_).count();
    view_.info = client_.Info();
    view_.sent = view_.acknowledged = 0;
    view_.values_per_second = 0;
    const auto counts = Counts(&client_, options_.prefix);
    for (std::size_t i = 0; i < kFeeds; ++i) {
      const auto id = static_cast<FeedId>(i);
      const std::string stream = Feeds::StreamName(options_.prefix, id);
      const client::ValueType type = kFeedInfo[id].type;
      FeedView& feed = view_.feeds[id];
      view_.acknowledged += feeds.count(id).acknowledged;
      view_.sent += feeds.count(id).sent;
      feed.n = counts[i];
      feed.values_per_second = static_cast<double>(feed.n - last_n_[i]) / passed;
      last_n_[i] = feed.n;
      view_.values_per_second += feed.values_per_second;
      if (feed.n == 0) continue;
      if (type != client::ValueType::kString && type != client::ValueType::kIpv4) {
        feed.quantiles = client_.Quantiles(stream, {kShownPhi.begin(), kShownPhi.end()});
      }
      if (id == kClockGaps || id == kThreads || id == kPeers) {
        feed.top = client_.HeavyHitters(stream, kShownSupport, kShownItems);
      }
    }
    last_look_ = now;
  }

  int Summarise(const Feeds& feeds, const std::array<std::uint64_t, kFeeds>& before) {
    if (!terminal_.is_terminal) std::cout << "\n" << ShowAnswers(view_);
    if (terminal_.is_terminal) std::cout << DrawScreen(view_, terminal_);
    std::cout << "\n";
    const auto after = Counts(&client_, options_.prefix);
    tool::Table table({"stream", "sent", "acknowledged", "in the daemon's n", ""},
                      {false, true, true, true, false});
    bool agree = true;
    std::uint64_t sent = 0;
    for (std::size_t i = 0; i < kFeeds; ++i) {
      const auto id = static_cast<FeedId>(i);
      const FeedCount count = feeds.count(id);
      const std::uint64_t there = after[i] - before[i];
      const bool same = count.acknowledged == there && count.sent == there;
      agree = agree && same;
      sent += count.sent;
      table.Add({Feeds::StreamName(options_.prefix, id), std::to_string(count.sent),
                 std::to_string(count.acknowledged), std::to_string(there),
                 same ? "equal" : "DIFFERENT"});
    }
    std::cout << table.ToString() << sent << " values in "
              << tool::ShowNumber(std::round(view_.seconds * 10) / 10) << " s, "
              << tool::ShowRate(static_cast<double>(sent) / view_.seconds) << " values/s: "
              << (agree ? "every one acknowledged, and n agrees" : "the counts do not agree")
              << "\n"
              << std::flush;
    return agree ? 0 : 1;
  }

  const DemoOptions& options_;
  tool::Interrupt* interrupt_;
  client::Client client_;
  tool::Terminal terminal_;
  View view_;
  Clock::time_point start_;
  Clock::time_point last_look_;
  std::array<std::uint64_t, kFeeds> last_n_{};
};

}  // namespace

int Main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  setenv("GRPC_VERBOSITY", "NONE", 0);
  DemoOptions options;
  CLI::App app("Streams values of this machine into a daemon and shows its answers.",
               "tidemark-demo");
  app.add_option("--server", options.server, "The daemon's gRPC (default 127.0.0.1:7070)")
      ->option_text("HOST:PORT")
      ->envname("TIDEMARK_SERVER");
  app.add_option("--http", options.http, "The daemon's HTTP, to be shown (default: it says so)")
      ->option_text("HOST:PORT");
  app.add_option("--seconds", options.seconds, "How long (default: until Ctrl-C)")
      ->option_text("N")
      ->check(CLI::PositiveNumber);
  app.add_option("--prefix", options.prefix, "Of the streams' names (default demo.)")
      ->option_text("TEXT");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    tool::Interrupt interrupt;
    return Demo(options, &interrupt).Run();
  } catch (const client::Error& error) {
    std::cerr << "tidemark-demo: " << error.what() << " (" << client::CodeName(error.code())
              << ")\n";
  } catch (const std::exception& error) {
    std::cerr << "tidemark-demo: " << error.what() << "\n";
  }
  return 1;
}

}  // namespace tidemark::demo

int main(int argc, char** argv) { return tidemark::demo::Main(argc, argv); }
