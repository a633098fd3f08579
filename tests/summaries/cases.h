// How many random cases a property is tried on.
#ifndef TIDEMARK_TESTS_SUMMARIES_CASES_H_
#define TIDEMARK_TESTS_SUMMARIES_CASES_H_

#include <cstdint>
#include <cstdlib>

namespace tidemark {

/// `usual` in the test run; `extended` where TIDEMARK_EXTENDED is set (`./dev test --extended`).
inline int Cases(int usual, int extended = 100'000) {
  return std::getenv("TIDEMARK_EXTENDED") != nullptr ? extended
                                                     : usual;  // NOLINT(concurrency-mt-unsafe)
}

/// The same, for loops over seeds.
inline std::uint64_t Seeds(int usual, int extended = 100'000) {
  return static_cast<std::uint64_t>(Cases(usual, extended));
}

}  // namespace tidemark

#endif  // TIDEMARK_TESTS_SUMMARIES_CASES_H_
