#include "client/tool/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

namespace tidemark::tool {
namespace {

std::string Show(std::uint64_t value) { return std::to_string(value); }

/// A number of values of which some may be outside.
std::string ShowCount(std::uint64_t n, std::uint64_t uncertain) {
  return (uncertain != 0 ? Show(n - uncertain) + " to " : std::string()) + Show(n);
}

// As the end of a line; "" if there are none.
std::string ShowLosses(const client::Losses& losses) {
  std::string out;
  if (losses.refused_whole != 0) {
    out += ", " + Show(losses.refused_whole) + " refused in batches";
  }
  if (losses.dropped_datagrams != 0) {
    out += ", datagrams dropped unread: " + Show(losses.dropped_datagrams);
  }
  return out;
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

std::string Heading(const client::AnswerHeader& header) {
  return Printable(header.stream) + ": n " + ShowCount(header.n, header.n_uncertain) +
         ", epsilon " + ShowNumber(header.epsilon) +
         (header.refused != 0 ? ", " + Show(header.refused) + " more refused" : std::string()) +
         ShowLosses(header.losses) + "\n";
}

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

std::string ShowBound(double value, Side side) {
  constexpr int kDigits = 7;
  if (value == 0 || !std::isfinite(value)) return ShowNumber(value + 0.0);  // no "-0"
  const auto rounded = [](double exact) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), exact,
                                   std::chars_format::scientific, kDigits - 1);
    double read = 0;
    std::from_chars(text.data(), end.ptr, read);
    return read;
  };
  double shown = rounded(value);
  const double last_digit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - kDigits + 1);
  if (side == Side::kLow && shown > value) shown = rounded(shown - last_digit);
  if (side == Side::kHigh && shown < value) shown = rounded(shown + last_digit);
  return ShowNumber(shown);
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

std::string ToText(const client::HierarchicalHeavyHittersAnswer& answer) {
  Table table({"prefix", "count_low", "count_high", "discounted_low", "discounted_high"},
              {false, true, true, true, true});
  for (const auto& p : answer.prefixes) {
    const std::string text = p.length == 0 ? "(everything)" : Printable(p.text.value_or(""));
    table.Add({p.text ? text : client::FormatPrefix(p.address, p.length), Show(p.count_low),
               Show(p.count_high), Show(p.discounted_low), Show(p.discounted_high)});
  }
  return Heading(answer) + table.ToString();
}

namespace {

std::string ShowRange(const client::SumRange& range) {
  if (const auto* value = std::get_if<client::AtMostValue>(&range)) {
    return "x <= " + ShowValue(value->value);
  }
  if (const auto* values = std::get_if<client::BetweenValues>(&range)) {
    return ShowValue(values->low) + " <= x <= " + ShowValue(values->high);
  }
  if (const auto* share = std::get_if<client::AtMostShare>(&range)) {
    return "phi 0 to " + ShowNumber(share->phi);
  }
  const auto& shares = std::get<client::BetweenShares>(range);
  return "phi " + ShowNumber(shares.low) + " to " + ShowNumber(shares.high);
}

std::string ShowInterval(double low, double high) {
  return ShowBound(low, Side::kLow) + " to " + ShowBound(high, Side::kHigh);
}

}  // namespace

std::string ToText(const client::SumsAnswer& answer) {
  Table table(
      {"range", "count_low", "count_high", "sum_low", "sum_high", "average_low", "average_high"},
      {false, true, true, true, true, true, true});
  for (const auto& a : answer.answers) {
    const bool some = a.average_low && a.average_high;
    table.Add({ShowRange(a.range), Show(a.count_low), Show(a.count_high),
               ShowBound(a.sum_low, Side::kLow), ShowBound(a.sum_high, Side::kHigh),
               some ? ShowBound(*a.average_low, Side::kLow) : "-",
               some ? ShowBound(*a.average_high, Side::kHigh) : "-"});
  }
  return Heading(answer) + table.ToString();
}

