#include "client/tool/progress.h"

#include <algorithm>

#include "client/tool/plot.h"
#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress(const Terminal& terminal, std::optional<std::uint64_t> total_bytes)
    : terminal_(terminal), total_bytes_(total_bytes) {}

std::string Progress::Update(std::chrono::duration<double> elapsed, std::uint64_t bytes,
                             std::uint64_t values) {
  if (!terminal_.is_terminal || elapsed < next_) return "";
  next_ = elapsed + std::chrono::milliseconds(100);
  drawn_ = true;
  const std::string rate = ShowRate(static_cast<double>(values)) + " values, " +
                           ShowRate(static_cast<double>(values) / elapsed.count()) + " values/s";
  if (!total_bytes_ || *total_bytes_ == 0) return kEraseLine + rate;
  const double share =
      std::min(1.0, static_cast<double>(bytes) / static_cast<double>(*total_bytes_));
  const std::string percent = std::to_string(static_cast<int>(share * 100));
  // Around the bar: "[", "] ", " %  ", and the last column of the terminal stays free.
  const std::size_t taken = DisplayWidth(percent) + DisplayWidth(rate) + 8;
  const std::size_t width =
      std::min<std::size_t>(40, terminal_.width > taken + 10 ? terminal_.width - taken : 10);
  const std::string bar = Bar(share, width, terminal_.utf8);
  std::string line = kEraseLine;
  line += '[';
  line += bar;
  line.append(width - DisplayWidth(bar), ' ');
  line += "] ";
  line += percent;
  line += " %  ";
  line += rate;
  return line;
}

std::string Progress::Clear() {
  if (!drawn_) return "";
  drawn_ = false;
  return kEraseLine;
}

}  // namespace tidemark::tool
