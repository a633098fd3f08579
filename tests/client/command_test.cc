// The `tidemark` command against a fake daemon: exit status, output, messages. Run in-process, and
// for signals as the real program.
#include "client/tool/command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "client/client.h"
#include "tests/client/fake_server.h"

extern char** environ;

namespace tidemark::tool {
namespace {

using client::FakeServer;
using client::Value;

struct Result {
  int status = -1;
  std::string out;
  std::string err;
};

class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tidemark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    unsetenv("TIDEMARK_SERVER");
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  Result Run(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"--server", server_.address()});
    return RunAlone(arguments, input);
  }
  Result RunAlone(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::ostringstream out, err;
    const std::string path = File("standard input", input);
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const Environment environment{out, err, fd, Terminal{false, 70, false}, Terminal{}};
    Result result;
    result.status = RunCommand(arguments, environment);
    close(fd);
    result.out = out.str();
    result.err = err.str();
    return result;
  }
  std::string File(const std::string& name, const std::string& content) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  FakeServer server_;
  std::filesystem::path folder_;
};

TEST_F(CommandTest, PushTextFromStandardInputAndAsk) {
  Result r = Run({"push", "s", "--json"}, "1\n2\n# three\n\n3\nnan\n");
  EXPECT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["accepted"], 3);
  EXPECT_EQ(json["refused"], 1);
  EXPECT_EQ(json["bad"], 0);
  EXPECT_EQ(json["type"], "float64");

  r = Run({"quantile", "s", "0.5", "1", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out,
            R"({"stream":"s","n":3,"epsilon":0.001,"answers":[{"phi":0.5,"value":2.0,"rank_low":2,)"
            R"("rank_high":2},{"phi":1.0,"value":3.0,"rank_low":3,"rank_high":3}]})"
            "\n");
  r = Run({"quantile", "s", "0.5"});
  EXPECT_EQ(r.out,
            "s: n 3, epsilon 0.001\n"
            "phi  value  rank_low  rank_high\n"
            "0.5      2         2          2\n");
  r = Run({"push", "s"}, "4\n");
  EXPECT_NE(r.out.find("s: 1 value taken in"), std::string::npos) << r.out;
}