std::string ToText(const client::CompareAnswer& answer) {
  Table table({"moved", answer.moved ? (*answer.moved ? "yes" : "no") : "cannot tell"},
              {false, false});
  table.Add({"distance", ShowInterval(answer.distance_low, answer.distance_high)});
  table.Add({"at the value", ShowValue(answer.value)});
  table.Add({"share at or below it, first", ShowInterval(answer.share_a_low, answer.share_a_high)});
  table.Add(
      {"share at or below it, second", ShowInterval(answer.share_b_low, answer.share_b_high)});
  table.Add({"n", ShowCount(answer.n_a, answer.n_uncertain_a) + " and " +
                      ShowCount(answer.n_b, answer.n_uncertain_b)});
  if (answer.refused_a != 0 || answer.refused_b != 0) {
    table.Add({"refused beside them", Show(answer.refused_a) + " and " + Show(answer.refused_b)});
  }
  if (answer.losses_a.refused_whole != 0 || answer.losses_b.refused_whole != 0) {
    table.Add({"refused in batches", Show(answer.losses_a.refused_whole) + " and " +
                                         Show(answer.losses_b.refused_whole)});
  }
  // Of all streams: the later look has them all.
  if (const std::uint64_t dropped =
          std::max(answer.losses_a.dropped_datagrams, answer.losses_b.dropped_datagrams);
      dropped != 0) {
    table.Add({"datagrams dropped unread", Show(dropped)});
  }
  table.Add(
      {"distance by chance (1 %)", "up to " + ShowBound(answer.chance_distance, Side::kHigh)});
  return table.ToString();
}

std::string ToText(const client::SpreadAnswer& answer) {
  const auto between = [](const std::string& low, const std::string& high) {
    return low == high ? low : low + " to " + high;
  };
  const auto quantile = [&](const std::pair<client::Value, client::Value>& interval) {
    return between(ShowValue(interval.first), ShowValue(interval.second));
  };
  const auto number = [&](double low, double high) {
    return between(ShowBound(low, Side::kLow), ShowBound(high, Side::kHigh));
  };
  Table table({"quantile " + ShowNumber(answer.low_phi), quantile(answer.low_quantile)},
              {false, false});
  table.Add({"quantile " + ShowNumber(answer.high_phi), quantile(answer.high_quantile)});
  table.Add({"range between them", number(answer.range_low, answer.range_high)});
  table.Add(
      {answer.trim == 0 ? "mean" : "mean without " + ShowNumber(answer.trim) + " at either end",
       number(answer.trimmed_mean_low, answer.trimmed_mean_high)});
  table.Add({"different values", between(Show(answer.distinct_low), Show(answer.distinct_high))});
  return Heading(answer) + table.ToString();
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
  std::string type(client::TypeName(s.config.type));
  if (s.config.payload == client::PayloadType::kWeight) type += " with weights";
  if (s.config.payload == client::PayloadType::kY) type += " with y";
  table.Add({"type", type});
  table.Add({"n", Show(s.count)});
  table.Add({"refused", Show(s.refused)});
  table.Add({"refused in batches", Show(s.losses.refused_whole)});
  table.Add({"datagrams dropped unread", Show(s.losses.dropped_datagrams)});
  table.Add({"answers", s.exact ? "exact" : "within epsilon"});
  if (s.config.HasRanks()) {
    table.Add({"epsilon, quantiles", ShowNumber(s.config.quantile_epsilon) + " (" +
                                         std::string(client::FormName(s.config.quantile_form)) +
                                         ")"});
  }
  if (s.config.HasRanks() && s.config.quantile_form == client::QuantileForm::kTail) {
    table.Add({"epsilon, tail", ShowNumber(s.config.tail_epsilon)});
  }
  table.Add({"epsilon, frequencies", s.config.no_frequencies
                                         ? std::string("none kept")
                                         : ShowNumber(s.config.frequency_epsilon)});
  if (s.config.sums.value_or(false)) table.Add({"sums", "of the values"});
  if (!s.config.prefix_lengths.empty()) {
    std::string lengths;
    for (const auto length : s.config.prefix_lengths) {
      lengths += (lengths.empty() ? "/" : ", /") + std::to_string(length);
    }
    table.Add({"prefixes", lengths});
  }
  if (!s.config.separator.empty()) {
    table.Add({"prefixes", "up to " + std::to_string(s.config.depth) + " components between " +
                               Printable(s.config.separator) +
                               (s.config.root_last ? ", from the last one" : "")});
  }
  const client::SlidingConfig& sliding = s.config.sliding;
  if (sliding.any()) {
    std::string widths;
    if (sliding.max_values != 0) widths = Show(sliding.max_values) + " values";
    if (sliding.max_time.count() != 0) {
      widths += (widths.empty() ? "" : ", ") + ShowDuration(sliding.max_time);
    }
    table.Add({"sliding windows, up to", widths});
    table.Add({"epsilon, sliding windows", ShowNumber(sliding.epsilon)});
  }
  table.Add({"window", Show(s.window_fill) + " of " + Show(s.window_capacity) + " values"});
  table.Add({"pending values", Show(s.pending)});
  table.Add({"windows summarised", Show(s.windows_summarized)});
  if (s.config.HasRanks()) table.Add({"bytes, quantile summary", Show(s.quantile_bytes)});
  table.Add({"bytes, frequency summary", Show(s.frequency_bytes)});
  if (s.config.HasSums()) table.Add({"bytes, sums", Show(s.sum_bytes)});
  if (sliding.any()) table.Add({"bytes, sliding windows", Show(s.sliding_bytes)});
  table.Add({"bytes, window", Show(s.window_bytes)});
  if (s.config.type == client::ValueType::kString) {
    table.Add({"bytes, dictionary", Show(s.dictionary_bytes)});
  }
  return table.ToString();
}

