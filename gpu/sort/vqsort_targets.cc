#include "gpu/sort/vqsort_targets.h"

#include <hwy/base.h>

#include <algorithm>
#include <cctype>

// Highway 1.1 and later carry AVX3_ZEN4, which avoids compress-to-memory, and VQSortStatic.
#define TIDEMARK_HWY_VERSION (HWY_MAJOR * 100 + HWY_MINOR)

// Workaround, Highway before 1.1 on x86: its AVX-512 targets use VPCOMPRESSD/Q with a memory
// destination, which Zen 4 runs from microcode: 5 to 10 times slower. The same store written as
// compress in a register and a masked store has the same effect (exactly the selected lanes are
// written) and is fast everywhere. The macros rename the intrinsics for Highway's headers below.
#if TIDEMARK_HWY_VERSION < 101 && HWY_ARCH_X86_64
#include <immintrin.h>
#define TIDEMARK_FIRST_LANES(mask) _bzhi_u32(~0U, static_cast<unsigned>(_mm_popcnt_u32(mask)))
#define _mm512_mask_compressstoreu_epi32(to, mask, v)                                \
  _mm512_mask_storeu_epi32((to), static_cast<__mmask16>(TIDEMARK_FIRST_LANES(mask)), \
                           _mm512_maskz_compress_epi32((mask), (v)))
#define _mm512_mask_compressstoreu_epi64(to, mask, v)                               \
  _mm512_mask_storeu_epi64((to), static_cast<__mmask8>(TIDEMARK_FIRST_LANES(mask)), \
                           _mm512_maskz_compress_epi64((mask), (v)))
#endif

// GCC takes the vector that its own AVX-512 intrinsics leave undefined on purpose for a variable
// that somebody forgot to set (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// Every target, also those that the compiler's flags (-march=native) make unnecessary in Highway's
// view: the widest is not always the fastest.
#define HWY_COMPILE_ALL_ATTAINABLE
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/sort/vqsort_targets.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After highway.h: these choose their target by the macros that it sets.
#include <hwy/contrib/sort/traits-inl.h>
#include <hwy/contrib/sort/traits128-inl.h>
#include <hwy/contrib/sort/vqsort-inl.h>

HWY_BEFORE_NAMESPACE();
namespace tidemark::sort::HWY_NAMESPACE {

// The emulated targets have no vectors; radix sort and std::sort are the better fallback there.
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
template <class Key>
void VqsortOne(Key* keys, std::size_t n) {
  if (n < 2) return;
#if TIDEMARK_HWY_VERSION >= 101
  hwy::HWY_NAMESPACE::VQSortStatic(keys, n, hwy::SortAscending());
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::SortTag<Key> d;
  const hn::detail::SharedTraits<hn::detail::TraitsLane<hn::detail::OrderAscending<Key> > > traits;
  hn::Sort(d, traits, keys, n, static_cast<Key*>(nullptr));
#endif
}

HWY_ATTR void VqsortU32(std::uint32_t* keys, std::size_t n) { VqsortOne(keys, n); }
HWY_ATTR void VqsortU64(std::uint64_t* keys, std::size_t n) { VqsortOne(keys, n); }
// Highway sees a key of 128 bits as two lanes of 64, the lower half first: as it lies in memory.
HWY_ATTR void VqsortU128(Key128* keys, std::size_t n) {
  if (n < 2) return;
#if TIDEMARK_HWY_VERSION >= 101
  hwy::HWY_NAMESPACE::VQSortStatic(reinterpret_cast<hwy::uint128_t*>(keys), n,
                                   hwy::SortAscending());
#else
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::SortTag<std::uint64_t> d;
  const hn::detail::SharedTraits<hn::detail::Traits128<hn::detail::OrderAscending128> > traits;
  hn::Sort(d, traits, reinterpret_cast<std::uint64_t*>(keys), 2 * n,
           static_cast<std::uint64_t*>(nullptr));
#endif
}
#endif

}  // namespace tidemark::sort::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tidemark::sort {
namespace {

[[maybe_unused]] void AddIfSupported(std::int64_t target, VqsortTarget entry,
                                     std::vector<VqsortTarget>& out) {
  if ((hwy::SupportedTargets() & target) == 0) return;
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  entry.name = "vqsort-" + name;
  out.push_back(std::move(entry));
}

}  // namespace

// HWY_TARGETS is the set that foreach_target.h compiled above.
#define TIDEMARK_ADD_TARGET(NAME)                                                                  \
  AddIfSupported(HWY_##NAME, {{}, N_##NAME::VqsortU32, N_##NAME::VqsortU64, N_##NAME::VqsortU128}, \
                 out)

bool BuiltWithVqsort() { return true; }

std::vector<VqsortTarget> SupportedVqsortTargets() {
  std::vector<VqsortTarget> out;
#if defined(HWY_AVX3_SPR) && (HWY_TARGETS & HWY_AVX3_SPR)
  TIDEMARK_ADD_TARGET(AVX3_SPR);
#endif
#if defined(HWY_AVX3_ZEN4) && (HWY_TARGETS & HWY_AVX3_ZEN4)
  TIDEMARK_ADD_TARGET(AVX3_ZEN4);
#endif
#if HWY_TARGETS & HWY_AVX3_DL
  TIDEMARK_ADD_TARGET(AVX3_DL);
#endif
#if HWY_TARGETS & HWY_AVX3
  TIDEMARK_ADD_TARGET(AVX3);
#endif
#if HWY_TARGETS & HWY_AVX2
  TIDEMARK_ADD_TARGET(AVX2);
#endif
#if HWY_TARGETS & HWY_SSE4
  TIDEMARK_ADD_TARGET(SSE4);
#endif
#if HWY_TARGETS & HWY_SVE2_128
  TIDEMARK_ADD_TARGET(SVE2_128);
#endif
#if HWY_TARGETS & HWY_SVE_256
  TIDEMARK_ADD_TARGET(SVE_256);
#endif
#if HWY_TARGETS & HWY_NEON
  TIDEMARK_ADD_TARGET(NEON);
#endif
  return out;
}

}  // namespace tidemark::sort
#endif  // HWY_ONCE