TEST_F(CommandTest, NumbersThatBeginWithAMinus) {
  Run({"push", "s"}, "-5\n-inf\n7\n-0.5\n");
  const Result r = Run({"rank", "s", "-5", "-inf", "-.5", "7", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(r.out, R"({"stream":"s","n":4,"epsilon":0.001,"answers":[)"
                   R"({"value":-5.0,"rank_low":2,"rank_high":2},)"
                   R"({"value":"-inf","rank_low":1,"rank_high":1},)"
                   R"({"value":-0.5,"rank_low":3,"rank_high":3},)"
                   R"({"value":7.0,"rank_low":4,"rank_high":4}]})"
                   "\n");
  const Result h = Run({"histogram", "s", "--bounds", "-5,0", "--json"});
  EXPECT_EQ(nlohmann::json::parse(h.out)["buckets"].size(), 3u) << h.err;
  EXPECT_EQ(Run({"count", "s", "-5"}).status, 0);
  const Result q = Run({"quantile", "s", "-0.5"});
  EXPECT_EQ(q.status, 1);
  EXPECT_EQ(q.err, "tidemark: phi is not in [0, 1] (INVALID_ARGUMENT)\n");
}

TEST_F(CommandTest, GlobalOptionsBeforeAndAfter) {
  Run({"push", "s"}, "1\n");
  const std::string address = server_.address();
  const Result before = RunAlone({"--json", "--server", address, "streams"});
  const Result after = RunAlone({"streams", "--server", address, "--json"});
  EXPECT_EQ(before.status, 0) << before.err;
  EXPECT_EQ(before.out, after.out);
  EXPECT_EQ(RunAlone({"quantile", "s", "0.5", "--json", "--server=" + address}).status, 0);
  setenv("TIDEMARK_SERVER", address.c_str(), 1);
  EXPECT_EQ(RunAlone({"streams", "--json"}).out, before.out);
  // A flag goes over the environment.
  setenv("TIDEMARK_SERVER", "127.0.0.1:1", 1);
  EXPECT_EQ(RunAlone({"streams", "--json", "--server", address}).out, before.out);
  unsetenv("TIDEMARK_SERVER");
}

TEST_F(CommandTest, UsageIsStatusTwo) {
  Run({"push", "s"}, "1\n");
  Run({"push", "names", "--type", "string"}, "a\n");
  const std::vector<std::vector<std::string>> kCases = {
      {},
      {"nonsense"},
      {"quantile"},
      {"quantile", "s"},
      {"quantile", "s", "abc"},
      {"quantile", "s", "0.5", "--last", "0"},
      {"quantile", "s", "0.5", "--last", "-3"},
      {"quantile", "s", "0.5", "--window", "5"},
      {"quantile", "s", "0.5", "--last", "3", "--window", "5m"},
      {"rank", "s", "abc"},
      {"histogram", "s"},
      {"histogram", "s", "--buckets", "0"},
      {"histogram", "s", "--buckets", "4", "--bounds", "1,2"},
      {"histogram", "s", "--bounds", "1,,2"},
      {"top", "s"},
      {"top", "s", "--support", "x"},
      {"watch", "s"},
      {"watch", "s", "--quantile", "0.5", "--top", "0.1"},
      {"watch", "s", "--quantile", "0.5", "--every", "soon"},
      {"create", "t", "--type", "decimal"},
      {"create", "t", "--epsilon", "0"},
      {"push", "s", "--repeat", "0"},
      {"push", "s", "--type", "double"},
      {"push", "s", "--raw", "--column", "1"},
      {"push", "s", "--raw", "--type", "string"},
      {"push", "names", "--raw"},
      {"push", "s", "--unknown"},
      {"info", "surplus"},
  };
  for (const auto& arguments : kCases) {
    const Result r = Run(arguments);
    EXPECT_EQ(r.status, 2) << testing::PrintToString(arguments) << r.err;
    EXPECT_EQ(r.out, "") << testing::PrintToString(arguments);
    EXPECT_EQ(r.err.substr(0, 10), "tidemark: ") << r.err;
    EXPECT_EQ(r.err.find('\x01'), std::string::npos) << "a hidden minus sign shows";
  }
}

TEST_F(CommandTest, RefusedIsStatusOne) {
  Run({"push", "s"}, "1\n");
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } kCases[] = {
      {{"describe", "none"}, "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"delete", "none"}, "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"rank", "none", "1"}, "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"quantile", "none", "0.5"}, "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"top", "none", "--support", "0.1"},
       "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"watch", "none", "--top", "0.1"}, "tidemark: stream \"none\" does not exist (NOT_FOUND)\n"},
      {{"quantile", "s", "2"}, "tidemark: phi is not in [0, 1] (INVALID_ARGUMENT)\n"},
      {{"quantile", "s", "0.5", "--last", "10"},
       "tidemark: stream \"s\" was created without sliding windows (FAILED_PRECONDITION)\n"},
      {{"count", "s", "1", "--window", "5m"},
       "tidemark: stream \"s\" was created without sliding windows (FAILED_PRECONDITION)\n"},
      {{"create", "s", "--type", "string", "--epsilon", "0.5"},
       "tidemark: stream \"s\" exists with other settings (ALREADY_EXISTS)\n"},
      {{"push", "s", "--type", "string"},
       "tidemark: stream \"s\" is float64 (FAILED_PRECONDITION)\n"},
  };
  for (const auto& c : kCases) {
    const Result r = Run(c.arguments, "x\n");
    EXPECT_EQ(r.status, 1) << testing::PrintToString(c.arguments);
    EXPECT_EQ(r.err, c.message);
    EXPECT_EQ(r.out, "");
  }
  const Result r = RunAlone({"info", "--server", "127.0.0.1:1"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("the daemon at 127.0.0.1:1 cannot be reached"), std::string::npos) << r.err;
}