namespace {

// "2026-11-22 11:20:31 UTC"
std::string ShowDate(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

// "gl-compute 120 faster, 4 probe; cpu 31 busy"
std::string ShowRoutes(const std::vector<client::RouteCount>& routes) {
  std::string out;
  std::string_view sorter;
  for (const client::RouteCount& route : routes) {
    if (route.sorter == sorter) {
      out += ", ";
    } else {
      out += (out.empty() ? "" : "; ") + route.sorter + " ";
      sorter = route.sorter;
    }
    out += Show(route.requests) + " " + route.reason;
  }
  return out;
}

std::string RateTables(const client::SorterInfo& sorter) {
  std::string out;
  if (!sorter.measurements.empty()) {
    // Only what was chosen for each width and size; JSON has every measurement.
    Table measured({"key bits", "window", "sorter", "algorithm", "keys/s"},
                   {true, true, false, false, true});
    for (const auto& m : sorter.measurements) {
      if (!m.chosen) continue;
      measured.Add({std::to_string(m.key_bits), Show(m.window), m.sorter, m.algorithm,
                    ShowRate(m.keys_per_second)});
    }
    out += "\n" + measured.ToString();
  }
  if (!sorter.observed.empty()) {
    Table observed({"key bits", "window", "sorter", "requests seen", "keys/s now"},
                   {true, true, false, true, true});
    for (const auto& o : sorter.observed) {
      observed.Add({std::to_string(o.key_bits), Show(o.window), o.sorter, Show(o.requests),
                    ShowRate(o.keys_per_second)});
    }
    out += "\n" + observed.ToString();
  }
  return out;
}

}  // namespace

std::string ToText(const client::ServerInfo& info) {
  Table table({"version", info.version}, {false, false});
  table.Add({"up", ShowDuration(info.uptime)});
  table.Add({"streams", Show(info.streams) + " of " + Show(info.limits.max_streams)});
  table.Add({"values", Show(info.values)});
  table.Add({"sorter", info.sorter.active + " (configured: " + info.sorter.requested + ")"});
  table.Add({"because", info.sorter.reason});
  if (!info.sorter.measurements.empty()) {
    table.Add({"rates", (info.sorter.cached ? "cached, measured " : "measured ") +
                            ShowDate(info.sorter.measured_at)});
  }
  if (!info.sorter.routes.empty()) table.Add({"requests", ShowRoutes(info.sorter.routes)});
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
  return table.ToString() + RateTables(info.sorter);
}

}  // namespace tidemark::tool
