#include "summaries/support_rule.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

#include "summaries/fraction.h"

namespace tidemark {
namespace {

std::string Digits(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  return text;
}

}  // namespace

double LeastSupport(std::uint64_t absent, std::uint64_t n) {
  if (absent == 0) return 0;
  double support = static_cast<double>(absent + 1) / static_cast<double>(n);
  // Rounding may have brought it one step too low.
  while (support <= 1 && CeilFraction(support, n) <= absent) {
    support = std::nextafter(support, std::numeric_limits<double>::infinity());
  }
  return support;
}

std::uint64_t CheckSupport(double support, std::uint64_t absent, std::uint64_t n,
                           const char* what) {
  if (!(support > 0 && support <= 1)) {
    throw std::invalid_argument("support is " + Digits(support) +
                                ", expected a number above 0 and at most 1");
  }
  const std::uint64_t wanted = CeilFraction(support, n);
  if (n > 0 && wanted <= absent) {
    throw std::invalid_argument("support is " + Digits(support) + ", expected at least " +
                                Digits(LeastSupport(absent, n)) + ": " + what +
                                " without an entry may have come " + std::to_string(absent) +
                                " times in " + std::to_string(n) + " values");
  }
  return wanted;
}

}  // namespace tidemark
