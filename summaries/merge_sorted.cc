#include "summaries/merge_sorted.h"

#include <cstdint>

namespace tidemark {

namespace {

// One merge, from both ends.
template <class Key>
class Merge {
 public:
  Merge(const Key* a, const Key* b, std::size_t n, Key* out)
      : a_(a),
        b_(b),
        back_a_(static_cast<std::ptrdiff_t>(n) - 1),
        back_b_(back_a_),
        out_(out),
        top_(out + 2 * n - 1) {}

  // REQUIRES: called for step 0, 1, … n - 1.
  void Step(std::size_t step) {
    const Key low_a = a_[front_a_], low_b = b_[front_b_];
    const bool from_b = low_b < low_a;
    out_[step] = from_b ? low_b : low_a;
    front_b_ += from_b;
    front_a_ += !from_b;

    const Key high_a = a_[back_a_], high_b = b_[back_b_];
    const bool from_a = high_b < high_a;
    *top_-- = from_a ? high_a : high_b;
    back_a_ -= from_a;
    back_b_ -= !from_a;
  }

 private:
  const Key* a_;
  const Key* b_;
  std::size_t front_a_ = 0, front_b_ = 0;  // front_a_ + front_b_ == step
  std::ptrdiff_t back_a_, back_b_;
  Key* out_;
  Key* top_;
};

}  // namespace

template <class Key>
void MergeEqualLengths(const Key* a, const Key* b, std::size_t n, Key* out) {
  if (n == 0) return;
  Merge<Key> merge(a, b, n, out);
  for (std::size_t step = 0; step < n; ++step) merge.Step(step);
}

template <class Key>
void MergeEqualLengths(const Key* a, const Key* b, Key* out_ab, const Key* c, const Key* d,
                       Key* out_cd, std::size_t n) {
  if (n == 0) return;
  Merge<Key> ab(a, b, n, out_ab), cd(c, d, n, out_cd);
  for (std::size_t step = 0; step < n; ++step) {
    ab.Step(step);
    cd.Step(step);
  }
}

template void MergeEqualLengths(const std::uint32_t*, const std::uint32_t*, std::size_t,
                                std::uint32_t*);
template void MergeEqualLengths(const std::uint64_t*, const std::uint64_t*, std::size_t,
                                std::uint64_t*);

template void MergeEqualLengths(const std::uint32_t*, const std::uint32_t*, std::uint32_t*,
                                const std::uint32_t*, const std::uint32_t*, std::uint32_t*,
                                std::size_t);
template void MergeEqualLengths(const std::uint64_t*, const std::uint64_t*, std::uint64_t*,
                                const std::uint64_t*, const std::uint64_t*, std::uint64_t*,
                                std::size_t);

}  // namespace tidemark
