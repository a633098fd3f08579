#include "summaries/grid_vectors.h"

#include <array>
#include <numeric>

#if defined(__x86_64__) && defined(__GNUC__)
#define TIDEMARK_HAS_X86_TARGETS 1
// GCC 12 takes the intrinsics' unset operands for a mistake; clang does not know the warning.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#define TIDEMARK_HAS_X86_TARGETS 0
#endif

namespace tidemark::internal {

#if TIDEMARK_HAS_X86_TARGETS

namespace {

#define TIDEMARK_AVX512 [[gnu::target("avx512f,avx512vl,avx512cd")]]

constexpr std::size_t kLanes = 16;
static_assert(kFewBlocks == 4 * kLanes && kIndexed % kLanes == 0);

/// The shapes of 64 blocks, in four registers.
class Shapes {
 public:
  TIDEMARK_AVX512 explicit Shapes(const std::uint32_t* shapes)
      : parts_{_mm512_loadu_si512(shapes), _mm512_loadu_si512(shapes + kLanes),
               _mm512_loadu_si512(shapes + 2 * kLanes), _mm512_loadu_si512(shapes + 3 * kLanes)} {}

  TIDEMARK_AVX512 __m512i operator()(__m512i blocks) const {
    const __m512i lower = _mm512_permutex2var_epi32(parts_[0], blocks, parts_[1]);
    const __m512i upper = _mm512_permutex2var_epi32(parts_[2], blocks, parts_[3]);
    const __mmask16 is_upper = _mm512_test_epi32_mask(blocks, _mm512_set1_epi32(32));
    return _mm512_mask_blend_epi32(is_upper, lower, upper);
  }

 private:
  __m512i parts_[4];
};

/// 16 keys, in one register or two.
template <class Key>
struct Keys;

template <>
struct Keys<std::uint32_t> {
  __m512i all;

  TIDEMARK_AVX512 static Keys Load(const std::uint32_t* keys) { return {_mm512_loadu_si512(keys)}; }
  /// (key >> level) - base, mod 2^32.
  TIDEMARK_AVX512 __m512i Number(int level, std::uint32_t base) const {
    return _mm512_sub_epi32(_mm512_srl_epi32(all, _mm_cvtsi32_si128(level)),
                            _mm512_set1_epi32(static_cast<int>(base)));
  }
  /// key >> its level, mod 2^32.
  TIDEMARK_AVX512 __m512i Shifted(__m512i levels) const { return _mm512_srlv_epi32(all, levels); }
  /// LogCells::BlockOf(key - base): exponent and first digit of the distance as a number that is
  /// rounded down.
  TIDEMARK_AVX512 __m512i LogBlock(std::uint32_t base) const {
    constexpr int kDigits = 22, kBias = 2 * 127;  // of a float, after the first digit
    const __m512i distance = _mm512_max_epu32(
        _mm512_sub_epi32(all, _mm512_set1_epi32(static_cast<int>(base))), _mm512_set1_epi32(1));
    const __m512i number = _mm512_castps_si512(
        _mm512_cvt_roundepu32_ps(distance, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    return _mm512_sub_epi32(_mm512_srli_epi32(number, kDigits), _mm512_set1_epi32(kBias));
  }
};

template <>
struct Keys<std::uint64_t> {
  __m512i low, high;

  TIDEMARK_AVX512 static Keys Load(const std::uint64_t* keys) {
    return {_mm512_loadu_si512(keys), _mm512_loadu_si512(keys + kLanes / 2)};
  }
  TIDEMARK_AVX512 static __m512i Narrow(__m512i low, __m512i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)),
                              _mm512_cvtepi64_epi32(high), 1);
  }
  TIDEMARK_AVX512 __m512i Number(int level, std::uint64_t base) const {
    const __m128i shift = _mm_cvtsi32_si128(level);
    const __m512i bases = _mm512_set1_epi64(static_cast<long long>(base));
    return Narrow(_mm512_sub_epi64(_mm512_srl_epi64(low, shift), bases),
                  _mm512_sub_epi64(_mm512_srl_epi64(high, shift), bases));
  }
  TIDEMARK_AVX512 __m512i LogBlock(std::uint64_t base) const {
    const __m512i bases = _mm512_set1_epi64(static_cast<long long>(base));
    const __m512i zeros = Narrow(LeadingZeros(_mm512_sub_epi64(low, bases)),
                                 LeadingZeros(_mm512_sub_epi64(high, bases)));
    return _mm512_sub_epi32(_mm512_set1_epi32(63), zeros);
  }
  TIDEMARK_AVX512 static __m512i LeadingZeros(__m512i distances) {
    return _mm512_lzcnt_epi64(_mm512_max_epu64(distances, _mm512_set1_epi64(1)));
  }
  TIDEMARK_AVX512 __m512i Shifted(__m512i levels) const {
    const __m512i low_levels = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(levels));
    const __m512i high_levels = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(levels, 1));
    return Narrow(_mm512_srlv_epi64(low, low_levels), _mm512_srlv_epi64(high, high_levels));
  }
};

