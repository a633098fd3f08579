// Hierarchical heavy hitters of strings, and of addresses over sliding windows, through the real
// daemon, the client and the command, against the whole truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using client::Code;
using client::HierarchicalHeavyHittersAnswer;
using client::Ipv4;
using client::StreamConfig;
using client::ValueType;

class HierarchyTest : public testing::Test {
 protected:
  client::Client& client() { return daemon_.client(); }
  void Push(const std::string& stream, const auto& values) {
    client::Pusher pusher = client().Push(stream);
    pusher.Write(values);
    pusher.Finish();
  }
  TestDaemon daemon_;
  std::mt19937_64 random_{20'261'121};
};

/// Paths of up to five components; what is asked for often lies deep, or all over one folder.
std::vector<std::string> MakePaths(std::mt19937_64& random, std::size_t count) {
  std::vector<std::string> paths;
  const auto number = [&](std::uint64_t below) { return std::to_string(random() % below); };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random() % 100;
    if (draw < 10) {
      paths.push_back("/api/v2/orders");
    } else if (draw < 40) {
      paths.push_back("/static/img/" + number(100'000));
    } else if (draw < 60) {
      paths.push_back("/api/v" + number(3) + "/users/" + number(1000) + "/posts/" + number(1000));
    } else {
      paths.push_back("/" + number(5000) + "/" + number(10));
    }
  }
  return paths;
}

/// What stands above a path and has `components` of its components; empty if it has fewer.
std::string Above(std::string_view path, std::uint32_t components) {
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < components; ++i) {
    if (at == std::string_view::npos) return {};
    at = path.find('/', at + 1);
  }
  return std::string(path.substr(0, at));
}

/// Counts lie in their bounds, discounted ones too, and nothing is missed.
void CheckPaths(const HierarchicalHeavyHittersAnswer& answer, const std::vector<std::string>& paths,
                std::uint32_t depth) {
  ASSERT_EQ(answer.n, paths.size());
  std::set<std::string> reported;
  for (const auto& prefix : answer.prefixes) {
    ASSERT_TRUE(prefix.text);
    reported.insert(*prefix.text);
  }
  std::map<std::string, std::uint64_t> counts, discounted;
  for (const std::string& path : paths) {
    bool taken = false;
    for (std::uint32_t length = depth; length > 0; --length) {
      const std::string above = Above(path, length);
      if (above.empty()) continue;
      ++counts[above];
      if (!taken) ++discounted[above];
      taken |= reported.contains(above);
    }
    ++counts[""];
    if (!taken) ++discounted[""];
  }
  const auto width = static_cast<std::uint64_t>(answer.epsilon * static_cast<double>(answer.n));
  for (const auto& prefix : answer.prefixes) {
    SCOPED_TRACE(*prefix.text);
    EXPECT_EQ(prefix.text->empty(), prefix.length == 0);
    EXPECT_LE(prefix.count_low, counts[*prefix.text]);
    EXPECT_GE(prefix.count_high, counts[*prefix.text]);
    EXPECT_LE(prefix.count_high - prefix.count_low, width);
    EXPECT_LE(prefix.discounted_low, discounted[*prefix.text]);
    EXPECT_GE(prefix.discounted_high, discounted[*prefix.text]);
  }
  for (const auto& [prefix, count] : discounted) {
    if (static_cast<double>(count) < answer.support * static_cast<double>(answer.n)) continue;
    EXPECT_TRUE(reported.contains(prefix)) << prefix << " was missed: " << count;
  }
}

