// A daemon's second start on the same machine knows the sorters' rates; what spoils that never
// spoils the start.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/test_daemon.h"

namespace tidemark::test {
namespace {

struct Seen {
  client::SorterInfo sorter;
  std::vector<std::string> warnings;  // reasons and errors in the log
};

Seen Start(std::vector<std::string> flags) {
  TestDaemon daemon(flags);
  Seen seen{daemon.client().Info().sorter, {}};
  for (const auto& line : daemon.Log()) {
    if (line.at("message") == "sorters are measured anew") {
      seen.warnings.push_back(line.at("reason").get<std::string>());
    } else if (line.at("message") == "the next start will measure the sorters again") {
      seen.warnings.push_back(line.at("error").get<std::string>());
    }
  }
  return seen;
}

TEST(SorterRates, TheSecondStartSaysCached) {
  const TemporaryFolder folder;
  const std::string file = folder / "sorter_rates.json";
  const std::vector<std::string> flags = {"--data-dir", folder.path()};
  const Seen first = Start(flags);
  EXPECT_FALSE(first.sorter.cached);
  EXPECT_TRUE(first.warnings.empty()) << first.warnings.front();
  EXPECT_LT(std::chrono::system_clock::now() - first.sorter.measured_at, std::chrono::minutes(5));
  ASSERT_TRUE(std::filesystem::exists(file));

  const Seen second = Start(flags);
  EXPECT_TRUE(second.sorter.cached);
  EXPECT_EQ(second.sorter.measured_at, first.sorter.measured_at);
  EXPECT_EQ(second.sorter.reason, first.sorter.reason);
  EXPECT_EQ(second.sorter.active, first.sorter.active);
  EXPECT_TRUE(second.warnings.empty());

  std::vector<std::string> again = flags;
  again.push_back("--measure-again");
  const Seen third = Start(again);
  EXPECT_FALSE(third.sorter.cached);
  EXPECT_GT(third.sorter.measured_at, first.sorter.measured_at);
  EXPECT_EQ(Start(flags).sorter.measured_at, third.sorter.measured_at) << "and kept";

  // Other settings are another measurement.
  std::vector<std::string> longer = flags;
  longer.insert(longer.end(), {"--measure-budget-ms", "11"});
  const Seen fourth = Start(longer);
  EXPECT_FALSE(fourth.sorter.cached);
  ASSERT_EQ(fourth.warnings.size(), 1u);
  EXPECT_EQ(fourth.warnings[0], "milliseconds for measuring then: 10, now: 11");
}

TEST(SorterRates, ADamagedFileIsOneLineInTheLog) {
  const TemporaryFolder folder;
  const std::vector<std::string> flags = {"--data-dir", folder.path()};
  const std::string file = folder.Write("sorter_rates.json", "{\"format\": 1,");
  const Seen damaged = Start(flags);
  EXPECT_FALSE(damaged.sorter.cached);
  ASSERT_EQ(damaged.warnings.size(), 1u);
  EXPECT_EQ(damaged.warnings[0], file + ": it is cut off, or never was a file of rates");
  EXPECT_TRUE(Start(flags).sorter.cached) << "it was replaced";

  // A folder in its place can neither be read nor be replaced.
  std::filesystem::remove(file);
  std::filesystem::create_directories(file + "/full");
  const Seen blocked = Start(flags);
  EXPECT_FALSE(blocked.sorter.cached);
  EXPECT_EQ(blocked.warnings.size(), 2u);
}

TEST(SorterRates, InfoSaysIt) {
  const TemporaryFolder folder;
  for (const std::string expected : {"rates     measured 20", "rates     cached, measured 20"}) {
    TestDaemon daemon({"--data-dir", folder.path()});
    const Completed info = RunProgram({.program = TIDEMARK_PROGRAM,
                                       .arguments = {"--server", daemon.address("grpc"), "info"},
                                       .environment = {}});
    EXPECT_EQ(info.status, 0) << info.err;
    EXPECT_NE(info.out.find(expected), std::string::npos) << info.out;
  }
}

TEST(SorterRates, WithoutADataFolderNothingIsKept) {
  EXPECT_FALSE(Start({}).sorter.cached);
  EXPECT_FALSE(Start({}).sorter.cached);
}

}  // namespace
}  // namespace tidemark::test