TEST_F(CommandTest, BadLineStopsThePush) {
  const std::string path = File("in.txt", "1\n2\nabc\n4\n");
  Result r = Run({"push", "s", path});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err, "tidemark: " + path +
                       ":3: \"abc\" is not a float64; 2 values before it were taken in\n");
  EXPECT_EQ(server_.Values("s").size(), 2u);
  r = Run({"push", "t", path, "--skip-bad", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out)["bad"], 1);
  EXPECT_EQ(server_.Values("t").size(), 3u);
  r = Run({"push", "t", path, "--skip-bad"});
  EXPECT_NE(r.out.find("1 skipped, the first: " + path + ":3: \"abc\" is not a float64"),
            std::string::npos)
      << r.out;
}

// Input that cannot be read on ends the push as a bad line does: what came before it is sent, and
// said.
TEST_F(CommandTest, ACsvFieldThatIsNeverClosedStopsThePush) {
  const std::string path = File("in.csv", "name,n\na,1\nb,2\n\"c,3\nd,4\n");
  const Result r = Run({"push", "s", path, "--column", "n", "--skip-bad"});
  EXPECT_EQ(r.status, 1);
  EXPECT_EQ(r.err, "tidemark: " + path +
                       ":4: a quoted field begins in this record and is never closed; 2 values "
                       "before it were taken in\n");
  EXPECT_EQ(server_.Values("s").size(), 2u);
}

