#include "summaries/block_indices.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TIDEMARK_HAS_X86_TARGETS 1
// GCC 12 takes the intrinsics' unset operands for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#define TIDEMARK_HAS_X86_TARGETS 0
#endif

namespace tidemark::internal {

#if TIDEMARK_HAS_X86_TARGETS

namespace {

#define TIDEMARK_AVX512 [[gnu::target("avx512f")]]

constexpr std::size_t kLanes = 16;
static_assert(kFewBlocks == 4 * kLanes && kIndexedTogether == kLanes);

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

TIDEMARK_AVX512 inline __m512i Both(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// From each key shifted to its cell's number, and its shape.
TIDEMARK_AVX512 inline __m512i Index(__m512i numbers, __m512i shapes) {
  const __m512i index =
      _mm512_add_epi32(numbers, _mm512_srli_epi32(shapes, BlockShape::kLevelBits));
  return _mm512_and_si512(index, _mm512_set1_epi32(BlockShape::kIndexMask));
}

TIDEMARK_AVX512 void IndicesAvx512(std::span<const std::uint32_t> keys,
                                   BlockCells<std::uint32_t> cells, std::uint32_t* indices) {
  const Shapes shapes_of(cells.shapes);
  const __m128i level = _mm_cvtsi32_si128(cells.level);
  const __m512i base = _mm512_set1_epi32(static_cast<int>(cells.base));
  const __m512i levels = _mm512_set1_epi32(BlockShape::kLevelMask);
  for (std::size_t i = 0; i < keys.size(); i += kLanes) {
    const __m512i key = _mm512_loadu_si512(keys.data() + i);
    const __m512i shape = shapes_of(_mm512_sub_epi32(_mm512_srl_epi32(key, level), base));
    const __m512i number = _mm512_srlv_epi32(key, _mm512_and_si512(shape, levels));
    _mm512_storeu_si512(indices + i, Index(number, shape));
  }
}

TIDEMARK_AVX512 void IndicesAvx512(std::span<const std::uint64_t> keys,
                                   BlockCells<std::uint64_t> cells, std::uint32_t* indices) {
  const Shapes shapes_of(cells.shapes);
  const __m128i level = _mm_cvtsi32_si128(cells.level);
  const __m512i base = _mm512_set1_epi64(static_cast<long long>(cells.base));
  const __m512i levels = _mm512_set1_epi64(BlockShape::kLevelMask);
  for (std::size_t i = 0; i < keys.size(); i += kLanes) {
    const __m512i low = _mm512_loadu_si512(keys.data() + i);
    const __m512i high = _mm512_loadu_si512(keys.data() + i + kLanes / 2);
    const __m256i low_blocks =
        _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_srl_epi64(low, level), base));
    const __m256i high_blocks =
        _mm512_cvtepi64_epi32(_mm512_sub_epi64(_mm512_srl_epi64(high, level), base));
    const __m512i shape = shapes_of(Both(low_blocks, high_blocks));
    const __m512i low_shape = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(shape));
    const __m512i high_shape = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(shape, 1));
    const __m256i low_number =
        _mm512_cvtepi64_epi32(_mm512_srlv_epi64(low, _mm512_and_si512(low_shape, levels)));
    const __m256i high_number =
        _mm512_cvtepi64_epi32(_mm512_srlv_epi64(high, _mm512_and_si512(high_shape, levels)));
    _mm512_storeu_si512(indices + i, Index(Both(low_number, high_number), shape));
  }
}

#undef TIDEMARK_AVX512

}  // namespace

bool HasBlockIndices() {
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") != 0;
  }();
  return has;
}

void BlockIndices(std::span<const std::uint32_t> keys, BlockCells<std::uint32_t> cells,
                  std::uint32_t* indices) {
  IndicesAvx512(keys, cells, indices);
}
void BlockIndices(std::span<const std::uint64_t> keys, BlockCells<std::uint64_t> cells,
                  std::uint32_t* indices) {
  IndicesAvx512(keys, cells, indices);
}

#else

namespace {

template <class Key>
void Indices(std::span<const Key> keys, BlockCells<Key> cells, std::uint32_t* indices) {
  for (const Key key : keys) *indices++ = static_cast<std::uint32_t>(cells(key));
}

}  // namespace

bool HasBlockIndices() { return false; }

void BlockIndices(std::span<const std::uint32_t> keys, BlockCells<std::uint32_t> cells,
                  std::uint32_t* indices) {
  Indices(keys, cells, indices);
}
void BlockIndices(std::span<const std::uint64_t> keys, BlockCells<std::uint64_t> cells,
                  std::uint32_t* indices) {
  Indices(keys, cells, indices);
}

#endif

}  // namespace tidemark::internal
