// A histogram drawn with characters, one line for each bucket.
#ifndef TIDEMARK_CLIENT_TOOL_PLOT_H_
#define TIDEMARK_CLIENT_TOOL_PLOT_H_

#include <cstddef>
#include <string>

#include "client/answers.h"
#include "client/tool/terminal.h"

namespace tidemark::tool {

enum class Bars {
  kCount,    ///< as long as the bucket's count: for buckets between given bounds
  kDensity,  ///< as long as count / (high - low): buckets of equal count show where values are
             ///< dense
};

/// A bar of `share` (0 to 1) of `width` columns: whole and eighth blocks, or '#' without UTF-8.
/// A share above 0 always shows something.
std::string Bar(double share, std::size_t width, bool utf8);

/// Heading, then for each bucket: its bounds, [count_low, count_high], and its bar; no line is
/// wider than the terminal unless the numbers alone are. Densities: a bucket of no width (one value
/// holds it whole) or without a finite number for each bound has no density; the former gets a full
/// bar, the latter none.
std::string Plot(const client::HistogramAnswer& answer, Bars bars, const Terminal& terminal);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_PLOT_H_
