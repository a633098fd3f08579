// Sequences of numbers that summaries find hard or users have, each value from its position and a
// seeded generator.
#ifndef TIDEMARK_TESTS_SUPPORT_SHAPES_H_
#define TIDEMARK_TESTS_SUPPORT_SHAPES_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>

namespace tidemark::test {

enum class Shape {
  kUniform,
  kLognormal,
  kZipf,
  kSorted,
  kReversed,
  kEqual,
  kFewDistinct,
  kSawtooth,
  kExtremes,  ///< ±inf, the largest and smallest finite numbers, both zeros; of integers the ends
  kTiny,      ///< denormals; of integers a handful around zero and around the sign bit
};
inline constexpr Shape kShapes[] = {
    Shape::kUniform, Shape::kLognormal,   Shape::kZipf,     Shape::kSorted,   Shape::kReversed,
    Shape::kEqual,   Shape::kFewDistinct, Shape::kSawtooth, Shape::kExtremes, Shape::kTiny};

inline std::string_view ShapeName(Shape shape) {
  static constexpr std::string_view kNames[] = {"uniform",  "lognormal", "zipf",     "sorted",
                                                "reversed", "equal",     "distinct", "sawtooth",
                                                "extremes", "tiny"};
  return kNames[static_cast<std::size_t>(shape)];
}

/// Items of a Zipf law with exponent about 1.1 over 100,000 ranks.
inline std::uint32_t ZipfRank(std::mt19937_64& random) {
  // Inverse of the continuous law's distribution function; close enough to the discrete one.
  constexpr double kExponent = 1.1;
  constexpr double kRanks = 1e5;
  const double u = std::uniform_real_distribution<double>(0, 1)(random);
  const double top = std::pow(kRanks, 1 - kExponent) - 1;
  return static_cast<std::uint32_t>(std::pow(u * top + 1, 1 / (1 - kExponent)));
}

/// The i-th of n values.
template <class Float>
Float FloatOf(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
  using Limits = std::numeric_limits<Float>;
  switch (shape) {
    case Shape::kUniform:
      return std::uniform_real_distribution<Float>(-1000, 1000)(random);
    case Shape::kLognormal:
      return std::exp(std::normal_distribution<Float>(0, 2)(random));
    case Shape::kZipf:
      return static_cast<Float>(ZipfRank(random));
    case Shape::kSorted:
      return static_cast<Float>(i) / 2 - 100;
    case Shape::kReversed:
      return static_cast<Float>(n - i) / 2 - 100;
    case Shape::kEqual:
      return Float{42.5};
    case Shape::kFewDistinct:
      return static_cast<Float>(random() % 7) - 3;
    case Shape::kSawtooth:
      return static_cast<Float>(i % 100);
    case Shape::kExtremes: {
      const Float values[] = {
          Limits::infinity(), -Limits::infinity(), Limits::max(), Limits::lowest(),
          Float{0},           -Float{0},           Limits::min(), Float{1}};
      return values[random() % std::size(values)];
    }
    case Shape::kTiny:
      return Limits::denorm_min() *
             static_cast<Float>(static_cast<std::int64_t>(random() % 20'001) - 10'000);
  }
  return 0;
}

template <class Integer>
Integer IntegerOf(Shape shape, std::size_t i, std::size_t n, std::mt19937_64& random) {
  using Limits = std::numeric_limits<Integer>;
  switch (shape) {
    case Shape::kUniform:
      return static_cast<Integer>(random());
    case Shape::kLognormal:
      return static_cast<Integer>(std::exp(std::normal_distribution<double>(8, 2)(random)));
    case Shape::kZipf:
      return static_cast<Integer>(ZipfRank(random));
    case Shape::kSorted:
      return static_cast<Integer>(3 * i);
    case Shape::kReversed:
      return static_cast<Integer>(3 * (n - i));
    case Shape::kEqual:
      return 42;
    case Shape::kFewDistinct:
      return static_cast<Integer>(random() % 7);
    case Shape::kSawtooth:
      return static_cast<Integer>(i % 100);
    case Shape::kExtremes: {
      const Integer values[] = {Limits::min(), Limits::max(), 0, static_cast<Integer>(-1),
                                Limits::max() / 2 + 1};
      return values[random() % std::size(values)];
    }
    case Shape::kTiny:
      return static_cast<Integer>(static_cast<Integer>(random() % 5) - 2 +
                                  (random() % 2 == 0 ? 0 : Limits::max() / 2));
  }
  return 0;
}

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_SHAPES_H_
