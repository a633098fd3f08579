// What the command line parser does not know: durations, lists of values, and arguments that begin
// with a minus sign but are numbers.
#ifndef TIDEMARK_CLIENT_TOOL_ARGUMENTS_H_
#define TIDEMARK_CLIENT_TOOL_ARGUMENTS_H_

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "client/value.h"

namespace tidemark::tool {

/// The command line is wrong: exit status 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The input is wrong or cannot be read: exit status 1.
class InputError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "250ms", "1s", "1.5m", "2h", "7d", "10us"; at least 1 us. nullopt for anything else.
std::optional<std::chrono::microseconds> ParseDuration(std::string_view text);

/// CLI11 takes "-5" or "-inf,0" for an option. Such arguments (a minus sign, then a digit, a point
/// or "inf") travel through it with the sign replaced by kMinus, a character that no argument
/// begins with.
inline constexpr char kMinus = '\x01';
std::vector<std::string> HideMinus(std::vector<std::string> arguments);
/// Back: every kMinus in `text` becomes '-'.
std::string ShowMinus(std::string text);

/// "a,b,c" in parts; an empty part is a part.
std::vector<std::string> SplitList(std::string_view text, char separator = ',');

/// Values of one type from the command line. UsageError names the first that is none.
std::vector<client::Value> ParseValues(client::ValueType type,
                                       const std::vector<std::string>& texts);

/// What an option says. `option` names it in the message. Errors: UsageError.
double ToNumber(const std::string& option, const std::string& text);
/// From 1 to `most`.
std::uint64_t ToCount(const std::string& option, const std::string& text, std::uint64_t most);
std::chrono::microseconds ToDuration(const std::string& option, const std::string& text);
client::ValueType ToType(const std::string& text);
std::vector<double> ToNumbers(const std::string& option, const std::vector<std::string>& texts);
/// Each as ShowMinus.
std::vector<std::string> ShowAll(std::vector<std::string> texts);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_ARGUMENTS_H_
