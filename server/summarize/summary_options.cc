#include "server/summarize/summary_options.h"

namespace tidemark::server {

std::string_view QuantileKindName(QuantileKind form) {
  switch (form) {
    case QuantileKind::kHistogram:
      return "histogram";
    case QuantileKind::kCompact:
      return "compact";
    case QuantileKind::kTail:
      return "tail";
  }
  return "unknown";
}

std::optional<QuantileKind> ParseQuantileKind(std::string_view name) {
  for (const QuantileKind form :
       {QuantileKind::kHistogram, QuantileKind::kCompact, QuantileKind::kTail}) {
    if (QuantileKindName(form) == name) return form;
  }
  return std::nullopt;
}

}  // namespace tidemark::server