TEST_F(CommandTest, PushFiles) {
  const std::string csv = File("in.csv", "timestamp,value\nt1,\"1.5\"\nt2,2.5\n");
  EXPECT_EQ(Run({"push", "a", csv, "--column", "value", "--repeat", "3"}).status, 0);
  EXPECT_EQ(server_.Values("a").size(), 6u);
  EXPECT_EQ(server_.Values("a")[1], Value{2.5});
  EXPECT_EQ(Run({"push", "b", csv, "--column", "2", "--type", "float32"}).status, 0);
  EXPECT_EQ(server_.Values("b")[0], Value{1.5f});

  const std::vector<std::int64_t> values = {1, -2, INT64_MIN};
  std::string bytes(sizeof(std::int64_t) * values.size(), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  EXPECT_EQ(Run({"push", "raw", File("in.bin", bytes), "--raw", "--type", "int64"}).status, 0);
  EXPECT_EQ(server_.Values("raw")[2], Value{INT64_MIN});
  const Result cut = Run({"push", "raw", File("cut.bin", bytes + "abc"), "--raw"});
  EXPECT_EQ(cut.status, 1);
  EXPECT_NE(cut.err.find("cut.bin: the last 3 bytes are not a whole int64; 3 values before it "
                         "were taken in"),
            std::string::npos)
      << cut.err;

  EXPECT_EQ(Run({"push", "ip", "--type", "ipv4"}, "10.0.0.1\n").status, 0);
  EXPECT_EQ(server_.Values("ip")[0], Value{client::Ipv4{0x0A000001u}});
  EXPECT_EQ(Run({"push", "items", "--type", "string"}, "a b\n#c\n").status, 0);
  EXPECT_EQ(server_.Values("items")[1], Value{std::string("#c")});
  const Result utf8 = Run({"push", "items"}, "\xFFx\n");
  EXPECT_EQ(utf8.status, 1);
  EXPECT_NE(utf8.err.find("-:1: "), std::string::npos) << utf8.err;

  // The stream's own type is found out: "7" is an address no more than "x" is.
  EXPECT_EQ(Run({"push", "ip"}, "7\n").status, 1);
  EXPECT_EQ(Run({"push", "s", (folder_ / "none").string()}).status, 1);
}

TEST_F(CommandTest, LargePushArrivesWhole) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + "\n";
  const Result r = Run({"push", "s", "--type", "uint32"}, text);
  EXPECT_EQ(r.status, 0) << r.err;
  const auto values = server_.Values("s");
  ASSERT_EQ(values.size(), 100'000u);
  for (std::uint32_t i = 0; i < 100'000; ++i) ASSERT_EQ(values[i], Value{i});
  EXPECT_EQ(server_.batches(), 7u);
}

TEST_F(CommandTest, StreamsOfTheirWholeLife) {
  Result r = Run({"create", "s", "--type", "ipv4", "--epsilon", "0.01", "--frequency-epsilon",
                  "0.002", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["name"], "s");
  EXPECT_EQ(json["type"], "ipv4");
  EXPECT_EQ(json["epsilon"], 0.01);
  EXPECT_EQ(json["frequency_epsilon"], 0.002);
  EXPECT_EQ(Run({"streams", "--json"}).out,
            R"({"streams":[{"name":"s","type":"ipv4","epsilon":0.01,"n":0}]})"
            "\n");
  EXPECT_EQ(Run({"streams"}).out, "stream  type  epsilon  n\ns       ipv4     0.01  0\n");
  EXPECT_NE(Run({"describe", "s"}).out.find("epsilon, frequencies      0.002"), std::string::npos);
  EXPECT_EQ(Run({"delete", "s", "--json"}).out, "{\"deleted\":\"s\"}\n");
  EXPECT_EQ(Run({"streams"}).out, "no streams\n");
}

// Strings have counts and no ranks: the one epsilon that answers depend on is that of counts.
TEST_F(CommandTest, EpsilonOfStringsIsThatOfCounts) {
  const Result r = Run({"create", "w", "--type", "string", "--epsilon", "0.01", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["epsilon"], 0.01);
  EXPECT_EQ(json["frequency_epsilon"], 0.01);
  EXPECT_EQ(Run({"streams", "--json"}).out,
            R"({"streams":[{"name":"w","type":"string","epsilon":0.01,"n":0}]})"
            "\n");
  EXPECT_EQ(Run({"streams"}).out, "stream  type    epsilon  n\nw       string     0.01  0\n");
  const std::string described = Run({"describe", "w"}).out;
  EXPECT_NE(described.find("epsilon, frequencies      0.01"), std::string::npos) << described;
  EXPECT_EQ(described.find("epsilon, quantiles"), std::string::npos) << described;
  // The other name means the same.
  EXPECT_EQ(Run({"create", "w", "--type", "string", "--frequency-epsilon", "0.01"}).status, 0);
  const Result both =
      Run({"create", "v", "--type", "string", "--epsilon", "0.01", "--frequency-epsilon", "0.01"});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err.substr(0, both.err.find('\n')),
            "tidemark: --epsilon and --frequency-epsilon are the same for strings: give one");
}

// So have addresses of ipv6: nothing is said of quantiles that they do not have.
TEST_F(CommandTest, EpsilonOfIpv6IsThatOfCounts) {
  const Result r = Run({"create", "w", "--type", "ipv6", "--epsilon", "0.01", "--json"});
  EXPECT_EQ(r.status, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_EQ(json["epsilon"], 0.01);
  EXPECT_EQ(json["frequency_epsilon"], 0.01);
  EXPECT_FALSE(json.contains("quantile_form"));
  const std::string described = Run({"describe", "w"}).out;
  EXPECT_NE(described.find("epsilon, frequencies      0.01"), std::string::npos) << described;
  EXPECT_EQ(described.find("quantile"), std::string::npos) << described;
  const Result both =
      Run({"create", "v", "--type", "ipv6", "--epsilon", "0.01", "--frequency-epsilon", "0.01"});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err.substr(0, both.err.find('\n')),
            "tidemark: --epsilon and --frequency-epsilon are the same for ipv6: give one");
}

TEST_F(CommandTest, SumsOfValuesAreAskedForAndShown) {
  const auto made = [&](const char* name, const char* option) {
    const Result r = Run({"create", name, "--type", "float64", option, "--json"});
    EXPECT_EQ(r.status, 0) << r.err;
    return nlohmann::json::parse(r.out);
  };
  const auto with = made("w", "--sums");
  EXPECT_EQ(with["sums"], true);
  EXPECT_TRUE(with.contains("sum_bytes"));
  const auto without = made("v", "--no-sums");
  EXPECT_FALSE(without.contains("sums"));
  EXPECT_FALSE(without.contains("sum_bytes"));
  const std::string described = Run({"describe", "w"}).out;
  EXPECT_NE(described.find("of the values"), std::string::npos) << described;
  EXPECT_NE(described.find("bytes, sums"), std::string::npos) << described;
}

// Whatever this machine has, and without a daemon.
TEST_F(CommandTest, GpuInfoNeedsNoDaemon) {
  const Result run = RunAlone({"gpu-info", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto info = nlohmann::json::parse(run.out);
  if (info["devices"].empty()) {
    EXPECT_TRUE(info["chosen"].is_null());
  } else {
    const auto& device = info["devices"][0];
    EXPECT_NE(device["renderer"] == "", device["error"] == "") << device;
  }
  EXPECT_EQ(info["sorters"][0]["name"], "cpu");
  EXPECT_EQ(info["sorters"].size(), 5u);
  EXPECT_FALSE(info["measurements"].empty());
  const Result text = RunAlone({"gpu-info"});
  EXPECT_NE(text.out.find("\nused: "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("gl-compute"), std::string::npos) << text.out;
  EXPECT_EQ(RunAlone({"gpu-info", "stream"}).status, 2);
}

TEST_F(CommandTest, TopAndCount) {
  Run({"push", "s", "--type", "string"}, "a\nb\na\n");
  EXPECT_EQ(Run({"top", "s", "--support", "0.5", "--json"}).out,
            R"({"stream":"s","n":3,"epsilon":0.001,"support":0.5,"items":[{"value":"a",)"
            R"("count_low":2,"count_high":2}]})"
            "\n");
  EXPECT_EQ(Run({"count", "s", "a", "x", "--json"}).out,
            R"({"stream":"s","n":3,"epsilon":0.001,"items":[{"value":"a","count_low":2,)"
            R"("count_high":2},{"value":"x","count_low":0,"count_high":0}]})"
            "\n");
  // Items that look like options come after "--".
  EXPECT_EQ(Run({"count", "s", "--json", "--", "--a", "-b"}).status, 0);
}

TEST_F(CommandTest, HistogramDrawsAndBeginsAtTheSmallest) {
  std::string text;
  for (int i = 1; i <= 100; ++i) text += std::to_string(i * i) + "\n";
  Run({"push", "s"}, text);
  EXPECT_EQ(Run({"histogram", "s", "--buckets", "2"}).out,
            "s: n 100, epsilon 0.001\n"
            "from above  up to  count_low  count_high  values per unit\n"
            "         1   2500         50          50  ############################\n"
            "      2500  10000         50          50  #########\n");
  const auto json = nlohmann::json::parse(Run({"histogram", "s", "--buckets", "2", "--json"}).out);
  EXPECT_FALSE(json["buckets"][0].contains("low"));
  EXPECT_EQ(json["buckets"][0]["high"], 2500.0);
}

TEST_F(CommandTest, Info) {
  const Result r = Run({"info"});
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("sorter    cpu (configured: auto)"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("none: no display"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("1 d 1 h 1 min 1 s"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find("rates     cached, measured 2026-11-22 11:20:31 UTC"), std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("requests  gl-compute 116 faster, 4 probe; cpu 31 busy"), std::string::npos)
      << r.out;
  EXPECT_NE(r.out.find("requests seen"), std::string::npos) << r.out;
  const auto json = nlohmann::json::parse(Run({"info", "--json"}).out);
  EXPECT_EQ(json["values"], "1152921504606846976");
  EXPECT_EQ(json["endpoints"]["http"], "127.0.0.1:7072");
  EXPECT_EQ(json["sorter"]["active"], "cpu");
  EXPECT_EQ(json["sorter"]["cached"], true);
  EXPECT_EQ(json["sorter"]["measured_at_us"], 1'795'346'431'000'000);
  EXPECT_EQ(json["sorter"]["observed"][0]["requests"], 120);
  EXPECT_EQ(json["sorter"]["routes"][2]["reason"], "busy");
}

TEST_F(CommandTest, WatchUntilTheDaemonEnds) {
  Run({"push", "s"}, "1\n2\n3\n");
  server_.EndWatchesAfter(3);
  Result r = Run({"watch", "s", "--quantile", "0.5", "1", "--every", "10ms", "--json"});
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.err.find("shutting down"), std::string::npos) << r.err;
  std::istringstream lines(r.out);
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["n"], 3);
    EXPECT_EQ(json["answers"][1]["value"], 3.0);
    EXPECT_EQ(json["skipped"], count);
  }
  EXPECT_EQ(count, 3);
  r = Run({"watch", "s", "--quantile", "0.5", "--every", "10ms"});
  EXPECT_NE(r.out.find("2 [2, 2]"), std::string::npos) << r.out;
  r = Run({"watch", "s", "--top", "0.3", "--every", "10ms"});
  EXPECT_NE(r.out.find("33.33 %"), std::string::npos) << r.out;
}

TEST_F(CommandTest, HelpAndVersion) {
  const Result help = RunAlone({"--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* command : {"push", "create", "streams", "describe", "delete", "quantile", "rank",
                              "histogram", "top", "count", "watch", "info"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    EXPECT_EQ(RunAlone({command, "--help"}).status, 0) << command;
  }
  EXPECT_EQ(RunAlone({"--version"}).out.substr(0, 9), "tidemark ");
}

// The real program, for signals and pipes.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    arguments.insert(arguments.begin(), TIDEMARK_PROGRAM);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, TIDEMARK_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  ~Program() {
    CloseInput();
    close(output_);
  }
  void Write(const std::string& text) {
    EXPECT_EQ(write(input_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void CloseInput() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }
  void Signal(int number) { kill(pid_, number); }
  std::string ReadLine() {
    std::string line;
    for (char c; read(output_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  // Exit status; 128 + signal for a death by one.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
};

TEST_F(CommandTest, WatchEndsCleanlyOnASignal) {
  Run({"push", "s"}, "1\n");
  for (const int signal : {SIGINT, SIGTERM}) {
    Program watch({"watch", "s", "--quantile", "0.5", "--every", "10ms", "--json", "--server",
                   server_.address()});
    EXPECT_EQ(nlohmann::json::parse(watch.ReadLine())["n"], 1);
    watch.Signal(signal);
    EXPECT_EQ(watch.Wait(), 0);
  }
}

TEST_F(CommandTest, AnInterruptedPushSendsWhatItReadAndSaysSo) {
  Program push({"push", "s", "--server", server_.address()});
  push.Write("1\n2\n3");
  // It has begun once the stream is there.
  client::ClientOptions to;
  to.server = server_.address();
  client::Client client(to);
  for (bool there = false; !there;) {
    for (const auto& stream : client.ListStreams()) there |= stream.name == "s";
  }
  // What a pipe holds at that moment may be read or not.
  push.Signal(SIGINT);
  const std::string line = push.ReadLine();
  EXPECT_EQ(push.Wait(), 1);
  EXPECT_EQ(line.substr(0, 23), "tidemark: interrupted; ") << line;
  const std::size_t taken = server_.Values("s").size();
  EXPECT_NE(line.find(std::to_string(taken) + " values before it"), std::string::npos) << line;
}

}  // namespace
}  // namespace tidemark::tool
