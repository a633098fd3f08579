// Flags over environment over file; printing commands; faults of each source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "server/config/config.h"
#include "server/config/settings.h"

namespace tidemark::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Environment = std::map<std::string, std::string>;

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tidemark-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& text) const {
    const std::string path = folder_ / "tidemark.toml";
    std::ofstream(path) << text;
    return path;
  }

  static absl::StatusOr<ParsedArgs> Parse(std::vector<std::string> args,
                                          const Environment& environment = {}) {
    std::vector<const char*> argv = {"tidemarkd"};
    for (const std::string& arg : args) argv.push_back(arg.c_str());
    return ParseCommandLine(static_cast<int>(argv.size()), argv.data(), [&](const char* name) {
      const auto it = environment.find(name);
      return it == environment.end() ? nullptr : it->second.c_str();
    });
  }

  static std::string Fault(std::vector<std::string> args, const Environment& environment = {}) {
    const auto result = Parse(std::move(args), environment);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  }

  std::filesystem::path folder_;
};

TEST_F(CommandLine, NothingMeansTheDefaults) {
  const auto result = Parse({});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->action, ParsedArgs::Action::kRun);
  EXPECT_EQ(result->config, Config());
}

TEST_F(CommandLine, FlagWinsOverEnvironmentWinsOverFile) {
  const std::string path =
      File("[limits]\nmax_streams = 1\nmax_connections = 1\nmax_item_bytes = 1");
  const Environment environment = {{"TIDEMARK_MAX_STREAMS", "2"},
                                   {"TIDEMARK_MAX_CONNECTIONS", "2"}};
  const auto result = Parse({"--config", path, "--max-streams", "3"}, environment);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->config.limits.max_streams, 3u);
  EXPECT_EQ(result->config.limits.max_connections, 2u);
  EXPECT_EQ(result->config.limits.max_item_bytes, 1u);
}

