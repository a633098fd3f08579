// The `tidemark` command as a process against the real daemon: what it prints, the JSON that
// scripts rely on, its exit status. What it reads and how it draws: tests/client.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order in which fields were printed

std::vector<std::string> Fields(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}
using Names = std::vector<std::string>;

class CommandTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    daemon_ = std::make_unique<TestDaemon>();
    // 1 to 1000 in disorder: 3 is prime to 1001.
    std::vector<double> values;
    for (int i = 1; i <= 1000; ++i) values.push_back(i * 3 % 1001);
    auto numbers = daemon_->client().Push("numbers");
    numbers.Write(values);
    EXPECT_EQ(numbers.Finish().accepted, 1000u);
    std::vector<client::Ipv4> addresses(80, client::Ipv4{0x53'95'09'D8});
    addresses.resize(100, client::Ipv4{0x0A'00'00'01});
    auto peers = daemon_->client().Push("peers");
    peers.Write(addresses);
    peers.Finish();
    const std::vector<std::string> words = {"b", "a", "b", "ü", "b"};
    auto text = daemon_->client().Push("words");
    text.Write(words);
    text.Finish();
  }
  static void TearDownTestSuite() { daemon_.reset(); }

  static Completed Tidemark(std::vector<std::string> arguments,
                            const std::optional<std::string>& input = std::nullopt) {
    return RunTidemark(*daemon_, std::move(arguments), input);
  }
  // The JSON of a command that must succeed: one line of it on standard output, nothing elsewhere.
  static Json Ask(std::vector<std::string> arguments,
                  const std::optional<std::string>& input = std::nullopt) {
    arguments.emplace_back("--json");
    const Completed run = Tidemark(std::move(arguments), input);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1) << run.out;
    return Json::parse(run.out);
  }
  // A command that must fail so, with one line on standard error that holds `part`.
  static void ExpectFailure(int status, const std::vector<std::string>& arguments,
                            const std::string& part,
                            const std::optional<std::string>& input = std::nullopt) {
    const Completed run = Tidemark(arguments, input);
    EXPECT_EQ(run.status, status) << run.out << run.err;
    EXPECT_TRUE(run.err.starts_with("tidemark: ")) << run.err;
    EXPECT_NE(run.err.find(part), std::string::npos) << "\"" << part << "\" is not in " << run.err;
    if (status == 1) {
      EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    }
    EXPECT_EQ(run.out, "");
  }

  static std::unique_ptr<TestDaemon> daemon_;
};
std::unique_ptr<TestDaemon> CommandTest::daemon_;

TEST_F(CommandTest, QuantileJson) {
  const Json answer = Ask({"quantile", "numbers", "0", "0.5", "0.99", "1"});
  EXPECT_EQ(answer, Json::parse(R"({"stream":"numbers","n":1000,"epsilon":0.001,"answers":[
      {"phi":0,"value":1,"rank_low":1,"rank_high":1},
      {"phi":0.5,"value":500,"rank_low":500,"rank_high":500},
      {"phi":0.99,"value":990,"rank_low":990,"rank_high":990},
      {"phi":1,"value":1000,"rank_low":1000,"rank_high":1000}]})"));
  EXPECT_EQ(Fields(answer), (Names{"stream", "n", "epsilon", "answers"}));
  EXPECT_EQ(Fields(answer["answers"][0]), (Names{"phi", "value", "rank_low", "rank_high"}));
  EXPECT_TRUE(answer["n"].is_number_integer());
  EXPECT_TRUE(answer["epsilon"].is_number_float());
  EXPECT_TRUE(answer["answers"][0]["rank_low"].is_number_integer());
}

