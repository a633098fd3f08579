// Values to push: every type in many shapes, from a seed.
#ifndef TIDEMARK_TESTS_E2E_VALUES_H_
#define TIDEMARK_TESTS_E2E_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "client/value.h"
#include "tests/support/shapes.h"

namespace tidemark::test {

/// The i-th of n values.
template <class T>
T ValueOf(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    return FloatOf<T>(shape, i, n, random);
  } else if constexpr (std::is_same_v<T, client::Ipv4>) {
    return client::Ipv4{IntegerOf<std::uint32_t>(shape, i, n, random)};
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string item = "größe-";
    item += std::to_string(IntegerOf<std::uint32_t>(shape, i, n, random));
    return item;
  } else {
    return IntegerOf<T>(shape, i, n, random);
  }
}

template <class T>
std::vector<T> MakeValues(Shape shape, std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values;
  values.reserve(n);
  for (std::size_t i = 0; i < n; ++i) values.push_back(ValueOf<T>(shape, i, n, random));
  return values;
}

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_E2E_VALUES_H_
