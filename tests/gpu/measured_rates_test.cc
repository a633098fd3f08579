// Rates of an earlier start: used where they are of this machine, refused with a reason elsewhere.
#include "gpu/sort/measured_rates.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "gpu/sort/cpu_algorithms.h"
#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_class.h"
#include "tests/gpu/sort_cases.h"

namespace tidemark::sort {
namespace {

using testing::ExpectSortsLikeStdSort;
using testing::MakeKeys;

// Every algorithm at every width and class; the last one is the fastest, by a factor that no
// measurement would find.
MeasuredRates Invented(const MeasuredOn& on) {
  MeasuredRates rates{on, 1'700'000'000'000'000, {}};
  for (std::size_t width = 0; width < kKeyWidths; ++width) {
    for (std::size_t c = 0; c < kWindowClasses; ++c) {
      double rate = 1e6;
      for (const CpuAlgorithm& algorithm : CpuAlgorithms()) {
        rates.rows.push_back(
            {WidthBits(width), ClassWindow(c), "cpu", algorithm.name, rate *= 2, false});
      }
    }
  }
  return rates;
}

SorterOptions Quick(const std::string& name) {
  SorterOptions options;
  options.name = name;
  options.measure_budget_ms = 20;
  options.now_us = 1'800'000'000'000'000;
  return options;
}

TEST(MeasuredRates, OfThisMachineAreUsedAndNothingIsMeasured) {
  SorterOptions options = Quick("cpu");
  options.known = Invented(ThisMachine({}, options.measure_budget_ms));
  const SorterSelection selection = MakeSorter(options);
  EXPECT_TRUE(selection.report.cached);
  EXPECT_EQ(selection.report.not_cached, "");
  EXPECT_EQ(selection.report.measured_at_us, 1'700'000'000'000'000);
  ASSERT_EQ(selection.report.measurements.size(), options.known->rows.size());
  for (std::size_t i = 0; i < options.known->rows.size(); ++i) {
    const SorterMeasurement& known = options.known->rows[i];
    const SorterMeasurement& used = selection.report.measurements[i];
    EXPECT_EQ(used.algorithm, known.algorithm);
    EXPECT_EQ(used.keys_per_second, known.keys_per_second);
    EXPECT_EQ(used.chosen, known.algorithm == CpuAlgorithms().back().name) << known.algorithm;
  }
  ExpectSortsLikeStdSort<std::uint32_t>(*selection.sorter,
                                        {MakeKeys<std::uint32_t>("random", 5000, 1)}, "cached");
  ExpectSortsLikeStdSort<Key128>(*selection.sorter, {MakeKeys<Key128>("random", 5000, 1)}, "");
}

TEST(MeasuredRates, WhatOneStartMeasuresIsWhatTheNextKnows) {
  for (const char* name : {"cpu", "auto", "gl-abisort"}) {
    const SorterSelection first = MakeSorter(Quick(name));
    EXPECT_FALSE(first.report.cached);
    EXPECT_EQ(first.report.measured_at_us, 1'800'000'000'000'000);
    SorterOptions options = Quick(name);
    options.known = RatesOf(first.report);
    options.now_us += 1;
    const SorterSelection second = MakeSorter(options);
    EXPECT_TRUE(second.report.cached) << name << ": " << second.report.not_cached;
    EXPECT_EQ(second.report.measured_at_us, first.report.measured_at_us);
    EXPECT_EQ(second.report.reason, first.report.reason);
    EXPECT_EQ(second.report.active, first.report.active);
    ASSERT_EQ(second.report.measurements.size(), first.report.measurements.size());
    for (std::size_t i = 0; i < first.report.measurements.size(); ++i) {
      EXPECT_EQ(second.report.measurements[i].chosen, first.report.measurements[i].chosen) << i;
    }
  }
}

TEST(MeasuredRates, OfAnotherMachineAreNotUsed) {
  const MeasuredOn here = ThisMachine({"gl-compute on this GPU"}, 600);
  EXPECT_NE(here.cpu, "");
  EXPECT_NE(here.algorithms, "");
  EXPECT_EQ(WhyUnusable(Invented(here), here), "");
  const auto why = [&](const std::function<void(MeasuredOn&)>& change) {
    MeasuredOn there = here;
    change(there);
    return WhyUnusable(Invented(there), here);
  };
  EXPECT_EQ(why([](MeasuredOn& on) { on.cpu = "Z80"; }), "CPU then: Z80, now: " + here.cpu);
  EXPECT_EQ(why([](MeasuredOn& on) { on.algorithms = "bubble"; }),
            "its algorithms then: bubble, now: " + here.algorithms);
  EXPECT_EQ(why([](MeasuredOn& on) { on.gl_sorters = {"gl-compute on that GPU"}; }),
            "GL sorters then: gl-compute on that GPU, now: gl-compute on this GPU");
  EXPECT_EQ(why([](MeasuredOn& on) { on.gl_sorters.clear(); }),
            "GL sorters then: none, now: gl-compute on this GPU");
  EXPECT_EQ(why([](MeasuredOn& on) { on.budget_ms = 10; }),
            "milliseconds for measuring then: 10, now: 600");
}

TEST(MeasuredRates, RatesThatNobodyMeasuredAreNotUsed) {
  const MeasuredOn here = ThisMachine({}, 600);
  const auto why = [&](const std::function<void(std::vector<SorterMeasurement>&)>& change) {
    MeasuredRates rates = Invented(here);
    change(rates.rows);
    return WhyUnusable(rates, here);
  };
  using Rows = std::vector<SorterMeasurement>;
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(), 1e18}) {
    EXPECT_TRUE(why([&](Rows& rows) {
                  rows[3].keys_per_second = rate;
                }).starts_with("no possible rate of "));
  }
  EXPECT_TRUE(why([](Rows& rows) { rows[3].key_bits = 16; }).starts_with("nobody measures "));
  EXPECT_TRUE(why([](Rows& rows) { rows[3].window = 1000; }).starts_with("nobody measures "));
  EXPECT_TRUE(why([](Rows& rows) { rows[3].window = 0; }).starts_with("nobody measures "));
  EXPECT_EQ(why([](Rows& rows) { rows[0].algorithm = "bogosort"; }),
            "there is no bogosort at windows of 256 32-bit keys");
  EXPECT_EQ(why([](Rows& rows) { rows.clear(); }),
            "no rate of the CPU at windows of 256 32-bit keys");
  EXPECT_EQ(why([](Rows& rows) {
              std::erase_if(rows, [](const SorterMeasurement& row) {
                return row.key_bits == 128 && row.window == ClassWindow(5);
              });
            }),
            "no rate of the CPU at windows of 262144 128-bit keys");
}

TEST(MeasuredRates, UnusableOnesAreMeasuredAnew) {
  SorterOptions options = Quick("cpu");
  MeasuredOn other = ThisMachine({}, options.measure_budget_ms);
  other.cpu = "Z80";
  options.known = Invented(other);
  const SorterSelection selection = MakeSorter(options);
  EXPECT_FALSE(selection.report.cached);
  EXPECT_TRUE(selection.report.not_cached.starts_with("CPU then: Z80, now: "));
  EXPECT_EQ(selection.report.measured_at_us, options.now_us);
  EXPECT_EQ(WhyUnusable(RatesOf(selection.report), ThisMachine({}, options.measure_budget_ms)), "");
}

TEST(MeasuredRates, FindsTheModelOfACpu) {
  EXPECT_EQ(CpuModelIn("processor\t: 0\nvendor_id\t: X\nmodel\t\t: 17\nmodel name\t: An EPYC 9\n\n"
                       "processor\t: 1\nmodel name\t: Another\n"),
            "An EPYC 9");
  EXPECT_EQ(CpuModelIn("CPU implementer\t: 0x41\nCPU part\t: 0xd0c"),
            "implementer 0x41 part 0xd0c");
  EXPECT_EQ(CpuModelIn("model name"), "");
  EXPECT_EQ(CpuModelIn("model name\t:"), "");
  EXPECT_EQ(CpuModelIn(""), "");
}

}  // namespace
}  // namespace tidemark::sort
