#include "client/tool/watch_command.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "client/tool/interrupt.h"
#include "client/tool/json.h"
#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

// Rows between two headings, so that one is always on the screen.
constexpr std::size_t kHeadingEvery = 20;

std::string ShowTime(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 16> text{};
  return std::string(text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &local));
}

std::string Pad(const std::string& text, std::size_t width) {
  const std::size_t used = DisplayWidth(text);
  return std::string(used < width ? width - used : 0, ' ') + text;
}

class Printer {
 public:
  Printer(const WatchCommandOptions& options, const Environment& environment)
      : options_(options), environment_(environment) {}

  void Print(const client::WatchAnswer& answer) {
    if (options_.json) {
      environment_.out << Dump(ToJson(answer)) << "\n";
    } else if (const auto* quantiles = std::get_if<client::QuantilesAnswer>(&answer.answer)) {
      PrintRow(answer, *quantiles);
    } else {
      PrintTable(answer);
    }
    environment_.out << std::flush;
  }

 private:
  // Columns: wide enough for n up to 10^12 and "value [low, high]" of the like.
  static constexpr std::size_t kCountWidth = 13;
  static constexpr std::size_t kAnswerWidth = 36;

  void PrintRow(const client::WatchAnswer& answer, const client::QuantilesAnswer& quantiles) {
    if (rows_++ % kHeadingEvery == 0) {
      environment_.out << Printable(quantiles.stream) << ", epsilon "
                       << ShowNumber(quantiles.epsilon) << ": value [rank_low, rank_high]\n"
                       << "time    " << Pad("n", kCountWidth);
      for (const auto& a : quantiles.answers) {
        environment_.out << "  " << Pad("phi " + ShowNumber(a.phi), kAnswerWidth);
      }
      environment_.out << "\n";
    }
    environment_.out << ShowTime(answer.time) << Pad(std::to_string(quantiles.n), kCountWidth);
    for (const auto& a : quantiles.answers) {
      environment_.out << "  "
                       << Pad(ShowValue(a.value) + " [" + std::to_string(a.rank_low) + ", " +
                                  std::to_string(a.rank_high) + "]",
                              kAnswerWidth);
    }
    PrintSkipped(answer);
    environment_.out << "\n";
  }

  void PrintTable(const client::WatchAnswer& answer) {
    if (environment_.out_terminal.is_terminal && rows_++ > 0) {
      environment_.out << "\x1b[" << lines_ << "A\x1b[J";
    }
    const std::string text =
        std::visit([](const auto& table) { return ToText(table); }, answer.answer);
    environment_.out << ShowTime(answer.time);
    PrintSkipped(answer);
    environment_.out << "\n" << text;
    if (!environment_.out_terminal.is_terminal) environment_.out << "\n";
    lines_ = 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  void PrintSkipped(const client::WatchAnswer& answer) {
    if (answer.skipped > 0) environment_.out << "  (" << answer.skipped << " answers skipped)";
  }

  const WatchCommandOptions& options_;
  const Environment& environment_;
  std::size_t rows_ = 0;
  std::size_t lines_ = 0;
};

}  // namespace

int RunWatch(const client::ClientOptions& to, const WatchCommandOptions& options,
             const Environment& environment) {
  Interrupt interrupt;
  client::Client client(to);
  client::Watch watch = options.subscription.empty()
                            ? client.Begin(options.query)
                            : client.WatchSubscription(options.subscription);
  interrupt.SetAction([&watch](int) { watch.Cancel(); });
  struct ClearAction {
    Interrupt& interrupt;
    ~ClearAction() { interrupt.SetAction({}); }
  } clear_action{interrupt};
  Printer printer(options, environment);
  while (const auto answer = watch.Next()) {
    printer.Print(*answer);
    if (!environment.out) break;  // whoever read the output is gone; the caller says so
  }
  return kDone;
}

}  // namespace tidemark::tool
