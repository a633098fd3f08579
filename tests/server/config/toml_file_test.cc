// The TOML file: values, positions in messages, round trip, and the example in deploy/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "server/config/config.h"
#include "server/config/settings.h"

namespace tidemark::server {
namespace {

using ::testing::HasSubstr;

std::string Fault(const std::string& text) {
  Config config;
  const absl::Status status = ApplyToml(text, "t.toml", config);
  EXPECT_EQ(config, Config()) << "a refused file has changed the configuration";
  return std::string(status.message());
}

TEST(TomlFile, EmptyFileKeepsTheDefaults) {
  Config config;
  ASSERT_TRUE(ApplyToml("", "t.toml", config).ok());
  EXPECT_EQ(config, Config());
}

TEST(TomlFile, SetsEachKindOfValue) {
  Config config;
  const absl::Status status = ApplyToml(R"(
[listen]
grpc = "[::1]:9"
statsd = "off"
[sort]
allow_software_gl = true
workers = 3
[streams]
quantile_epsilon = 0.05
[log]
level = "debug"
)",
                                        "t.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.listen.grpc, (HostPort{"::1", 9}));
  EXPECT_FALSE(config.listen.statsd.has_value());
  EXPECT_TRUE(config.sort.allow_software_gl);
  EXPECT_EQ(config.sort.workers, 3u);
  EXPECT_EQ(config.streams.quantile_epsilon, 0.05);
  EXPECT_EQ(config.log.level, "debug");
  EXPECT_EQ(config.listen.tcp, Config().listen.tcp) << "what is not named keeps its value";
}

TEST(TomlFile, FaultsNameTheirPlaceAndWhatWasExpected) {
  const struct {
    const char* text;
    const char* fault;
  } cases[] = {
      {"[listen]\ngrcp = 'x:1'",
       "t.toml:2:1: unknown key \"listen.grcp\" (did you mean \"listen.grpc\"?)"},
      {"\n  grpc = 'x:1'", "t.toml:2:3: unknown key \"grpc\" (did you mean \"listen.grpc\"?)"},
      {"[limit]", "t.toml:1:2: unknown table \"limit\" (did you mean \"limits\"?)"},
      {"[elsewhere]\na = 1", "t.toml:1:2: unknown table \"elsewhere\""},
      {"[log]\nzzzzzzzz = 1", "t.toml:2:1: unknown key \"log.zzzzzzzz\""},
      {"listen = 3", "t.toml:1:1: \"listen\" is a table: expected [listen]"},
      {"[[listen]]\ngrpc='a:1'", "\"listen\" is a table: expected [listen]"},
      {"[listen]\ngrpc = 7070",
       "t.toml:2:8: listen.grpc: expected \"HOST:PORT\" or \"off\", not 7070"},
      {"[listen]\ngrpc = 'x'", "listen.grpc: expected HOST:PORT, not \"x\": there is no port"},
      {"[limits]\nmax_streams = 0", "expected a whole number from 1 to 10000000, not 0"},
      {"[ingest]\nmax_pending_keys = 1",
       "expected 0 or a whole number from 1024 to 1073741824, not 1"},
      {"[limits]\nmax_streams = -1", "expected a whole number from 1 to 10000000, not -1"},
      {"[limits]\nmax_streams = 10000001", "not 10000001"},
      {"[limits]\nmax_streams = 1.5", "expected a whole number from 1 to 10000000, not 1.5"},
      {"[limits]\nmax_streams = '5'", "expected a whole number from 1 to 10000000, not \"5\""},
      {"[window]\nmin_capacity = 300", "expected a power of two from 16 to 1048576, not 300"},
      {"[streams]\nquantile_epsilon = 0.6", "expected a number from 1e-06 to 0.5, not 0.6"},
      {"[streams]\nquantile_epsilon = nan", "expected a number from 1e-06 to 0.5, not nan"},
      {"[streams]\nquantile_epsilon = inf", "expected a number from 1e-06 to 0.5, not inf"},
      {"[sort]\nsorter = 'gl-bitonc'",
       "expected one of auto, cpu, gl-compute, gl-bitonic, gl-abisort, gl-pbsn, not \"gl-bitonc\" "
       "(did you mean \"gl-bitonic\"?)"},
      {"[sort]\nallow_software_gl = 1", "expected true or false, not 1"},
      {"[sort]\nworkers = [1]", "expected a single value, not an array"},
      {"[sort]\nworkers = {a = 1}", "expected a single value, not a table"},
      {"[sort]\nworkers = 2020-01-01", "expected a single value, not a date or time"},
      {"[daemon]\ndata_dir = \"a\\u0000b\"", "expected text without NUL"},
      {"[listen\n", "t.toml:1:8: "},
      {"[log]\nlevel = 'info'\nlevel = 'warn'", "t.toml:3:"},
      {"[log]\nlevel = \"\xff\"", "t.toml:2:"},
  };
  for (const auto& [text, fault] : cases) {
    const std::string message = Fault(text);
    EXPECT_THAT(message, HasSubstr(fault)) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos) << "more than one line: " << message;
  }
}

TEST(TomlFile, ReportsEveryFaultFromTheTop) {
  EXPECT_EQ(Fault("[window]\nmin_capacity = 3\n[listen]\ngrcp = 1\n[log]\nlevel = 1\n"),
            "t.toml:2:16: window.min_capacity: expected a power of two from 16 to 1048576, not 3\n"
            "t.toml:4:1: unknown key \"listen.grcp\" (did you mean \"listen.grpc\"?)\n"
            "t.toml:6:9: log.level: expected text, not 1");
}

TEST(TomlFile, OutsideTextStaysOnOneLine) {
  const std::string message = Fault("[listen]\ngrpc = \"a\\nb\\u001b[31m\"\n\"x\\ny\" = 1");
  EXPECT_THAT(message, HasSubstr(R"(\n)"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

// Property: any configuration in range is printed and read back to the same value.
TEST(TomlFile, PrintedConfigurationReadsBack) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Config config;
    for (const Setting& setting : Settings()) {
      std::uniform_real_distribution<double> share(0, 1);
      const SettingField field = setting.field(config);
      if (auto* const* number = std::get_if<double*>(&field)) {
        **number = setting.min + share(random) * (setting.max - setting.min);
      } else if (auto* const* whole = std::get_if<std::uint64_t*>(&field)) {
        const double value = setting.min + share(random) * (setting.max - setting.min);
        **whole = static_cast<std::uint64_t>(value);
        if (setting.power_of_two) **whole = std::uint64_t{1} << (4 + random() % 17);
      } else if (auto* const* flag = std::get_if<bool*>(&field)) {
        **flag = random() % 2 == 0;
      } else if (auto* const* address = std::get_if<std::optional<HostPort>*>(&field)) {
        if (random() % 3 == 0) (*address)->reset();
      } else if (auto* const* text = std::get_if<std::string*>(&field);
                 text != nullptr && setting.choices.empty()) {
        (*text)->clear();
        for (std::size_t i = 0; i < random() % 20; ++i)
          **text += static_cast<char>(1 + random() % 127);
      }
    }
    Config back;
    const std::string printed = ToToml(config);
    const absl::Status status = ApplyToml(printed, "t.toml", back);
    ASSERT_TRUE(status.ok()) << status << "\n" << printed;
    ASSERT_EQ(back, config) << printed;
  }
}

// The example is what people copy: it must name every setting and state its true default.
TEST(TomlFile, ExampleNamesEverySettingWithItsDefault) {
  std::ifstream file(TIDEMARK_EXAMPLE_CONFIG);
  ASSERT_TRUE(file.is_open()) << TIDEMARK_EXAMPLE_CONFIG;
  std::stringstream text;
  text << file.rdbuf();

  Config config;
  const absl::Status status = ApplyToml(text.str(), "tidemark.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(ToToml(config), ToToml(Config()));

  // Reading proves no default for a setting that is missing: look for each line.
  std::set<std::string> stated;
  std::string line;
  std::string table;
  std::istringstream lines(text.str());
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) table = line.substr(1, line.find(']') - 1);
    if (const std::size_t equals = line.find(" = "); !line.starts_with('#')) {
      if (equals != std::string::npos) stated.insert(table + "." + line.substr(0, equals));
    }
  }
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(stated.contains(setting.Name())) << setting.Name() << " is not in the example";
  }
}

TEST(Settings, NamesAreUnique) {
  std::set<std::string> names;
  std::set<std::string> environment;
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.Name()).second) << setting.Name();
    EXPECT_TRUE(environment.insert(setting.EnvName()).second) << setting.EnvName();
  }
}

}  // namespace
}  // namespace tidemark::server
