#include "client/tool/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace tidemark::tool {
namespace {

std::string Show(std::uint64_t value) { return std::to_string(value); }

std::string Heading(const client::AnswerHeader& header) {
  return Printable(header.stream) + ": n " + Show(header.n) + ", epsilon " +
         ShowNumber(header.epsilon) + "\n";
}

std::string ItemsTable(const std::vector<client::ItemCount>& items, std::uint64_t n) {
  Table table({"item", "count_low", "count_high", "share"}, {false, true, true, true});
  for (const auto& item : items) {
    std::array<char, 32> share{};
    const double percent =
        n == 0 ? 0.0 : 100.0 * static_cast<double>(item.count_high) / static_cast<double>(n);
    const auto end = std::to_chars(share.data(), share.data() + share.size(), percent,
                                   std::chars_format::fixed, 2);
    table.Add({ShowValue(item.value), Show(item.count_low), Show(item.count_high),
               std::string(share.data(), end.ptr) + " %"});
  }
  return table.ToString();
}

std::string ShowDuration(std::chrono::microseconds time) {
  const std::int64_t seconds = time.count() / 1'000'000;
  std::string out;
  if (seconds >= 86'400) out += std::to_string(seconds / 86'400) + " d ";
  if (seconds >= 3'600) out += std::to_string(seconds / 3'600 % 24) + " h ";
  if (seconds >= 60) out += std::to_string(seconds / 60 % 60) + " min ";
  return out + std::to_string(seconds % 60) + " s";
}

}  // namespace

Table::Table(std::vector<std::string> heading, std::vector<bool> right) : right_(std::move(right)) {
  rows_.push_back(std::move(heading));
}

void Table::Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::ToString() const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      if (i > 0) line += "  ";
      line += right_[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string ShowValue(const client::Value& value) { return Printable(client::FormatValue(value)); }

std::string ShowNumber(double value) {
  std::string out;
  client::AppendText(value, &out);
  return out;
}

std::string ShowRate(double value) {
  static constexpr std::array<const char*, 5> kUnits = {"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, digits);
  return std::string(text.data(), end.ptr) + kUnits[unit];
}

std::string ShowSeconds(double seconds) {
  if (seconds < 0.9995) return ShowRate(seconds * 1000) + " ms";
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds,
                                 std::chars_format::fixed, seconds < 100 ? 2 : 0);
  return std::string(text.data(), end.ptr) + " s";
}

std::string ToText(const client::QuantilesAnswer& answer) {
  Table table({"phi", "value", "rank_low", "rank_high"}, {true, true, true, true});
  for (const auto& a : answer.answers) {
    table.Add({ShowNumber(a.phi), ShowValue(a.value), Show(a.rank_low), Show(a.rank_high)});
  }
  return Heading(answer) + table.ToString();
}

std::string ToText(const client::RanksAnswer& answer) {
  Table table({"value", "rank_low", "rank_high"}, {true, true, true});
  for (const auto& a : answer.answers) {
    table.Add({ShowValue(a.value), Show(a.rank_low), Show(a.rank_high)});
  }
  return Heading(answer) + table.ToString();
}

std::string ToText(const client::HeavyHittersAnswer& answer) {
  std::string heading = Heading(answer);
  heading.pop_back();
  heading += ", support " + ShowNumber(answer.support) + "\n";
  if (answer.items.empty()) return heading + "no item reaches the support\n";
  return heading + ItemsTable(answer.items, answer.n);
}

std::string ToText(const client::CountsAnswer& answer) {
  return Heading(answer) + ItemsTable(answer.items, answer.n);
}

std::string ToText(const std::vector<client::StreamInfo>& streams) {
  if (streams.empty()) return "no streams\n";
  Table table({"stream", "type", "epsilon", "n"}, {false, false, true, true});
  for (const auto& s : streams) {
    table.Add({Printable(s.name), std::string(client::TypeName(s.config.type)),
               ShowNumber(s.config.epsilon()), Show(s.count)});
  }
  return table.ToString();
}

std::string ToText(const client::StreamInfo& s) {
  Table table({"stream", Printable(s.name)}, {false, false});
  table.Add({"type", std::string(client::TypeName(s.config.type))});
  table.Add({"n", Show(s.count)});
  table.Add({"refused", Show(s.refused)});
  table.Add({"answers", s.exact ? "exact" : "within epsilon"});
  if (s.config.type != client::ValueType::kString) {
    table.Add({"epsilon, quantiles", ShowNumber(s.config.quantile_epsilon)});
  }
  table.Add({"epsilon, frequencies", ShowNumber(s.config.frequency_epsilon)});
  table.Add({"window", Show(s.window_fill) + " of " + Show(s.window_capacity) + " values"});
  table.Add({"pending values", Show(s.pending)});
  table.Add({"windows summarised", Show(s.windows_summarized)});
  table.Add({"bytes, quantile summary", Show(s.quantile_bytes)});
  table.Add({"bytes, frequency summary", Show(s.frequency_bytes)});
  table.Add({"bytes, window", Show(s.window_bytes)});
  if (s.config.type == client::ValueType::kString) {
    table.Add({"bytes, dictionary", Show(s.dictionary_bytes)});
  }
  return table.ToString();
}

std::string ToText(const client::ServerInfo& info) {
  Table table({"version", info.version}, {false, false});
  table.Add({"up", ShowDuration(info.uptime)});
  table.Add({"streams", Show(info.streams) + " of " + Show(info.limits.max_streams)});
  table.Add({"values", Show(info.values)});
  table.Add({"sorter", info.sorter.active + " (configured: " + info.sorter.requested + ")"});
  table.Add({"because", info.sorter.reason});
  const auto& gl = info.sorter.gl;
  if (gl.available) {
    table.Add({"graphics", gl.renderer + ", " + gl.version + ", " + gl.vendor +
                               (gl.software ? " (software)" : "")});
  } else {
    table.Add({"graphics", gl.error.empty() ? "none" : "none: " + gl.error});
  }
  for (const auto& e : info.endpoints) table.Add({e.name, e.address});
  const auto& limits = info.limits;
  table.Add({"limits", "name " + Show(limits.max_name_bytes) + " bytes, batch " +
                           Show(limits.max_batch_bytes) + " bytes, item " +
                           Show(limits.max_item_bytes) + " bytes, " +
                           Show(limits.max_subscriptions) + " subscriptions, " +
                           Show(limits.max_connections) + " connections"});
  std::string out = table.ToString();
  if (info.sorter.measurements.empty()) return out;
  // Only what was chosen for each width and size; JSON has every measurement.
  Table measured({"key bits", "window", "sorter", "algorithm", "keys/s"},
                 {true, true, false, false, true});
  for (const auto& m : info.sorter.measurements) {
    if (!m.chosen) continue;
    measured.Add({std::to_string(m.key_bits), Show(m.window), m.sorter, m.algorithm,
                  ShowRate(m.keys_per_second)});
  }
  return out + "\n" + measured.ToString();
}

}  // namespace tidemark::tool
