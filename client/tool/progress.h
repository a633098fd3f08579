// The line that a long push draws on a terminal. Time is passed in.
#ifndef TIDEMARK_CLIENT_TOOL_PROGRESS_H_
#define TIDEMARK_CLIENT_TOOL_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client/tool/terminal.h"

namespace tidemark::tool {

class Progress {
 public:
  /// total_bytes: of the whole input, repeats included; nullopt if unknown.
  Progress(const Terminal& terminal, std::optional<std::uint64_t> total_bytes);

  /// What to write now, to draw over the line before: "" when nothing is due, which is always so on
  /// what is no terminal, in the first half second, and within a tenth of a second of the last.
  std::string Update(std::chrono::duration<double> elapsed, std::uint64_t bytes,
                     std::uint64_t values);
  /// Takes the line away; "" if there is none.
  std::string Clear();

 private:
  Terminal terminal_;
  std::optional<std::uint64_t> total_bytes_;
  std::chrono::duration<double> next_{0.5};
  bool drawn_ = false;
};

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_PROGRESS_H_
