// ApplyToml and ToToml: the configuration file.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/config/config.h"
#include "server/config/settings.h"

namespace tidemark::server {
namespace {

class Reader {
 public:
  Reader(std::string_view file, Config& config) : file_(file), config_(config) {
    for (const Setting& setting : Settings()) {
      tables_.insert(std::string(setting.table));
      names_.push_back(setting.Name());
    }
  }

  void ReadRoot(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string name(key.str());
      if (!tables_.contains(name)) {
        if (node.is_table()) {
          const std::vector<std::string> known(tables_.begin(), tables_.end());
          Fault(key.source(), fmt::format("unknown table {}{}", Quote(name), Suggest(name, known)));
        } else {
          Fault(key.source(), fmt::format("unknown key {}{}", Quote(name), Suggest(name, names_)));
        }
      } else if (const toml::table* table = node.as_table()) {
        ReadTable(name, *table);
      } else {
        Fault(key.source(), fmt::format("{} is a table: expected [{}]", Quote(name), name));
      }
    }
  }

  /// toml++ visits keys in alphabetical order; a person reads a file from its top.
  std::vector<std::string> FaultsInOrder() {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> lines;
    for (auto& [position, line] : faults_) lines.push_back(std::move(line));
    return lines;
  }

 private:
  void ReadTable(std::string_view table_name, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name = fmt::format("{}.{}", table_name, std::string_view(key.str()));
      const auto settings = Settings();
      const auto setting = std::find_if(settings.begin(), settings.end(),
                                        [&](const Setting& s) { return s.Name() == name; });
      if (setting == settings.end()) {
        Fault(key.source(), fmt::format("unknown key {}{}", Quote(name), Suggest(name, names_)));
        continue;
      }
      const std::string fault = AssignNode(*setting, node);
      if (!fault.empty()) Fault(node.source(), fmt::format("{}: {}", name, fault));
    }
  }

  std::string AssignNode(const Setting& setting, const toml::node& node) {
    if (const auto* v = node.as_boolean()) return Assign(setting, v->get(), config_);
    if (const auto* v = node.as_integer()) return Assign(setting, v->get(), config_);
    if (const auto* v = node.as_floating_point()) return Assign(setting, v->get(), config_);
    if (const auto* v = node.as_string()) return Assign(setting, v->get(), config_);
    return node.is_table()   ? "expected a single value, not a table"
           : node.is_array() ? "expected a single value, not an array"
                             : "expected a single value, not a date or time";
  }

  void Fault(const toml::source_region& where, std::string_view what) {
    const std::pair<std::uint64_t, std::uint64_t> position = {where.begin.line, where.begin.column};
    faults_.emplace_back(position,
                         fmt::format("{}:{}:{}: {}", file_, position.first, position.second, what));
  }

  std::string_view file_;
  Config& config_;
  std::set<std::string> tables_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::string>> faults_;
};

}  // namespace

absl::Status ApplyToml(std::string_view text, std::string_view file, Config& config) {
  Config result = config;
  Reader reader(file, result);
  try {
    const toml::table root = toml::parse(text, file);
    reader.ReadRoot(root);
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    std::string why(error.description());
    why = absl::StrReplaceAll(why, {{"\n", " "}, {"\r", " "}});
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: {}", file, where.line, where.column, why));
  }
  const std::vector<std::string> faults = reader.FaultsInOrder();
  if (!faults.empty()) return absl::InvalidArgumentError(absl::StrJoin(faults, "\n"));
  config = std::move(result);
  return absl::OkStatus();
}

std::string ToToml(const Config& config) {
  std::string text;
  std::string_view table;
  for (const Setting& setting : Settings()) {
    if (setting.table != table) {
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", setting.table);
      table = setting.table;
    }
    text += fmt::format("{} = {}\n", setting.key, FormatValue(setting, config));
  }
  return text;
}

}  // namespace tidemark::server
