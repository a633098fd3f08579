#include "client/tool/arguments.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace tidemark::tool {

std::optional<std::chrono::microseconds> ParseDuration(std::string_view text) {
  // Longer units first where one ends another ("ms" before "s").
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"us", 1.0}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    double number = 0;
    if (!client::ParseText(text.substr(0, text.size() - unit.size()), &number)) return std::nullopt;
    const double microseconds = std::round(number * factor);
    // protobuf's Duration ends at 315,576,000,000 s; microseconds in 64 bits end later.
    if (!(microseconds >= 1 && microseconds <= 315'576'000'000e6)) return std::nullopt;
    return std::chrono::microseconds(static_cast<std::int64_t>(microseconds));
  }
  return std::nullopt;
}

std::vector<std::string> HideMinus(std::vector<std::string> arguments) {
  for (std::string& argument : arguments) {
    if (argument.size() < 2 || argument[0] != '-') continue;
    std::string start = argument.substr(1, 3);
    std::transform(start.begin(), start.end(), start.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::isdigit(static_cast<unsigned char>(start[0])) != 0 || start[0] == '.' ||
        start == "inf") {
      argument[0] = kMinus;
    }
  }
  return arguments;
}

std::string ShowMinus(std::string text) {
  std::replace(text.begin(), text.end(), kMinus, '-');
  return text;
}

std::vector<std::string> SplitList(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::vector<client::Value> ParseValues(client::ValueType type,
                                       const std::vector<std::string>& texts) {
  std::vector<client::Value> values;
  for (const std::string& text : texts) {
    auto value = client::ParseValue(type, text);
    if (!value) {
      throw UsageError("\"" + text + "\" is not a value of type " +
                       std::string(client::TypeName(type)) + ", which the stream holds");
    }
    if (type == client::ValueType::kString && !client::IsUtf8(text)) {
      throw UsageError("\"" + text + "\" is not UTF-8");
    }
    values.push_back(std::move(*value));
  }
  return values;
}

double ToNumber(const std::string& option, const std::string& text) {
  double number = 0;
  if (!client::ParseText(ShowMinus(text), &number)) {
    throw UsageError(option + ": \"" + ShowMinus(text) + "\" is not a number");
  }
  return number;
}

std::uint64_t ToCount(const std::string& option, const std::string& text, std::uint64_t most) {
  std::uint64_t number = 0;
  if (!client::ParseText(ShowMinus(text), &number) || number == 0 || number > most) {
    throw UsageError(option + ": \"" + ShowMinus(text) + "\" is not a whole number from 1 to " +
                     std::to_string(most));
  }
  return number;
}

std::chrono::microseconds ToDuration(const std::string& option, const std::string& text) {
  const auto duration = ParseDuration(ShowMinus(text));
  if (!duration) {
    throw UsageError(option + ": \"" + ShowMinus(text) +
                     "\" is not a duration such as 250ms, 1s, 5m, 2h or 7d");
  }
  return *duration;
}

client::ValueType ToType(const std::string& text) {
  const auto type = client::ParseTypeName(text);
  if (!type) {
    throw UsageError("--type: \"" + text + "\" is none of " + std::string(client::TypeNames()));
  }
  return *type;
}

std::vector<double> ToNumbers(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  for (const std::string& text : texts) numbers.push_back(ToNumber(option, text));
  return numbers;
}

std::vector<std::string> ShowAll(std::vector<std::string> texts) {
  for (std::string& text : texts) text = ShowMinus(text);
  return texts;
}

}  // namespace tidemark::tool
