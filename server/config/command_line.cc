// ParseCommandLine: flags over environment over file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace tidemark::server {
namespace {

// The example that names every setting with a comment has under 10 KiB; more than this is not a
// configuration but a mistaken path.
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

std::string TypeHint(const Setting& setting) {
  if (!setting.choices.empty())
    return absl::StrReplaceAll(std::string(setting.choices), {{" ", "|"}});
  if (setting.key == "listeners") return "WORDS";
  Config config;
  struct Visitor {
    std::string operator()(const bool*) const { return ""; }
    std::string operator()(const std::uint64_t*) const { return "N"; }
    std::string operator()(const double*) const { return "X"; }
    std::string operator()(const std::string*) const { return "PATH"; }
    std::string operator()(const std::optional<HostPort>*) const { return "HOST:PORT|off"; }
  };
  return std::visit(Visitor{}, setting.field(config));
}

std::string HelpText() {
  std::string text =
      "tidemarkd: takes in streams of values, answers quantiles and heavy hitters with a proven "
      "error.\n\n"
      "usage: tidemarkd [--config FILE] [SETTING...]\n\n"
      "  --config FILE    TOML file with any of the settings below (TIDEMARK_CONFIG)\n"
      "  --check-config   check the settings, print them as TOML, exit: 0 good, 2 not\n"
      "  --version        print the version and exit\n"
      "  --help           print this and exit\n\n"
      "Settings. A flag wins over its environment variable (TIDEMARK_ and the flag in capitals:\n"
      "TIDEMARK_MAX_STREAMS for --max-streams; empty counts as not set), that over the file.\n"
      "Port 0 takes a free port.\n";
  std::string_view table;
  const Config defaults;
  for (const Setting& setting : Settings()) {
    if (setting.table != table) {
      text += fmt::format("\n[{}]\n", setting.table);
      table = setting.table;
    }
    const std::string hint = TypeHint(setting);
    text += fmt::format("  --{}{}{}\n      {} ({}, {})\n", setting.flag, hint.empty() ? "" : " ",
                        hint, setting.help, setting.key, FormatValue(setting, defaults));
  }
  return text;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kMaxFileBytes + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || (file.fail() && !file.eof())) {
    return absl::InvalidArgumentError(
        fmt::format("cannot read the configuration file {}: {}", Quote(path),
                    errno != 0 ? std::strerror(errno) : "read error"));
  }
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(fmt::format(
        "the configuration file {} is larger than {} bytes", Quote(path), kMaxFileBytes));
  }
  return text;
}

struct Flags {
  std::string config;
  bool check_config = false;
  bool version = false;
  bool help = false;
  /// Text given to a setting's flag, in the table's order.
  std::map<const Setting*, std::string> values;
};

absl::StatusOr<Flags> ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--config", flags.config)->type_name("value");
  app.add_flag("--check-config", flags.check_config);
  app.add_flag("--version", flags.version);
  app.add_flag("--help,-h", flags.help);
  std::map<const Setting*, std::pair<std::string, CLI::Option*>> options;
  std::vector<std::string> known = {"--config", "--check-config", "--version", "--help"};
  for (const Setting& setting : Settings()) {
    Config config;
    const std::string name = fmt::format("--{}", setting.flag);
    auto& [text, option] = options[&setting];
    option = std::holds_alternative<bool*>(setting.field(config)) ? app.add_flag(name, text)
                                                                  : app.add_option(name, text);
    option->type_name("value");
    known.push_back(name);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrReplaceAll(error.what(), {{"\n", " "}, {"\r", " "}}));
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    const std::string& extra = extras.front();
    const std::string word = extra.substr(0, extra.find('='));
    if (word.starts_with("-")) {
      return absl::InvalidArgumentError(
          fmt::format("unknown flag {}{}", Quote(word), Suggest(word, known)));
    }
    return absl::InvalidArgumentError(
        fmt::format("unexpected argument {}: tidemarkd takes flags only", Quote(extra)));
  }
  for (const auto& [setting, entry] : options) {
    if (entry.second->count() > 0) flags.values[setting] = entry.first;
  }
  return flags;
}

/// The three sources, in the order in which they win, and then the whole.
absl::StatusOr<Config> Load(const Flags& flags, const EnvLookup& env) {
  Config config;
  std::vector<std::string> faults;
  const auto lookup = [&](const std::string& name) -> std::string {
    const char* const value = env ? env(name.c_str()) : nullptr;
    return value == nullptr ? "" : value;
  };

  const std::string path = flags.config.empty() ? lookup("TIDEMARK_CONFIG") : flags.config;
  if (!path.empty()) {
    absl::StatusOr<std::string> text = ReadFile(path);
    const absl::Status status = text.ok() ? ApplyToml(*text, path, config) : text.status();
    if (!status.ok()) faults.emplace_back(status.message());
  }
  for (const Setting& setting : Settings()) {
    const std::string name = setting.EnvName();
    if (const std::string text = lookup(name); !text.empty()) {
      const std::string fault = AssignText(setting, text, config);
      if (!fault.empty()) faults.push_back(fmt::format("{}: {}", name, fault));
    }
  }
  for (const Setting& setting : Settings()) {
    if (const auto it = flags.values.find(&setting); it != flags.values.end()) {
      const std::string fault = AssignText(setting, it->second, config);
      if (!fault.empty()) faults.push_back(fmt::format("--{}: {}", setting.flag, fault));
    }
  }
  // A setting that was refused has kept an earlier value: judging the whole would mislead.
  if (faults.empty()) {
    if (std::string fault = CheckWhole(config); !fault.empty()) faults.push_back(std::move(fault));
  }
  if (!faults.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
  return config;
}

}  // namespace

absl::StatusOr<ParsedArgs> ParseCommandLine(int argc, const char* const* argv,
                                            const EnvLookup& env) {
  absl::StatusOr<Flags> flags = ParseFlags(argc, argv);
  if (!flags.ok()) return flags.status();
  ParsedArgs result;
  if (flags->help || flags->version) {
    result.action = ParsedArgs::Action::kPrintAndExit;
    result.text = flags->help ? HelpText() : fmt::format("tidemarkd {}\n", TIDEMARK_VERSION);
    return result;
  }
  absl::StatusOr<Config> config = Load(*flags, env);
  if (!config.ok()) return config.status();
  result.config = *std::move(config);
  result.check_config = flags->check_config;
  if (flags->check_config) {
    result.action = ParsedArgs::Action::kPrintAndExit;
    result.text = fmt::format("# configuration OK\n\n{}", ToToml(result.config));
  }
  return result;
}

}  // namespace tidemark::server
