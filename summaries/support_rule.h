// Which supports can be asked of counts that are known with a bound.
#ifndef TIDEMARK_SUMMARIES_SUPPORT_RULE_H_
#define TIDEMARK_SUMMARIES_SUPPORT_RULE_H_

#include <cstdint>

namespace tidemark {

/// The smallest support that stands for a whole number of `n` values and for more than `absent`,
/// which an item that is not known may have come; 0 if absent == 0, above 1 if there is none.
double LeastSupport(std::uint64_t absent, std::uint64_t n);

/// ceil(support * n). Errors: throws std::invalid_argument if support is not in (0, 1], or stands
/// for at most `absent` values; the message names LeastSupport(). `what`: of what a value that is
/// not known may be the count, "an item", "a prefix".
std::uint64_t CheckSupport(double support, std::uint64_t absent, std::uint64_t n, const char* what);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_SUPPORT_RULE_H_
