// The table of settings: one line for each, from which the file, the environment, the flags, the
// help text and the printed configuration are all made. Internal to server/config and its tests.
#ifndef TIDEMARK_SERVER_CONFIG_SETTINGS_H_
#define TIDEMARK_SERVER_CONFIG_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/config/config.h"

namespace tidemark::server {

/// A pointer to the member that a setting sets; its type says what values the setting takes.
using SettingField =
    std::variant<bool*, std::uint64_t*, double*, std::string*, std::optional<HostPort>*>;

struct Setting {
  std::string_view table;
  std::string_view key;
  std::string_view flag;  ///< without the leading dashes
  SettingField (*field)(Config&);
  std::string_view help;

  /// Both ends belong to the range; for whole numbers and decimal numbers only.
  double min = 0;
  double max = 0;
  bool power_of_two = false;
  /// Separated by blanks; empty: any text.
  std::string_view choices = {};
  /// Whole numbers: 0 is taken as well, for "automatic".
  bool or_zero = false;

  /// "limits.max_streams"
  std::string Name() const;
  /// "TIDEMARK_MAX_STREAMS"
  std::string EnvName() const;
};

std::span<const Setting> Settings();

/// A value as a TOML file can hold it.
using Scalar = std::variant<bool, std::int64_t, double, std::string>;

/// Sets the member, or returns what is wrong, in the form `expected ..., not ...`; "" means that it
/// was set.
std::string Assign(const Setting& setting, const Scalar& value, Config& config);
/// The same for text from the environment or a flag.
std::string AssignText(const Setting& setting, std::string_view text, Config& config);

/// The value as TOML writes it.
std::string FormatValue(const Setting& setting, const Config& config);

/// `text` in double quotes, on one line, whatever it holds; long text is cut.
std::string Quote(std::string_view text);

/// `did you mean "..."?` in parentheses after a blank, or "" if nothing is near.
std::string Suggest(std::string_view unknown, std::span<const std::string> known);

/// What no single setting can see: settings that contradict each other.
/// One line for each fault; "" if there is none.
std::string CheckWhole(const Config& config);

/// The same of daemon.data_dir, by making a file there: not at a reload, which is not to depend on
/// the disk.
std::string CheckDataFolder(const Config& config);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_CONFIG_SETTINGS_H_
