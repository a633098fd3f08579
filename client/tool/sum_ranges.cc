#include "client/tool/sum_ranges.h"

#include <utility>

#include "client/tool/arguments.h"
#include "client/tool/terminal.h"

namespace tidemark::tool {
namespace {

double Share(const char* option, const std::string& text) {
  double share = 0;
  if (!client::ParseText(text, &share)) {
    throw UsageError(std::string(option) + ": \"" + Printable(text) + "\" is not a number");
  }
  return share;
}

std::pair<std::string, std::string> Ends(const char* option, const std::string& text) {
  std::vector<std::string> parts = SplitList(ShowMinus(text));
  if (parts.size() != 2) {
    throw UsageError(std::string(option) + ": \"" + Printable(ShowMinus(text)) +
                     "\" is no LOW,HIGH");
  }
  return {std::move(parts[0]), std::move(parts[1])};
}

}  // namespace

std::vector<client::SumRange> SumRanges(client::ValueType type, const SumOptions& options) {
  std::vector<client::SumRange> ranges;
  for (const std::string& text : options.at_most) {
    ranges.emplace_back(client::AtMostValue{ParseValues(type, {ShowMinus(text)}).front()});
  }
  for (const std::string& text : options.between) {
    const auto [low, high] = Ends("--between", text);
    std::vector<client::Value> values = ParseValues(type, {low, high});
    ranges.emplace_back(client::BetweenValues{std::move(values[0]), std::move(values[1])});
  }
  for (const std::string& text : options.phi) {
    ranges.emplace_back(client::AtMostShare{Share("--phi", ShowMinus(text))});
  }
  for (const std::string& text : options.between_phi) {
    const auto [low, high] = Ends("--between-phi", text);
    ranges.emplace_back(
        client::BetweenShares{Share("--between-phi", low), Share("--between-phi", high)});
  }
  if (ranges.empty()) {
    throw UsageError("sum: give --at-most, --between, --phi or --between-phi");
  }
  return ranges;
}

}  // namespace tidemark::tool
