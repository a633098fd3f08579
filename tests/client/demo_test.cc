// The demo: its parsers, that its sources measure something, its screen, and a short run of the
// real program against a fake daemon.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "client/demo/screen.h"
#include "client/demo/sources.h"
#include "client/tool/arguments.h"
#include "tests/client/fake_server.h"

extern char** environ;

namespace tidemark::demo {
namespace {

TEST(DemoSources, ParseThreadState) {
  EXPECT_EQ(ParseThreadState("12 (bash) S 1 12"), "bash S");
  EXPECT_EQ(ParseThreadState("12 (a) b (c)) R 1"), "a) b (c) R");
  EXPECT_EQ(ParseThreadState("12 (\xFF) R 1"), "? R");
  EXPECT_FALSE(ParseThreadState(""));
  EXPECT_FALSE(ParseThreadState("12 (bash)"));
  EXPECT_FALSE(ParseThreadState(")("));
}

TEST(DemoSources, ParseTcpPeer) {
  EXPECT_EQ(ParseTcpPeer("   1: 0100007F:8BB0 0100007F:8337 06 00000000:00000000"),
            client::Ipv4{0x7F000001u});
  EXPECT_EQ(ParseTcpPeer("  10: 0100007F:8BB0 0200A8C0:01BB 01"), client::Ipv4{0xC0A80002u});
  EXPECT_FALSE(ParseTcpPeer("   0: 00000000:07E8 00000000:0000 0A")) << "listens";
  EXPECT_FALSE(ParseTcpPeer("  sl  local_address rem_address   st tx_queue"));
  EXPECT_FALSE(ParseTcpPeer(""));
  const std::string local = "   0: 0000000000000000FFFF00000100007F:A171 ";
  EXPECT_EQ(ParseTcpPeer(local + "0000000000000000FFFF00000100007F:9210 01"),
            client::Ipv4{0x7F000001u});
  EXPECT_FALSE(ParseTcpPeer(local + "B80D01200000000067452301EFCDAB89:9210 01")) << "IPv6";
}

TEST(DemoSources, Measure) {
  std::vector<std::uint32_t> gaps;
  AppendClockGaps(1000, std::chrono::seconds(10), &gaps);
  EXPECT_EQ(gaps.size(), 1000u);
  EXPECT_GT(*std::max_element(gaps.begin(), gaps.end()), 0u);
  gaps.clear();
  AppendClockGaps(1000, std::chrono::nanoseconds(0), &gaps);
  EXPECT_TRUE(gaps.empty()) << "no time, no readings";
  EXPECT_GE(WakeDelayNs(std::chrono::microseconds(1)), 0);
  Loopback loopback;
  const auto trip = loopback.RoundTripNs();
  ASSERT_TRUE(trip);
  EXPECT_GT(*trip, 0);
  EXPECT_FALSE(ThreadStates().empty()) << "this thread runs";
}

TEST(DemoScreen, FitsTheTerminalAndShowsEverything) {
  View view;
  view.seconds = 12.3;
  view.info.version = "1.2.3";
  view.info.sorter.active = "cpu";
  view.info.sorter.reason = "no graphics context, " + std::string(200, 'x');
  view.server = "127.0.0.1:7070";
  view.http = "127.0.0.1:7072";
  view.prefix = "demo.";
  view.sent = 11;
  view.acknowledged = 10;
  for (const FeedId id : {kClockGaps, kWakeDelays, kLoopback}) {
    view.feeds[id].n = 1'000'000;
    view.feeds[id].quantiles.emplace();
    for (const double phi : kShownPhi) {
      view.feeds[id].quantiles->answers.push_back({phi, {25.0}, 499'000, 501'000});
    }
  }
  view.feeds[kThreads].top.emplace();
  view.feeds[kThreads].top->items.push_back({{std::string("evil\x1b[2J")}, 7, 9});
  const std::string places = ShowPlaces(view);
  for (const char* part : {"cpu: no graphics", "127.0.0.1:7070", "http://127.0.0.1:7072/metrics",
                           "http://127.0.0.1:7072/-/healthy", "demo.*"}) {
    EXPECT_NE(places.find(part), std::string::npos) << part;
  }
  const std::string answers = ShowAnswers(view);
  for (const char* part : {"phi 0.999", "25 [499000, 501000]", "evil\\x1b[2J [7, 9]"}) {
    EXPECT_NE(answers.find(part), std::string::npos) << part << "\n" << answers;
  }
  for (const std::string& line :
       tool::SplitList(DrawScreen(view, tool::Terminal{true, 60, false}), '\n')) {
    EXPECT_LE(tool::DisplayWidth(line), 60u + 7) << "7 bytes steer the terminal: " << line;
  }
}

struct Result {
  int status;
  std::string out;
};

Result RunDemo(std::vector<std::string> arguments, int signal = 0) {
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, out[1], 2);
  arguments.insert(arguments.begin(), TIDEMARK_DEMO);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, TIDEMARK_DEMO, &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  Result result;
  char buffer[4096];
  for (ssize_t got; (got = read(out[0], buffer, sizeof(buffer))) > 0;) {
    result.out.append(buffer, static_cast<std::size_t>(got));
    // The head of its output: it runs.
    if (signal != 0 && result.out.find("streams") != std::string::npos) {
      kill(pid, signal);
      signal = 0;
    }
  }
  close(out[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

TEST(Demo, RunsForAWhileAndEveryValueIsFoundAgain) {
  client::FakeServer server;
  for (int i = 0; i < 2; ++i) {  // the second run begins with what the first left
    const Result r = RunDemo({"--server", server.address(), "--seconds", "0.2"});
    EXPECT_EQ(r.status, 0) << r.out;
    EXPECT_NE(r.out.find("every one acknowledged, and n agrees"), std::string::npos) << r.out;
  }
  for (const FeedInfo& feed : kFeedInfo) {
    const auto values = server.Values(std::string("demo.") + feed.name);
    ASSERT_FALSE(values.empty()) << feed.name;
    EXPECT_EQ(values[0].type(), feed.type);
  }
}

TEST(Demo, ASignalEndsItCleanly) {
  client::FakeServer server;
  const Result r = RunDemo({"--server", server.address(), "--prefix", "x."}, SIGINT);
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_NE(r.out.find("n agrees"), std::string::npos) << r.out;
}

TEST(Demo, FailuresAreOneLine) {
  Result r = RunDemo({"--server", "127.0.0.1:1"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.out.substr(0, 58), "tidemark-demo: the daemon at 127.0.0.1:1 cannot be reached");
  EXPECT_EQ(RunDemo({"--seconds", "-1"}).status, 2);
  EXPECT_EQ(RunDemo({"--help"}).status, 0);
  client::FakeServer server;
  server.RefuseBatch(3, 8, "full");
  r = RunDemo({"--server", server.address(), "--seconds", "60"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("tidemark-demo: full (RESOURCE_EXHAUSTED)"), std::string::npos) << r.out;
}

}  // namespace
}  // namespace tidemark::demo