TEST_F(CommandTest, RankJson) {
  const Json answer = Ask({"rank", "numbers", "500", "-3", "1e9", "0.5", "-inf"});
  EXPECT_EQ(answer, Json::parse(R"({"stream":"numbers","n":1000,"epsilon":0.001,"answers":[
      {"value":500,"rank_low":500,"rank_high":500},
      {"value":-3,"rank_low":0,"rank_high":0},
      {"value":1000000000,"rank_low":1000,"rank_high":1000},
      {"value":0.5,"rank_low":0,"rank_high":0},
      {"value":"-inf","rank_low":0,"rank_high":0}]})"));
  EXPECT_EQ(Fields(answer), (Names{"stream", "n", "epsilon", "answers"}));
  EXPECT_EQ(Fields(answer["answers"][0]), (Names{"value", "rank_low", "rank_high"}));
}

TEST_F(CommandTest, TopJson) {
  const Json answer = Ask({"top", "peers", "--support", "0.5"});
  EXPECT_EQ(answer, Json::parse(R"({"stream":"peers","n":100,"epsilon":0.0001,"support":0.5,
      "items":[{"value":"83.149.9.216","count_low":80,"count_high":80}]})"));
  EXPECT_EQ(Fields(answer), (Names{"stream", "n", "epsilon", "support", "items"}));
  EXPECT_EQ(Fields(answer["items"][0]), (Names{"value", "count_low", "count_high"}));
}

TEST_F(CommandTest, CountJson) {
  const Json answer = Ask({"count", "words", "b", "nothing", "ü"});
  EXPECT_EQ(answer, Json::parse(R"({"stream":"words","n":5,"epsilon":0.0001,"items":[
      {"value":"b","count_low":3,"count_high":3},
      {"value":"nothing","count_low":0,"count_high":0},
      {"value":"ü","count_low":1,"count_high":1}]})"));
  EXPECT_EQ(Fields(answer), (Names{"stream", "n", "epsilon", "items"}));
}

TEST_F(CommandTest, HistogramJson) {
  const Json answer = Ask({"histogram", "numbers", "--buckets", "4"});
  EXPECT_EQ(Fields(answer), (Names{"stream", "n", "epsilon", "buckets"}));
  ASSERT_EQ(answer["buckets"].size(), 4u);
  EXPECT_EQ(Fields(answer["buckets"][0]), (Names{"high", "count_low", "count_high"}));
  EXPECT_EQ(Fields(answer["buckets"][1]), (Names{"low", "high", "count_low", "count_high"}));
  EXPECT_EQ(answer["buckets"][3],
            Json::parse(R"({"low":750,"high":1000,"count_low":250,"count_high":250})"));
  const Json bounded = Ask({"histogram", "numbers", "--bounds", "-5,100"});
  EXPECT_EQ(bounded["buckets"], Json::parse(R"([{"high":-5,"count_low":0,"count_high":0},
      {"low":-5,"high":100,"count_low":100,"count_high":100},
      {"low":100,"count_low":900,"count_high":900}])"));
}

// Which epsilon is meant is not known before the stream is there.
TEST(CommandOfADaemonOfStrings, EpsilonWithoutATypeIsRefused) {
  TestDaemon daemon({"--stream-type", "string"});
  const Completed made = RunTidemark(daemon, {"create", "w", "--epsilon", "0.01"});
  EXPECT_EQ(made.status, 1);
  EXPECT_EQ(
      made.err,
      "tidemark: \"w\" is of type string, the daemon's default, of epsilon 0.0001: --epsilon "
      "needs --type string there. The stream exists now; delete it first (FAILED_PRECONDITION)\n");
  EXPECT_EQ(RunTidemark(daemon, {"create", "v"}).status, 0);
}

