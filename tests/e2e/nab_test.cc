// Eight real series through the real daemon and the real command: `push --column value`, then
// `quantile`, `rank`, `top` and `count` as JSON, against the whole truth.
//
// The series are those of the Numenta Anomaly Benchmark and no part of this project. They are
// looked for in $TIDEMARK_NAB_DIR, else beside the source folder; without them the test is skipped.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/oracle.h"
#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

using client::Value;
using nlohmann::json;

constexpr const char* kSeries[] = {"machine_temperature_system_failure",
                                   "ambient_temperature_system_failure",
                                   "cpu_utilization_asg_misconfiguration",
                                   "ec2_network_in_257a54",
                                   "nyc_taxi",
                                   "rogue_agent_key_hold",
                                   "Twitter_volume_AAPL",
                                   "TravelTime_387"};

std::string NabFolder() {
  const char* const set = std::getenv("TIDEMARK_NAB_DIR");
  return set != nullptr ? set : TIDEMARK_SOURCE_FOLDER "/../shared/data/nab";
}

std::vector<double> ReadColumn(const std::string& path) {
  std::vector<double> values;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::size_t comma = line.find(',');
    if (comma != std::string::npos)
      values.push_back(std::strtod(line.c_str() + comma + 1, nullptr));
  }
  return values;
}

class NabTest : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { daemon_ = std::make_unique<TestDaemon>(); }
  static void TearDownTestSuite() { daemon_.reset(); }

  // The JSON that the command prints; the command must succeed.
  static json Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    const Completed run = RunTidemark(*daemon_, arguments);
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out, nullptr, false);
  }
  static std::unique_ptr<TestDaemon> daemon_;
};
std::unique_ptr<TestDaemon> NabTest::daemon_;

TEST_P(NabTest, IsAnsweredWithinItsCertificates) {
  const std::string name = GetParam();
  const std::string path = NabFolder() + "/" + name + ".csv";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "no " << path << ": set TIDEMARK_NAB_DIR to the folder of the series";
  }
  const std::vector<double> values = ReadColumn(path);
  ASSERT_GT(values.size(), 1000u);
  const Oracle<double> oracle(values);
  const double epsilon = 0.01;
  Ask({"create", name, "--type", "float64", "--epsilon", "0.01", "--frequency-epsilon", "0.001"});
  const json pushed = Ask({"push", name, path, "--column", "value"});
  EXPECT_EQ(pushed["accepted"], values.size());
  EXPECT_EQ(pushed["refused"], 0);

  const json quantiles = Ask({"quantile", name, "0", "0.01", "0.25", "0.5", "0.9", "0.99", "1"});
  client::QuantilesAnswer q;
  q.n = quantiles["n"];
  q.epsilon = quantiles["epsilon"];
  for (const json& a : quantiles["answers"]) {
    q.answers.push_back({a["phi"], Value{a["value"].get<double>()}, a["rank_low"], a["rank_high"]});
  }
  oracle.Check(q, {0, 0.01, 0.25, 0.5, 0.9, 0.99, 1}, epsilon);

  const double median = oracle.sorted()[oracle.n() / 2];
  const std::vector<Value> asked = {Value{median}, Value{oracle.sorted().front() - 1},
                                    Value{oracle.sorted().back()}};
  std::vector<std::string> rank = {"rank", name};
  std::vector<std::string> count = {"count", name};
  for (const Value& value : asked) {
    rank.push_back(client::FormatValue(value));
    count.push_back(client::FormatValue(value));
  }
  const json ranks = Ask(rank);
  client::RanksAnswer r;
  r.n = ranks["n"];
  for (const json& a : ranks["answers"]) {
    r.answers.push_back({Value{a["value"].get<double>()}, a["rank_low"], a["rank_high"]});
  }
  oracle.Check(r, asked, epsilon);

  const auto items_of = [](const json& list) {
    std::vector<client::ItemCount> items;
    for (const json& i : list) {
      items.push_back({Value{i["value"].get<double>()}, i["count_low"], i["count_high"]});
    }
    return items;
  };
  const json top = Ask({"top", name, "--support", "0.005"});
  client::HeavyHittersAnswer t;
  t.n = top["n"];
  t.epsilon = top["epsilon"];
  t.support = top["support"];
  t.items = items_of(top["items"]);
  oracle.Check(t, 0.005, 0.001);

  const json counts = Ask(count);
  client::CountsAnswer c;
  c.n = counts["n"];
  c.items = items_of(counts["items"]);
  oracle.Check(c, asked, 0.001);
}

INSTANTIATE_TEST_SUITE_P(Series, NabTest, testing::ValuesIn(kSeries),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tidemark::test
