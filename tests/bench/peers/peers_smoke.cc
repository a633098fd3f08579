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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/peers/peer.h"

namespace tidemark::peers {
namespace {

constexpr std::size_t kValues = 700'000;  // two full windows and an open one

std::set<std::string> faults;  // each once, however many answers have it
void Expect(bool right, const Variant& variant, const char* what) {
  if (right) return;
  const std::string fault = std::string(variant.name) + ": " + what;
  if (faults.insert(fault).second) std::fprintf(stderr, "%s\n", fault.c_str());
}

/// How far a bound may lie from its target.
double Slack(const Variant& variant, double phi) {
  if (variant.tail_epsilon == 0) return variant.epsilon * kValues + 1;
  return phi < 0.5 ? kValues : variant.tail_epsilon * ((1 - phi) * kValues + 1) + 1;
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
  for (std::size_t i = 0; i < phis.size(); ++i) {
    const auto [from, to] = std::equal_range(values.begin(), values.end(), answers[i]);
    const auto first = static_cast<std::uint64_t>(from - values.begin()) + 1;
    const auto last = static_cast<std::uint64_t>(to - values.begin());
    Expect(first <= last, variant, "an answer is no value of the stream");
    Expect(low[i] <= last && high[i] >= first, variant, "a certificate does not hold the truth");
    const double target = phis[i] * kValues;
    const double slack = Slack(variant, phis[i]);
    Expect(std::abs(static_cast<double>(low[i]) - target) <= slack &&
               std::abs(static_cast<double>(high[i]) - target) <= slack,
           variant, "a certificate is wider than epsilon");
  }
  const auto twice = peer->Clone();
  twice->Merge(*peer);
  twice->Quantiles(phis, answers.data(), low.data(), high.data());
  Expect(answers.back() == values.back(), variant, "the maximum of a merge");
}

void CheckSliding(const Variant& variant) {
  // The window holds everything, and is right about it, then only the last million, all ones.
  std::vector<float> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) values[i] = static_cast<float>(i);
  const auto peer = variant.make();
  peer->Add(values.data(), kValues);
  const double median = 0.5;
  float answer = 0;
  std::uint64_t low = 0, high = 0;
  peer->Quantiles({&median, 1}, &answer, &low, &high);
  Expect(std::abs(answer - kValues / 2.0f) <= 0.01f * kValues, variant, "the median of the ramp");
  std::fill(values.begin(), values.end(), 1.0f);
  peer->Add(values.data(), kValues);
  peer->Add(values.data(), kValues);
  peer->Quantiles({&median, 1}, &answer, &low, &high);
  Expect(answer == 1.0f && high <= 1'000'000, variant, "forgets nothing");
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
  if (kind == "sliding") CheckSliding(variant);
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
    std::printf("%s\n", variant.name);
  }
  return tidemark::peers::faults.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}