template <class Key>
TIDEMARK_AVX512 inline void Index(const Key* keys, EvenCells<Key> cells, std::uint32_t* indices) {
  for (std::size_t i = 0; i < kIndexed; i += kLanes) {
    _mm512_storeu_si512(indices + i, Keys<Key>::Load(keys + i).Number(cells.level, cells.base));
  }
}

template <class Key>
TIDEMARK_AVX512 inline __m512i BlockNumbers(Keys<Key> keys, BlockCells<Key> cells) {
  return keys.Number(cells.level, cells.base);
}
template <class Key>
TIDEMARK_AVX512 inline __m512i BlockNumbers(Keys<Key> keys, LogCells<Key> cells) {
  return keys.LogBlock(cells.base);
}

template <class Key, class Cells>
TIDEMARK_AVX512 inline void Index(const Key* keys, Cells cells, std::uint32_t* indices) {
  const Shapes shapes_of(cells.shapes);
  for (std::size_t i = 0; i < kIndexed; i += kLanes) {
    const auto key = Keys<Key>::Load(keys + i);
    const __m512i shape = shapes_of(BlockNumbers(key, cells));
    const __m512i levels = _mm512_and_si512(shape, _mm512_set1_epi32(BlockShape::kLevelMask));
    const __m512i index =
        _mm512_add_epi32(key.Shifted(levels), _mm512_srli_epi32(shape, BlockShape::kLevelBits));
    _mm512_storeu_si512(indices + i,
                        _mm512_and_si512(index, _mm512_set1_epi32(BlockShape::kIndexMask)));
  }
}

// A cell is one 64-bit or 128-bit value: its largest key in the lower half, its count above.
static_assert(sizeof(GridCell<std::uint32_t>) == 8 && sizeof(GridCell<std::uint64_t>) == 16);

TIDEMARK_AVX512 inline void AddTo(GridCell<std::uint32_t>* cell, std::uint32_t key) {
  auto* const place = reinterpret_cast<__m128i*>(cell);
  const __m128i max =
      _mm_max_epu32(_mm_loadl_epi64(place), _mm_cvtsi32_si128(static_cast<int>(key)));
  _mm_storel_epi64(place, _mm_add_epi32(max, _mm_set_epi32(0, 0, 1, 0)));
}
TIDEMARK_AVX512 inline void AddTo(GridCell<std::uint64_t>* cell, std::uint64_t key) {
  auto* const place = reinterpret_cast<__m128i*>(cell);
  const __m128i max =
      _mm_max_epu64(_mm_loadu_si128(place), _mm_cvtsi64_si128(static_cast<long long>(key)));
  _mm_storeu_si128(place, _mm_add_epi64(max, _mm_set_epi64x(1, 0)));
}

template <class Key, class Cells>
TIDEMARK_AVX512 std::size_t Count(std::span<const Key> keys, Cells cells, GridCell<Key>* counts) {
  const std::size_t part = keys.size() / kCountedPlaces / kIndexed * kIndexed;
  std::array<std::array<std::uint32_t, kIndexed>, kCountedPlaces> indices;
  for (std::size_t at = 0; at < part; at += kIndexed) {
    const Key* const first = keys.data() + at;
    for (std::size_t place = 0; place < kCountedPlaces; ++place) {
      Index(first + place * part, cells, indices[place].data());
    }
    for (std::size_t i = 0; i < kIndexed; ++i) {
      for (std::size_t place = 0; place < kCountedPlaces; ++place) {
        AddTo(counts + indices[place][i], first[place * part + i]);
      }
    }
  }
  return kCountedPlaces * part;
}

