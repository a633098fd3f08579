// How much a fault run does: a little in the test run, all of it by `./dev fault`.
#ifndef TIDEMARK_TESTS_FAULT_ROUNDS_H_
#define TIDEMARK_TESTS_FAULT_ROUNDS_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tidemark::fault {

/// TIDEMARK_FAULT_ROUNDS: unset, `usual`; "long", `extended`; a number, that.
inline int Rounds(int usual, int extended) {
  const char* const asked = std::getenv("TIDEMARK_FAULT_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  if (asked == nullptr || *asked == '\0') return usual;
  if (std::string(asked) == "long") return extended;
  return static_cast<int>(std::strtol(asked, nullptr, 10));
}

/// Whether it is more than the test run's form.
inline bool Extended() {
  const char* const asked = std::getenv("TIDEMARK_FAULT_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return asked != nullptr && *asked != '\0';
}

/// TIDEMARK_FAULT_SEED, or the same one always; what a program prints when it fails.
inline std::uint64_t Seed() {
  const char* const asked = std::getenv("TIDEMARK_FAULT_SEED");  // NOLINT(concurrency-mt-unsafe)
  return asked == nullptr || *asked == '\0' ? 20'261'122 : std::strtoull(asked, nullptr, 10);
}

/// Says how far a long run is.
inline void TellProgress(const char* what, int done, int rounds) {
  if (!Extended()) return;
  std::printf("%s: %d of %d\n", what, done, rounds);
  std::fflush(stdout);
}

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_ROUNDS_H_