TEST_F(CommandTest, StreamsDescribeCreateDelete) {
  const Json created = Ask(
      {"create", "made", "--type", "int64", "--epsilon", "0.01", "--frequency-epsilon", "0.02"});
  const Names described = {"name",
                           "type",
                           "epsilon",
                           "n",
                           "frequency_epsilon",
                           "refused",
                           "refused_whole",
                           "dropped_datagrams",
                           "exact",
                           "pending",
                           "window_capacity",
                           "window_fill",
                           "windows_summarized",
                           "quantile_bytes",
                           "frequency_bytes",
                           "window_bytes",
                           "dictionary_bytes",
                           "frequencies",
                           "quantile_form"};
  EXPECT_EQ(Fields(created), described);
  EXPECT_EQ(created["type"], "int64");
  EXPECT_EQ(created["epsilon"], 0.01);
  EXPECT_EQ(created["frequency_epsilon"], 0.02);
  EXPECT_EQ(created["exact"], true);
  const Json streams = Ask({"streams"});
  EXPECT_EQ(Fields(streams), (Names{"streams"}));
  const auto made = std::find_if(streams["streams"].begin(), streams["streams"].end(),
                                 [](const Json& s) { return s["name"] == "made"; });
  ASSERT_NE(made, streams["streams"].end());
  EXPECT_EQ(*made, Json::parse(R"({"name":"made","type":"int64","epsilon":0.01,"n":0})"));
  EXPECT_EQ(Fields(*made), (Names{"name", "type", "epsilon", "n"}));
  EXPECT_EQ(Fields(Ask({"describe", "made"})), described);
  // For strings the answers are within what was asked for, and the list says so.
  Ask({"create", "items", "--type", "string", "--epsilon", "0.02"});
  EXPECT_EQ(Ask({"top", "items", "--support", "0.1"})["epsilon"], 0.02);
  const Json listed = Ask({"streams"})["streams"];
  EXPECT_EQ(
      std::find_if(listed.begin(), listed.end(), [](const Json& s) { return s["name"] == "items"; })
          ->at("epsilon"),
      0.02);
  Ask({"delete", "items"});
  // Again with the same settings, then with others.
  EXPECT_EQ(Ask({"create", "made", "--type", "int64", "--epsilon", "0.01", "--frequency-epsilon",
                 "0.02"})["n"],
            0);
  ExpectFailure(1, {"create", "made", "--type", "float64"}, "ALREADY_EXISTS");
  EXPECT_EQ(Ask({"delete", "made"}), Json::parse(R"({"deleted":"made"})"));
  ExpectFailure(1, {"delete", "made"}, "NOT_FOUND");
  ExpectFailure(1, {"describe", "made"}, "\"made\"");
}