template <class Key, class Cells>
TIDEMARK_AVX512 void IndexAll(const Key* keys, Cells cells, std::uint32_t* indices) {
  Index(keys, cells, indices);
}

template <class Key>
TIDEMARK_AVX512 std::size_t SumHeavy(std::span<const GridCell<Key>> cells, std::uint64_t stride) {
  // Of the 32-bit lanes of a register those that are counts; other lanes stay 0.
  constexpr __mmask16 kCounts = sizeof(Key) == 4 ? 0xAAAA : 0x4444;
  constexpr std::size_t kCells = sizeof(__m512i) / sizeof(GridCell<Key>);
  const __m512i most = _mm512_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(stride)));
  __m512i sums = _mm512_setzero_si512();
  std::size_t at = 0;
  for (; at + kCells <= cells.size(); at += kCells) {
    const __m512i some = _mm512_loadu_si512(cells.data() + at);
    const __mmask16 heavy = _mm512_mask_cmpgt_epu32_mask(kCounts, some, most);
    sums = _mm512_mask_add_epi32(sums, heavy, sums, some);
  }
  std::array<std::uint32_t, kLanes> lanes;
  _mm512_storeu_si512(lanes.data(), sums);
  return std::accumulate(lanes.begin(), lanes.end(), std::size_t{0}) +
         HeavyKeys(cells.subspan(at), stride);
}

#undef TIDEMARK_AVX512

}  // namespace

bool HasGridVectors() {
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("avx512cd") != 0;
  }();
  return has;
}

#else

namespace {

template <class Key, class Cells>
void IndexAll(const Key* keys, Cells cells, std::uint32_t* indices) {
  for (std::size_t i = 0; i < kIndexed; ++i) {
    indices[i] = static_cast<std::uint32_t>(cells(keys[i]));
  }
}

template <class Key>
std::size_t SumHeavy(std::span<const GridCell<Key>> cells, std::uint64_t stride) {
  return HeavyKeys(cells, stride);
}

template <class Key, class Cells>
std::size_t Count(std::span<const Key>, Cells, GridCell<Key>*) {
  return 0;
}

}  // namespace

bool HasGridVectors() { return false; }

#endif

template <class Key>
void IndexKeys(const Key* keys, EvenCells<Key> cells, std::uint32_t* indices) {
  IndexAll(keys, cells, indices);
}
template <class Key>
void IndexKeys(const Key* keys, BlockCells<Key> cells, std::uint32_t* indices) {
  IndexAll(keys, cells, indices);
}
template <class Key>
void IndexKeys(const Key* keys, LogCells<Key> cells, std::uint32_t* indices) {
  IndexAll(keys, cells, indices);
}

template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, EvenCells<Key> cells, GridCell<Key>* counts) {
  return Count(keys, cells, counts);
}
template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, BlockCells<Key> cells,
                           GridCell<Key>* counts) {
  return Count(keys, cells, counts);
}
template <class Key>
std::size_t CountInVectors(std::span<const Key> keys, LogCells<Key> cells, GridCell<Key>* counts) {
  return Count(keys, cells, counts);
}

template <class Key>
std::size_t HeavyInVectors(std::span<const GridCell<Key>> cells, std::uint64_t stride) {
  return SumHeavy(cells, stride);
}

#define TIDEMARK_INSTANTIATE(Key)                                                             \
  template std::size_t HeavyInVectors(std::span<const GridCell<Key>>, std::uint64_t);         \
  template void IndexKeys(const Key*, EvenCells<Key>, std::uint32_t*);                        \
  template void IndexKeys(const Key*, BlockCells<Key>, std::uint32_t*);                       \
  template void IndexKeys(const Key*, LogCells<Key>, std::uint32_t*);                         \
  template std::size_t CountInVectors(std::span<const Key>, EvenCells<Key>, GridCell<Key>*);  \
  template std::size_t CountInVectors(std::span<const Key>, BlockCells<Key>, GridCell<Key>*); \
  template std::size_t CountInVectors(std::span<const Key>, LogCells<Key>, GridCell<Key>*);
TIDEMARK_INSTANTIATE(std::uint32_t)
TIDEMARK_INSTANTIATE(std::uint64_t)
#undef TIDEMARK_INSTANTIATE

}  // namespace tidemark::internal