TEST_F(CommandLine, FileIsFoundThroughTheEnvironment) {
  const auto result = Parse({}, {{"TIDEMARK_CONFIG", File("[log]\nlevel = 'warn'")}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->config.log.level, "warn");
}

TEST_F(CommandLine, EmptyEnvironmentVariableCountsAsNotSet) {
  const auto result = Parse({}, {{"TIDEMARK_GRPC", ""}, {"TIDEMARK_CONFIG", ""}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->config, Config());
}

TEST_F(CommandLine, EverySettingHasAFlagAndAVariable) {
  for (const Setting& setting : Settings()) {
    Config config;
    const SettingField field = setting.field(config);
    std::string value;
    const auto* const on = std::get_if<bool*>(&field);
    if (on != nullptr) {
      value = **on ? "false" : "true";
    } else if (std::holds_alternative<std::uint64_t*>(field)) {
      value = setting.power_of_two ? "1024" : "1025";
      if (setting.max < 1025) value = "77";
      if (setting.min > 1025) value = "5000";
      if (setting.min > 5000 || setting.key == "max_grpc_bytes") value = "5000000";
    } else if (std::holds_alternative<double*>(field)) {
      value = "0.125";
    } else if (std::holds_alternative<std::optional<HostPort>*>(field)) {
      value = "other:1";
    } else if (setting.key == "listeners") {
      value = "grpc";
    } else {
      value = setting.choices.empty()
                  ? folder_.string()
                  : std::string(setting.choices.substr(setting.choices.rfind(' ') + 1));
    }
    const std::string flag = "--" + std::string(setting.flag);
    std::vector<std::string> args{flag, value};
    if (on != nullptr) args = {value == "true" ? flag : flag + "=false"};
    std::vector<std::string> needed;  // by the setting, in any case
    if (setting.key == "max_grpc_bytes") needed = {"--max-batch-bytes", "4096"};
    if (setting.key == "durability") needed = {"--data-dir", folder_.string()};
    if (value == "other:1") needed = {"--allow-insecure"};
    if (setting.key == "cert_file") needed = {"--tls-key-file", "k"};
    if (setting.key == "key_file") needed = {"--tls-cert-file", "c"};
    if (setting.key == "client_ca_file" || setting.key == "require_client_cert") {
      needed = {"--tls-cert-file", "c", "--tls-key-file", "k"};
    }
    if (setting.key == "require_client_cert") {
      needed.insert(needed.end(), {"--tls-client-ca-file", "a"});
    }
    args.insert(args.end(), needed.begin(), needed.end());
    const auto by_flag = Parse(args);
    const auto by_variable = Parse(needed, {{setting.EnvName(), value}});
    ASSERT_TRUE(by_flag.ok()) << flag << " " << value << ": " << by_flag.status();
    ASSERT_TRUE(by_variable.ok()) << setting.EnvName() << ": " << by_variable.status();
    EXPECT_NE(by_flag->config, Config()) << flag << " has no effect";
    EXPECT_EQ(by_flag->config, by_variable->config) << flag;
  }
}

TEST_F(CommandLine, ListenersBeyondThisMachineNeedTlsAndRules) {
  EXPECT_EQ(
      Fault({"--tcp", "0.0.0.0:1", "--http", "[::]:2"}),
      "listen.tcp (0.0.0.0:1) has neither TLS nor rules and other machines reach it; expected "
      "both ([tls], [access]), an address such as 127.0.0.1, or listen.allow_insecure = true\n"
      "listen.http ([::]:2) has neither TLS nor rules and other machines reach it; expected "
      "both ([tls], [access]), an address such as 127.0.0.1, or listen.allow_insecure = true");
  const std::vector<std::string> tls = {"--tls-cert-file", "c", "--tls-key-file", "k"};
  std::vector<std::string> args = {"--grpc", "10.0.0.1:1"};
  args.insert(args.end(), tls.begin(), tls.end());
  EXPECT_THAT(Fault(args), HasSubstr("listen.grpc (10.0.0.1:1) has no rules"));
  args.insert(args.end(), {"--rules-file", "r"});
  EXPECT_TRUE(Parse(args).ok());
  args.insert(args.end(), {"--tls-listeners", "tcp"});
  EXPECT_THAT(Fault(args), HasSubstr("listen.grpc (10.0.0.1:1) has no TLS"));
  EXPECT_TRUE(Parse({"--grpc", "0.0.0.0:1", "--allow-insecure"}).ok());
  for (const char* here : {"127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(Parse({"--grpc", here}).ok()) << here;
  }
  for (const char* there : {"127.example.com:1", "128.0.0.1:1", "[::]:1", "0.0.0.0:1"}) {
    EXPECT_FALSE(Parse({"--grpc", there}).ok()) << there;
  }
}

TEST_F(CommandLine, TlsSettingsGoTogether) {
  EXPECT_EQ(Fault({"--tls-cert-file", "c"}),
            "tls.cert_file is set and tls.key_file is not; expected both or neither");
  EXPECT_THAT(Fault({"--tls-client-ca-file", "a"}), HasSubstr("tls.cert_file is not"));
  EXPECT_THAT(Fault({"--tls-require-client-cert"}), HasSubstr("expected tls.client_ca_file"));
  EXPECT_EQ(Fault({"--tls-listeners", "grpc udp"}),
            "tls.listeners: expected some of grpc tcp http statsd, not \"udp\"");
}

TEST_F(CommandLine, FlagTakesItsValueAfterAnEqualsSignToo) {
  const auto result = Parse({"--grpc=127.0.0.1:0", "--allow-software-gl=false"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->config.listen.grpc, (HostPort{"127.0.0.1", 0}));
  EXPECT_FALSE(result->config.sort.allow_software_gl);
}

TEST_F(CommandLine, CheckConfigPrintsWhatIsInForce) {
  const auto result = Parse({"--check-config", "--http", "off", "--sorter", "cpu"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->action, ParsedArgs::Action::kPrintAndExit);
  EXPECT_EQ(result->exit_code, 0);
  EXPECT_THAT(result->text, StartsWith("# configuration OK\n"));
  Config back;
  ASSERT_TRUE(ApplyToml(result->text, "printed", back).ok());
  EXPECT_EQ(back, result->config);
  EXPECT_EQ(back.sort.sorter, "cpu");
}

TEST_F(CommandLine, HelpNamesEveryFlagAndVersionTheVersion) {
  const auto help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_EQ(help->action, ParsedArgs::Action::kPrintAndExit);
  for (const Setting& setting : Settings()) {
    EXPECT_THAT(help->text, HasSubstr("--" + std::string(setting.flag)));
  }
  const auto version = Parse({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->text, "tidemarkd " TIDEMARK_VERSION "\n");
}

TEST_F(CommandLine, FaultsNameTheirSource) {
  EXPECT_EQ(Fault({"--grpc", "x"}), "--grpc: expected HOST:PORT, not \"x\": there is no port");
  EXPECT_EQ(Fault({}, {{"TIDEMARK_TCP", "x"}}),
            "TIDEMARK_TCP: expected HOST:PORT, not \"x\": there is no port");
  EXPECT_EQ(Fault({"--max-streams", "many"}),
            "--max-streams: expected a whole number from 1 to 10000000, not \"many\"");
  EXPECT_EQ(Fault({"--max-streams", "99999999999999999999"}),
            "--max-streams: expected a whole number from 1 to 10000000, not "
            "\"99999999999999999999\"");
  EXPECT_EQ(Fault({"--gprc", "a:1"}), "unknown flag \"--gprc\" (did you mean \"--grpc\"?)");
  EXPECT_EQ(Fault({"run"}), "unexpected argument \"run\": tidemarkd takes flags only");
  EXPECT_THAT(Fault({"--grpc"}), HasSubstr("--grpc: "));
  const std::string path = File("[listen]\ngrcp = 1");
  EXPECT_THAT(Fault({"--config", path}), StartsWith(path + ":2:1: unknown key"));
}

TEST_F(CommandLine, FaultsOfAllSourcesAreReportedTogether) {
  const std::string message = Fault({"--http", "h"}, {{"TIDEMARK_TCP", "t"}});
  EXPECT_THAT(message, HasSubstr("TIDEMARK_TCP: "));
  EXPECT_THAT(message, HasSubstr("\n--http: "));
}

TEST_F(CommandLine, UnreadableFileIsNamed) {
  EXPECT_EQ(
      Fault({"--config", "/nowhere/tidemark.toml"}),
      "cannot read the configuration file \"/nowhere/tidemark.toml\": No such file or directory");
  EXPECT_EQ(Fault({"--config", folder_.string()}),
            "cannot read the configuration file \"" + folder_.string() + "\": Is a directory");
  const std::string large = File(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(Fault({"--config", large}), HasSubstr("is larger than 1048576 bytes"));
}

TEST_F(CommandLine, DataFolderMustBeWritable) {
  const auto fault = [&](const std::string& folder) {
    const auto args = Parse({"--data-dir", folder});
    EXPECT_TRUE(args.ok()) << "a reload does not ask the disk";
    return args.ok() ? CheckDataFolder(args->config) : "";
  };
  const std::string missing = (folder_ / "missing").string();
  EXPECT_EQ(fault(missing), "daemon.data_dir: the folder \"" + missing +
                                "\" cannot be written: No such file or directory");
  const std::string file = File("");
  EXPECT_EQ(fault(file),
            "daemon.data_dir: the folder \"" + file + "\" cannot be written: it is not a folder");
  // No process can make a file there, root included.
  EXPECT_THAT(fault("/proc"), HasSubstr("the folder \"/proc\" cannot be written"));
  EXPECT_EQ(fault(folder_.string()), "");
  EXPECT_EQ(CheckDataFolder(Config()), "") << "none is none";
  EXPECT_EQ(Fault({"--durability", "log"}),
            "store.durability is \"log\" and there is no folder to write to; expected "
            "daemon.data_dir");
  ASSERT_TRUE(Parse({"--durability", "log", "--data-dir", folder_.string()}).ok());
  std::filesystem::remove(file);
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "the check has left a file behind";
}

TEST_F(CommandLine, SettingsThatContradictEachOther) {
  EXPECT_EQ(Fault({"--window-min", "2048", "--window-max", "1024"}),
            "window.min_capacity (2048) is larger than window.max_capacity (1024)");
  EXPECT_EQ(Fault({"--max-batch-bytes", "4096", "--max-item-bytes", "4097"}),
            "limits.max_item_bytes (4097) is larger than limits.max_batch_bytes (4096)");
  EXPECT_EQ(Fault({"--grpc", "localhost:1", "--http", "localhost:1"}),
            "listen.grpc and listen.http are both localhost:1");
  EXPECT_TRUE(Parse({"--grpc", "localhost:0", "--http", "localhost:0"}).ok());
}

}  // namespace
}  // namespace tidemark::server
