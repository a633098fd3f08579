#include "client/tool/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

constexpr std::size_t kMinBarWidth = 8;

double Number(const client::Value& value) {
  return std::visit(
      [](const auto& v) -> double {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, client::Ipv6>) {
          return std::numeric_limits<double>::quiet_NaN();
        } else if constexpr (std::is_same_v<T, client::Ipv4>) {
          return v.address;
        } else {
          return static_cast<double>(v);
        }
      },
      value.kind);
}

// The middle of [count_low, count_high].
double Count(const client::HistogramBucket& b) {
  return static_cast<double>(b.count_low) + static_cast<double>(b.count_high - b.count_low) / 2;
}

// Lengths of the bars, the longest 1.
std::vector<double> Shares(const client::HistogramAnswer& answer, Bars bars) {
  std::vector<double> shares;
  double largest = 0;
  for (const auto& b : answer.buckets) {
    double size = Count(b);
    if (bars == Bars::kDensity) {
      const double width = b.low && b.high ? Number(*b.high) - Number(*b.low)
                                           : std::numeric_limits<double>::quiet_NaN();
      if (!std::isfinite(width)) {
        size = 0;
      } else if (size > 0) {
        size = width > 0 ? size / width : std::numeric_limits<double>::infinity();
      }
    }
    if (std::isfinite(size)) largest = std::max(largest, size);
    shares.push_back(size);
  }
  for (double& share : shares) {
    if (std::isinf(share)) {
      share = 1;
    } else if (largest > 0) {
      share /= largest;
    }
  }
  return shares;
}

}  // namespace

std::string Bar(double share, std::size_t width, bool utf8) {
  if (!(share > 0)) return "";
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const std::size_t parts = utf8 ? 8 : 1;
  const auto all = static_cast<double>(width * parts);
  const auto filled =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::llround(std::min(share, 1.0) * all)));
  std::string out;
  for (std::size_t i = 0; i < filled / parts; ++i) out += utf8 ? "█" : "#";
  if (utf8) out += kEighths[filled % parts];
  return out;
}

std::string Plot(const client::HistogramAnswer& answer, Bars bars, const Terminal& terminal) {
  const std::vector<double> shares = Shares(answer, bars);
  // First without bars, to see how much room they have.
  const auto draw = [&](std::size_t bar_width) {
    Table table({"from above", "up to", "count_low", "count_high",
                 bar_width == 0           ? ""
                 : bars == Bars::kDensity ? "values per unit"
                                          : "values"},
                {true, true, true, true, false});
    for (std::size_t i = 0; i < answer.buckets.size(); ++i) {
      const auto& b = answer.buckets[i];
      table.Add({b.low ? ShowValue(*b.low) : "", b.high ? ShowValue(*b.high) : "",
                 std::to_string(b.count_low), std::to_string(b.count_high),
                 bar_width == 0 ? "" : Bar(shares[i], bar_width, terminal.utf8)});
    }
    return table.ToString();
  };
  std::size_t used = 0;
  {
    const std::string plain = draw(0);
    std::size_t start = 0;
    while (start < plain.size()) {
      const std::size_t end = plain.find('\n', start);
      used = std::max(used, DisplayWidth(std::string_view(plain).substr(start, end - start)));
      start = end + 1;
    }
  }
  const std::size_t room = terminal.width > used + 2 ? terminal.width - used - 2 : 0;
  return Heading(answer) + draw(std::max(room, kMinBarWidth));
}

}  // namespace tidemark::tool
