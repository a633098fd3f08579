// Ranges of pairs from the command line.
#ifndef TIDEMARK_CLIENT_TOOL_SUM_RANGES_H_
#define TIDEMARK_CLIENT_TOOL_SUM_RANGES_H_

#include <string>
#include <vector>

#include "client/answers.h"

namespace tidemark::tool {

/// As given; in this order in the answer.
struct SumOptions {
  std::vector<std::string> at_most;      ///< values
  std::vector<std::string> between;      ///< "LOW,HIGH", values
  std::vector<std::string> phi;          ///< shares
  std::vector<std::string> between_phi;  ///< "LOW,HIGH", shares
};
struct CompareOptions {
  std::string other;
  std::string threshold = "0.05";
};

/// Errors: UsageError if there is none, or for what is no value of the type, no share or no pair.
std::vector<client::SumRange> SumRanges(client::ValueType type, const SumOptions& options);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_SUM_RANGES_H_