TEST_F(HierarchyTest, PathsAreHeavyWithoutTheHeavyOnesBelow) {
  StreamConfig config;
  config.type = ValueType::kString;
  config.frequency_epsilon = 0.001;
  config.separator = "/";
  config.depth = 4;
  client().CreateStream("paths", config);
  EXPECT_EQ(client().DescribeStream("paths").config.separator, "/");
  EXPECT_EQ(client().DescribeStream("paths").config.depth, 4u);
  EXPECT_TRUE(client().HierarchicalHeavyHitters("paths", 0.05).prefixes.empty());
  const auto paths = MakePaths(random_, 200'000);
  std::vector<std::string> sent;
  for (const std::size_t part : {50u, 100'000u, 99'950u}) {  // exact, lossy, an open window
    const std::vector<std::string> next(
        paths.begin() + static_cast<std::ptrdiff_t>(sent.size()),
        paths.begin() + static_cast<std::ptrdiff_t>(sent.size() + part));
    Push("paths", next);
    sent.insert(sent.end(), next.begin(), next.end());
    for (const double support : {0.02, 0.08, 0.5}) {
      SCOPED_TRACE(testing::Message() << sent.size() << " values, support " << support);
      ASSERT_NO_FATAL_FAILURE(
          CheckPaths(client().HierarchicalHeavyHitters("paths", support), sent, 4));
    }
  }
  const auto answer = client().HierarchicalHeavyHitters("paths", 0.08);
  std::set<std::string> found;
  for (const auto& prefix : answer.prefixes) found.insert(*prefix.text);
  EXPECT_TRUE(found.contains("/api/v2/orders"));
  EXPECT_TRUE(found.contains("/static/img")) << "many light ones below it";
  EXPECT_FALSE(found.contains("/static")) << "all of it is in /static/img";
  EXPECT_TRUE(found.contains("")) << "the rest";
  EXPECT_EQ(CodeOf([&] { client().HierarchicalHeavyHitters("paths", 0.0001); }),
            Code::kInvalidArgument);
  client::Scope scope;
  scope.last_values = 10;
  EXPECT_EQ(CodeOf([&] { client().HierarchicalHeavyHitters("paths", 0.1, scope); }),
            Code::kFailedPrecondition)
      << "a stream without sliding windows";

  auto watch = client().WatchHierarchicalHeavyHitters("paths", 0.08);
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(std::get<HierarchicalHeavyHittersAnswer>(pushed->answer).prefixes.size(),
            answer.prefixes.size());

  // A union of two halves, as a file that comes back.
  client().CreateStream("half", config);
  Push("half", paths);
  client().MergeStreams("both", {"paths", "half"});
  client().ImportStream("again", {client().ExportStream("both")});
  std::vector<std::string> twice = paths;
  twice.insert(twice.end(), paths.begin(), paths.end());
  ASSERT_NO_FATAL_FAILURE(CheckPaths(client().HierarchicalHeavyHitters("again", 0.05), twice, 4));
  Push("again", paths);
  twice.insert(twice.end(), paths.begin(), paths.end());
  ASSERT_NO_FATAL_FAILURE(CheckPaths(client().HierarchicalHeavyHitters("again", 0.05), twice, 4));

  // What was forgotten makes room: no more than a few windows' items are held.
  EXPECT_LT(client().DescribeStream("paths").dictionary_bytes, 60'000'000u);
}

/// The last `width` of what was sent.
std::vector<std::string> Last(const std::vector<std::string>& sent, std::size_t width) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(width, sent.size()));
  return {sent.end() - count, sent.end()};
}

