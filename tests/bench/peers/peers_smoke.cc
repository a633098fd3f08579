// Every peer of Tidemark's own table, small and without Python: takes values in, answers within its
// bounds, merges. Exit status 1 and a line for each fault otherwise.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "tests/bench/peers/peer.h"

namespace tidemark::peers {
namespace {

constexpr std::size_t kValues = 700'000;  // two full windows and an open one

int faults = 0;
void Expect(bool right, const Variant& variant, const char* what) {
  if (right) return;
  ++faults;
  std::fprintf(stderr, "%s: %s\n", variant.name, what);
}

void CheckQuantiles(const Variant& variant) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<float> values_of;
  std::vector<float> values(kValues);
  for (float& value : values) value = values_of(random);
  const auto peer = variant.make();
  peer->Add(values.data(), kValues);
  std::sort(values.begin(), values.end());
  std::vector<double> phis;
  for (int i = 0; i <= 100; ++i) phis.push_back(i / 100.0);
  std::vector<float> answers(phis.size());
  std::vector<std::uint64_t> low(phis.size()), high(phis.size());
  peer->Quantiles(phis, answers.data(), low.data(), high.data());
  const double slack = variant.epsilon * kValues + 1;
  for (std::size_t i = 0; i < phis.size(); ++i) {
    const auto [from, to] = std::equal_range(values.begin(), values.end(), answers[i]);
    const auto first = static_cast<std::uint64_t>(from - values.begin()) + 1;
    const auto last = static_cast<std::uint64_t>(to - values.begin());
    Expect(first <= last, variant, "an answer is no value of the stream");
    Expect(low[i] <= last && high[i] >= first, variant, "a certificate does not hold the truth");
    const double target = phis[i] * kValues;
    Expect(std::abs(static_cast<double>(low[i]) - target) <= slack &&
               std::abs(static_cast<double>(high[i]) - target) <= slack,
           variant, "a certificate is wider than epsilon");
  }
  const auto twice = peer->Clone();
  twice->Merge(*peer);
  twice->Quantiles(phis, answers.data(), low.data(), high.data());
  Expect(answers.back() == values.back(), variant, "the maximum of a merge");
}

template <class Item>
void CheckCounts(const Variant& variant) {
  std::mt19937_64 random(8);
  std::geometric_distribution<int> item_of(0.1);
  std::vector<Item> items(kValues);
  std::vector<std::uint64_t> truth(400);
  for (Item& item : items) {
    item = static_cast<Item>(std::min(item_of(random), 399));
    ++truth[item];
  }
  const auto peer = variant.make();
  peer->Add(items.data(), kValues);
  std::vector<Item> asked(truth.size());
  for (std::size_t i = 0; i < asked.size(); ++i) asked[i] = static_cast<Item>(i);
  std::vector<std::uint64_t> low(asked.size()), high(asked.size());
  peer->Counts(asked.data(), asked.size(), low.data(), high.data());
  std::size_t heavy = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Expect(low[i] <= truth[i] && truth[i] <= high[i], variant, "a count is outside its bounds");
    Expect(static_cast<double>(high[i] - low[i]) <= variant.epsilon * kValues, variant,
           "bounds of a count are wider than epsilon");
    heavy += truth[i] * 100 >= kValues ? 1 : 0;
  }
  Expect(peer->HeavyHitters(0.01) >= heavy, variant, "a heavy hitter is missing");
  const auto twice = peer->Clone();
  twice->Merge(*peer);
  Expect(twice->HeavyHitters(0.01) > 0, variant, "a merge has lost its items");
}

void Check(const Variant& variant) {
  const std::string_view kind = variant.kind;
  if (kind == "quantile") CheckQuantiles(variant);
  if (kind == "frequency" && std::string_view(variant.value) == "u32") {
    CheckCounts<std::uint32_t>(variant);
  }
  if (kind == "frequency" && std::string_view(variant.value) == "u64") {
    CheckCounts<std::uint64_t>(variant);
  }
  const auto peer = variant.make();
  Expect(peer->ExportBytes() > 0 && peer->WindowBytes() > 0, variant, "says nothing of its size");
}

}  // namespace
}  // namespace tidemark::peers

int main() {
  for (const auto& variant : tidemark::peers::Variants()) {
    tidemark::peers::Check(variant);
    std::printf("%s: %s\n", variant.name, tidemark::peers::faults == 0 ? "right" : "see above");
  }
  return tidemark::peers::faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
