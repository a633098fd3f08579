// Answers as text for people: a heading line and an aligned table. Not a contract; scripts use
// JSON.
#ifndef TIDEMARK_CLIENT_TOOL_TEXT_H_
#define TIDEMARK_CLIENT_TOOL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/answers.h"
#include "client/client.h"
#include "client/tool/terminal.h"

namespace tidemark::tool {

/// Rows of cells; numbers and headings of columns in `right` are aligned to the right. Columns are
/// two spaces apart and lines have no trailing space.
class Table {
 public:
  explicit Table(std::vector<std::string> heading, std::vector<bool> right);
  void Add(std::vector<std::string> cells);
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

/// The line that an answer begins with: its stream, how many values it covers and may not.
std::string Heading(const client::AnswerHeader& header);

std::string ToText(const client::QuantilesAnswer& answer);
std::string ToText(const client::RanksAnswer& answer);
std::string ToText(const client::HeavyHittersAnswer& answer);
std::string ToText(const client::CountsAnswer& answer);
std::string ToText(const client::HierarchicalHeavyHittersAnswer& answer);
std::string ToText(const client::SumsAnswer& answer);
std::string ToText(const client::CompareAnswer& answer);
std::string ToText(const client::SpreadAnswer& answer);
std::string ToText(const std::vector<client::StreamInfo>& streams);
std::string ToText(const client::StreamInfo& stream);
std::string ToText(const std::vector<client::Subscription>& subscriptions);
std::string ToText(const client::Subscription& subscription);
std::string ToText(const client::ServerInfo& info);

/// A value as it is shown: its text form, made safe for a terminal.
std::string ShowValue(const client::Value& value);
/// "0.001".
std::string ShowNumber(double value);
/// One end of an interval with seven digits, rounded outwards: what is shown holds what is known.
enum class Side { kLow, kHigh };
std::string ShowBound(double value, Side side);
/// "980", "98.1 k", "3.21 M", "1.2 G": three digits, for rates.
std::string ShowRate(double value);
/// "386 ms", "1.79 s".
std::string ShowSeconds(double seconds);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_TEXT_H_