TEST_F(HierarchyTest, PathsOfTheLastValues) {
  StreamConfig config;
  config.type = ValueType::kString;
  config.separator = "/";
  config.depth = 4;
  // So wide an epsilon that windows begin inside blocks whose values are no longer there as they
  // came.
  config.sliding = {.max_values = 50'000, .max_time = std::chrono::hours(1), .epsilon = 0.04};
  client().CreateStream("paths", config);
  client::Scope scope;
  scope.last_values = 10;
  EXPECT_EQ(client().HierarchicalHeavyHitters("paths", 0.1, scope).n, 0u);
  // First one folder is heavy, then another one; between them, separators at the ends and several
  // in a row, and nothing at all.
  std::vector<std::string> sent;
  const auto send = [&](std::size_t count, const std::string& folder) {
    std::vector<std::string> next = MakePaths(random_, count);
    for (std::size_t i = 0; i < count; i += 3) next[i] = folder + std::to_string(random_());
    constexpr std::array kOdd{"", "/", "//", "/a/", "a//b", "a/", "///a", "a/b/c/d/e/f/g"};
    for (std::size_t i = 1; i < count; i += 30) next[i] = kOdd[random_() % kOdd.size()];
    Push("paths", next);
    sent.insert(sent.end(), next.begin(), next.end());
  };
  send(60'000, "/old/");
  for (int part = 0; part < 5; ++part) {
    send(part < 4 ? 12'000 : 37, "/new/below/");
    for (const std::size_t width : {1, 2, 63, 64, 65, 400, 1000, 20'000, 35'000, 49'999, 50'000}) {
      scope.last_values = width;
      for (const double support : {0.06, 0.2}) {
        SCOPED_TRACE(testing::Message()
                     << "last " << width << " of " << sent.size() << ", support " << support);
        const auto answer = client().HierarchicalHeavyHitters("paths", support, scope);
        EXPECT_EQ(answer.epsilon, 0.04);
        ASSERT_NO_FATAL_FAILURE(CheckPaths(answer, Last(sent, width), 4));
      }
    }
  }
  scope.last_values = 35'000;
  std::set<std::string> found;
  for (const auto& prefix : client().HierarchicalHeavyHitters("paths", 0.1, scope).prefixes) {
    found.insert(*prefix.text);
  }
  EXPECT_TRUE(found.contains("/new/below"));
  EXPECT_FALSE(found.contains("/new")) << "all of it is below";
  EXPECT_FALSE(found.contains("/old")) << "it went before";
  client::Scope hour;
  hour.last_time = std::chrono::hours(1);
  ASSERT_NO_FATAL_FAILURE(
      CheckPaths(client().HierarchicalHeavyHitters("paths", 0.06, hour), sent, 4));

  client::WatchOptions options;
  options.scope.last_values = 1'000;
  auto watch = client().WatchHierarchicalHeavyHitters("paths", 0.1, options);
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  ASSERT_NO_FATAL_FAILURE(
      CheckPaths(std::get<HierarchicalHeavyHittersAnswer>(pushed->answer), Last(sent, 1'000), 4));

  const Completed done = RunTidemark(
      daemon_, {"top", "paths", "--support", "0.1", "--hierarchical", "--last", "1000"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("/new/below"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("n 1000"), std::string::npos) << done.out;
  for (const auto& [wrong, said] : {std::pair{"50001", "50000"}, std::pair{"0", "--last"}}) {
    const Completed refused = RunTidemark(
        daemon_, {"top", "paths", "--support", "0.1", "--hierarchical", "--last", wrong});
    EXPECT_NE(refused.status, 0);
    EXPECT_NE(refused.err.find(said), std::string::npos) << refused.err;
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  }
}

// What no window can name any more is forgotten: a stream of ever new texts goes on in a budget
// that holds a few windows of them.
TEST(HierarchyOfFewTexts, GoesOnInASmallBudget) {
  TestDaemon daemon({"--max-text-bytes", "12000000"});
  StreamConfig config;
  config.type = ValueType::kString;
  config.separator = ".";
  config.depth = 3;
  config.sliding = {.max_values = 20'000, .max_time = {}, .epsilon = 0.1};
  daemon.client().CreateStream("new", config);
  std::mt19937_64 random(6);
  std::vector<std::string> sent;
  client::Scope scope;
  scope.last_values = 20'000;
  for (int part = 0; part < 30; ++part) {
    std::vector<std::string> next;
    for (int i = 0; i < 5'000; ++i) {
      const std::string fresh = std::to_string(random());
      next.push_back(i % 4 == 0 ? "same.place." + fresh : fresh + "." + fresh + "." + fresh);
    }
    client::Pusher pusher = daemon.client().Push("new");
    pusher.Write(next);
    pusher.Finish();
    sent.insert(sent.end(), next.begin(), next.end());
    const auto answer = daemon.client().HierarchicalHeavyHitters("new", 0.15, scope);
    ASSERT_EQ(answer.n, std::min<std::size_t>(sent.size(), 20'000));
    std::set<std::string> found;
    for (const auto& prefix : answer.prefixes) found.insert(*prefix.text);
    EXPECT_EQ(found, (std::set<std::string>{"", "same.place"}));
  }
  EXPECT_LT(daemon.client().DescribeStream("new").dictionary_bytes, 12'000'000u);
}

TEST_F(HierarchyTest, TheCommandMakesAndAsks) {
  const auto run = [&](std::vector<std::string> arguments, const std::string& input = "") {
    const Completed done = RunTidemark(daemon_, std::move(arguments), input);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.out;
  };
  run({"create", "hosts", "--type", "string", "--separator", ".", "--depth", "3", "--root-last"});
  run({"push", "hosts"}, "www.example.com\nmail.example.com\napi.eu.example.com\nexample.org\n");
  const std::string text = run({"top", "hosts", "--support", "0.5", "--hierarchical"});
  EXPECT_NE(text.find("example.com"), std::string::npos) << text;
  EXPECT_NE(text.find("n 4"), std::string::npos) << text;
  const auto json =
      nlohmann::json::parse(run({"--json", "top", "hosts", "--support", "0.5", "--hierarchical"}));
  ASSERT_EQ(json["prefixes"].size(), 1u) << json;
  EXPECT_EQ(json["prefixes"][0]["prefix"], "example.com");
  EXPECT_EQ(json["prefixes"][0]["components"], 2);
  EXPECT_EQ(json["prefixes"][0]["count_low"], 3);
  const auto refused = [&](std::vector<std::string> arguments) {
    return RunTidemark(daemon_, std::move(arguments), "").status != 0;
  };
  EXPECT_TRUE(refused({"create", "a", "--type", "float64", "--separator", "."}));
  EXPECT_TRUE(refused({"create", "a", "--type", "string", "--separator", ".."}));
  EXPECT_TRUE(refused({"create", "a", "--type", "string", "--separator", " "}));
  EXPECT_TRUE(refused({"create", "a", "--type", "string", "--separator", ".", "--depth", "65"}));
  EXPECT_TRUE(refused({"create", "a", "--type", "string", "--depth", "3"}));
  EXPECT_TRUE(refused({"create", "a", "--type", "string", "--prefixes", "8,16"}));
}

TEST_F(HierarchyTest, AddressesOfTheLastValues) {
  StreamConfig config;
  config.type = ValueType::kIpv4;
  config.prefix_lengths = {8, 16, 24, 32};
  // So wide an epsilon that windows begin inside blocks whose values are no longer there as they
  // came.
  config.sliding = {.max_values = 50'000, .max_time = std::chrono::hours(1), .epsilon = 0.04};
  client().CreateStream("flows", config);
  // First one network is heavy, then another one.
  std::vector<Ipv4> flows;
  for (std::size_t i = 0; i < 120'000; ++i) {
    const auto noise = static_cast<std::uint32_t>(random_());
    const std::uint32_t network = i < 80'000 ? 0x0A010200U : 0xC0A80000U;
    flows.push_back(Ipv4{noise % 4 == 0 ? network | (noise >> 24) : noise});
  }
  Push("flows", flows);
  for (const std::uint64_t width : {1'000u, 20'000u, 35'000u, 50'000u}) {
    SCOPED_TRACE(width);
    client::Scope scope;
    scope.last_values = width;
    const auto answer = client().HierarchicalHeavyHitters("flows", 0.1, scope);
    EXPECT_EQ(answer.n, width);
    EXPECT_EQ(answer.epsilon, 0.04);
    std::set<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const auto& prefix : answer.prefixes) {
      found.insert({std::get<Ipv4>(prefix.address).address, prefix.length});
      const std::uint32_t mask = prefix.length == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix.length);
      const auto truth = static_cast<std::uint64_t>(std::count_if(
          flows.end() - static_cast<std::ptrdiff_t>(width), flows.end(),
          [&](Ipv4 a) { return (a.address & mask) == std::get<Ipv4>(prefix.address).address; }));
      EXPECT_LE(prefix.count_low, truth);
      EXPECT_GE(prefix.count_high, truth);
      EXPECT_LE(prefix.count_high - prefix.count_low, width / 25);
    }
    EXPECT_TRUE(found.contains({0xC0A80000U, 24}));
    EXPECT_FALSE(found.contains({0x0A010200U, 24})) << "it went before";
  }
  client::Scope hour;
  hour.last_time = std::chrono::hours(1);
  EXPECT_EQ(client().HierarchicalHeavyHitters("flows", 0.1, hour).n, flows.size());
  client::WatchOptions options;
  options.scope.last_values = 1'000;
  auto watch = client().WatchHierarchicalHeavyHitters("flows", 0.1, options);
  const auto pushed = watch.Next();
  ASSERT_TRUE(pushed);
  EXPECT_EQ(std::get<HierarchicalHeavyHittersAnswer>(pushed->answer).n, 1'000u);
  const Completed done = RunTidemark(
      daemon_, {"top", "flows", "--support", "0.1", "--hierarchical", "--last", "1000"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_NE(done.out.find("192.168.0.0/24"), std::string::npos) << done.out;
}

}  // namespace
}  // namespace tidemark::test