TEST_F(CommandTest, InfoJson) {
  const Json info = Ask({"info"});
  EXPECT_EQ(Fields(info), (Names{"version", "sorter", "gl", "endpoints", "limits", "streams",
                                 "values", "uptime_us"}));
  EXPECT_EQ(info["sorter"]["requested"], "auto");
  EXPECT_NE(info["sorter"]["active"], "");
  EXPECT_NE(info["sorter"]["reason"], "");
  for (const char* name : {"grpc", "tcp", "http", "statsd"}) {
    EXPECT_EQ(info["endpoints"][name], daemon_->address(name));
  }
  EXPECT_EQ(info["limits"]["max_streams"], 100'000);
  EXPECT_GE(info["values"], 1105);
}

TEST_F(CommandTest, Texts) {
  const auto text = [](const std::vector<std::string>& arguments) {
    const Completed run = Tidemark(arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return run.out;
  };
  EXPECT_EQ(text({"quantile", "numbers", "0.5"}),
            "numbers: n 1000, epsilon 0.001\n"
            "phi  value  rank_low  rank_high\n"
            "0.5    500       500        500\n");
  EXPECT_EQ(text({"rank", "numbers", "-1"}),
            "numbers: n 1000, epsilon 0.001\n"
            "value  rank_low  rank_high\n"
            "   -1         0          0\n");
  EXPECT_EQ(text({"top", "peers", "--support", "0.5"}),
            "peers: n 100, epsilon 0.0001, support 0.5\n"
            "item          count_low  count_high    share\n"
            "83.149.9.216         80          80  80.00 %\n");
  EXPECT_EQ(text({"count", "words", "a"}),
            "words: n 5, epsilon 0.0001\n"
            "item  count_low  count_high    share\n"
            "a             1           1  20.00 %\n");
  EXPECT_NE(text({"streams"}).find("numbers"), std::string::npos);
  EXPECT_NE(text({"describe", "numbers"}).find("exact"), std::string::npos);
  EXPECT_NE(text({"info"}).find("because"), std::string::npos);
  EXPECT_GE(text({"histogram", "numbers", "--buckets", "4"}).size(), 100u);
  EXPECT_EQ(text({"create", "short"}).substr(0, 6), "stream");
  EXPECT_EQ(text({"delete", "short"}), "deleted short\n");
}

TEST_F(CommandTest, Refused) {
  ExpectFailure(1, {"quantile", "nowhere", "0.5"}, "\"nowhere\"");
  ExpectFailure(1, {"rank", "nowhere", "1"}, "NOT_FOUND");
  ExpectFailure(1, {"top", "nowhere", "--support", "0.5"}, "NOT_FOUND");
  ExpectFailure(1, {"watch", "nowhere", "--quantile", "0.5"}, "NOT_FOUND");
  ExpectFailure(1, {"quantile", "numbers", "1.5"}, "phi 1.5");
  ExpectFailure(1, {"quantile", "numbers", "-0.1"}, "phi -0.1");
  ExpectFailure(1, {"quantile", "numbers", "nan"}, "phi");
  ExpectFailure(1, {"top", "numbers", "--support", "0"}, "support 0");
  ExpectFailure(1, {"top", "numbers", "--support", "-1"}, "support -1");
  ExpectFailure(1, {"top", "numbers", "--support", "2"}, "support 2");
  ExpectFailure(1, {"quantile", "words", "0.5"}, "strings");
  ExpectFailure(1, {"create", "bad", "--epsilon", "0.9"}, "0.9");
  ExpectFailure(1, {"push", "numbers", "--type", "int64"}, "float64", "1\n");
  ExpectFailure(1, {"histogram", "numbers", "--buckets", "20000"}, "20000");
  ExpectFailure(1, {"quantile", "numbers", "0.5", "--last", "100"}, "without sliding windows");
  ExpectFailure(1, {"quantile", "numbers", "0.5", "--window", "5m"}, "without sliding windows");
}

TEST_F(CommandTest, WrongUsage) {
  ExpectFailure(2, {}, "");
  ExpectFailure(2, {"frobnicate"}, "frobnicate");
  ExpectFailure(2, {"quantile", "numbers"}, "PHI");
  ExpectFailure(2, {"quantile", "numbers", "half"}, "half");
  ExpectFailure(2, {"rank", "numbers", "abc"}, "abc");
  ExpectFailure(2, {"top", "numbers"}, "--support");
  ExpectFailure(2, {"histogram", "numbers"}, "--buckets");
  ExpectFailure(2, {"histogram", "numbers", "--buckets", "0"}, "--buckets");
  ExpectFailure(2, {"watch", "numbers"}, "--quantile");
  ExpectFailure(2, {"watch", "numbers", "--quantile", "0.5", "--every", "soon"}, "soon");
  ExpectFailure(2, {"create", "x", "--type", "float16"}, "float16");
  ExpectFailure(2, {"quantile", "numbers", "0.5", "--last", "none"}, "--last");
  ExpectFailure(2, {"quantile", "numbers", "0.5", "--nonsense"}, "--nonsense");
}

TEST_F(CommandTest, ServerFromTheEnvironmentAndNobodyThere) {
  const Completed run =
      RunProgram({.program = TIDEMARK_PROGRAM,
                  .arguments = {"quantile", "numbers", "0.5", "--json"},
                  .environment = {{"TIDEMARK_SERVER", daemon_->address("grpc")}}});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["n"], 1000);
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  const Completed alone =
      RunProgram({.program = TIDEMARK_PROGRAM, .arguments = {"--server", nobody, "streams"}});
  EXPECT_EQ(alone.status, 1);
  EXPECT_NE(alone.err.find(nobody), std::string::npos) << alone.err;
  EXPECT_EQ(std::count(alone.err.begin(), alone.err.end(), '\n'), 1) << alone.err;
}

// Whatever is asked, the answer says what it does not cover.
TEST_F(CommandTest, EveryAnswerSaysWhatWasRefused) {
  Ask({"create", "partial", "--sums", "--last", "100", "--type", "float32"});
  Ask({"push", "partial"}, "1\nnan\n2\n-inf\n3\ninf\n");
  SendUdp(daemon_->port("statsd"), "partial:1e300|ms");  // no float32
  const auto dropped = [&] { return daemon_->Metric("tidemark_ingest_dropped_total"); };
  LoseDatagrams(*daemon_);
  EXPECT_TRUE(WaitUntil([&] {
    return dropped() > 0 &&
           daemon_->Metric(R"(tidemark_ingest_refused_total{reason="bad_value"})") == 1;
  }));
  for (const std::vector<std::string>& question :
       std::vector<std::vector<std::string>>{{"quantile", "partial", "0.5"},
                                             {"quantile", "partial", "0.5", "--last", "2"},
                                             {"rank", "partial", "2"},
                                             {"histogram", "partial", "--buckets", "2"},
                                             {"top", "partial", "--support", "0.1"},
                                             {"top", "partial", "--support", "0.1", "--last", "2"},
                                             {"count", "partial", "2"},
                                             {"sum", "partial", "--at-most", "2"},
                                             {"spread", "partial"}}) {
    const Json answer = Ask(question);
    EXPECT_EQ(answer["refused"], 3) << question[0] << ": " << answer;
    EXPECT_EQ(answer["refused_whole"], 1) << question[0] << ": " << answer;
    EXPECT_GT(answer.value("dropped_datagrams", 0), 0) << question[0] << ": " << answer;
    const std::string heading = Tidemark(question).out;
    EXPECT_NE(heading.find(", 3 more refused, 1 refused in batches, datagrams dropped unread: "),
              std::string::npos)
        << heading;
  }
  Ask({"create", "whole", "--type", "float32"});
  Ask({"push", "whole"}, "1\n2\n");
  const Json compared = Ask({"compare", "partial", "whole"});
  EXPECT_EQ(compared["refused_a"], 3) << compared;
  EXPECT_FALSE(compared.contains("refused_b")) << compared;
  EXPECT_EQ(compared["refused_whole_a"], 1) << compared;
  EXPECT_FALSE(compared.contains("refused_whole_b")) << compared;
  EXPECT_GT(compared.value("dropped_datagrams_b", 0), 0) << compared;
  const std::string text = Tidemark({"compare", "partial", "whole"}).out;
  EXPECT_NE(text.find("refused in batches"), std::string::npos) << text;
  EXPECT_NE(text.find("datagrams dropped unread"), std::string::npos) << text;
  const Json described = Ask({"describe", "partial"});
  EXPECT_EQ(described["refused_whole"], 1) << described;
  EXPECT_GT(described.value("dropped_datagrams", 0), 0) << described;
}

TEST_F(CommandTest, Push) {
  const Json pushed = Ask({"push", "input"}, "1\n-2.5\n+3e2\nnan\n-inf\n");
  EXPECT_EQ(Fields(pushed), (Names{"stream", "type", "accepted", "refused", "bad", "seconds",
                                   "values_per_second"}));
  EXPECT_EQ(pushed["type"], "float64");
  EXPECT_EQ(pushed["accepted"], 4);
  EXPECT_EQ(pushed["refused"], 1);
  EXPECT_EQ(Ask({"push", "input", "-"}, "7\n")["accepted"], 1);
  EXPECT_EQ(Ask({"quantile", "input", "0", "1"})["answers"][0]["value"], "-inf");

  const TemporaryFolder folder;
  const std::string csv = folder.Write("a.csv", "time,value\n1,-10\n2,\"20\"\n");
  EXPECT_EQ(Ask({"push", "csv", csv, "--column", "value", "--type", "int64", "--repeat",
                 "3"})["accepted"],
            6);
  EXPECT_EQ(Ask({"count", "csv", "-10", "20"})["items"][0]["count_low"], 3);
  EXPECT_EQ(Ask({"push", "addresses", "--type", "ipv4"}, "10.0.0.1\n10.0.0.1\n")["accepted"], 2);
  EXPECT_EQ(Ask({"top", "addresses", "--support", "1"})["items"][0]["value"], "10.0.0.1");

  std::string raw(24, '\0');
  const double numbers[] = {1.5, -2.5, 1e300};
  std::memcpy(raw.data(), numbers, raw.size());
  const std::string path = folder.Write("raw", raw);
  EXPECT_EQ(Ask({"push", "raw", path, "--raw"})["accepted"], 3);
  EXPECT_EQ(Ask({"quantile", "raw", "1"})["answers"][0]["value"], 1e300);

  const Completed text = Tidemark({"push", "input"}, "1\n2\n");
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(text.out.starts_with("input: 2 values taken in")) << text.out;
  EXPECT_EQ(text.err, "");
  ExpectFailure(1, {"push", "input"}, "3", "1\n2\nthree\n4\n");  // names the line
  ExpectFailure(1, {"push", "input", "/nonexistent"}, "/nonexistent");
  ExpectFailure(1, {"push", "csv", csv, "--column", "nothing"}, "nothing");
  ExpectFailure(1, {"push", ""}, "name", "1\n");
}

TEST_F(CommandTest, WatchPrintsUntilItIsStopped) {
  for (const std::vector<std::string>& query :
       std::vector<std::vector<std::string>>{{"--quantile", "0.5", "0.99"}, {"--top", "0.5"}}) {
    std::vector<std::string> arguments = {
        "--server", daemon_->address("grpc"), "watch", "peers", "--every", "20ms", "--json"};
    arguments.insert(arguments.end(), query.begin(), query.end());
    Process watch({.program = TIDEMARK_PROGRAM, .arguments = arguments});
    const auto lines = [&] {
      const std::string out = watch.out();
      return std::count(out.begin(), out.end(), '\n');
    };
    EXPECT_TRUE(WaitUntil([&] { return lines() >= 3; })) << watch.err();
    watch.Signal(SIGINT);
    EXPECT_EQ(watch.Wait(), 0) << watch.err();
    EXPECT_TRUE(watch.NothingLeft());
    std::istringstream out(watch.out());
    std::int64_t last_time = 0;
    for (std::string line; std::getline(out, line);) {
      const Json answer = Json::parse(line);
      EXPECT_EQ(answer["n"], 100);
      EXPECT_EQ(answer["stream"], "peers");
      EXPECT_EQ(answer["skipped"], 0);
      EXPECT_GT(answer["time_us"], last_time);
      last_time = answer["time_us"];
    }
  }
  EXPECT_TRUE(WaitUntil([] { return daemon_->Metric("tidemark_subscribers") == 0; }));
}

TEST_F(CommandTest, WatchEndsWithItsStream) {
  daemon_->client().CreateStream("fleeting");
  Process watch({.program = TIDEMARK_PROGRAM,
                 .arguments = {"--server", daemon_->address("grpc"), "watch", "fleeting",
                               "--quantile", "0.5", "--every", "20ms"}});
  EXPECT_TRUE(WaitUntil([&] { return !watch.out().empty(); }));
  daemon_->client().DeleteStream("fleeting");
  EXPECT_EQ(watch.Wait(), 1);
  EXPECT_NE(watch.err().find("NOT_FOUND"), std::string::npos) << watch.err();
}

// What the command does not say is the daemon's default.
TEST(CommandDefaults, ABareCreateTakesWhatTheDaemonIsConfiguredFor) {
  const TestDaemon daemon({"--sums"});
  const auto create = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "create");
    arguments.emplace_back("--json");
    const Completed run = RunTidemark(daemon, std::move(arguments), "");
    EXPECT_EQ(run.status, 0) << run.err;
    return run.status == 0 ? Json::parse(run.out) : Json();
  };
  EXPECT_TRUE(create({"bare"}).contains("sums"));
  EXPECT_TRUE(create({"typed", "--type", "uint32"}).contains("sums"));
  EXPECT_TRUE(create({"with", "--sums"}).contains("sums"));
  EXPECT_FALSE(create({"without", "--no-sums"}).contains("sums"));
  EXPECT_FALSE(create({"words", "--type", "string"}).contains("sums"));
}

}  // namespace
}  // namespace tidemark::test
