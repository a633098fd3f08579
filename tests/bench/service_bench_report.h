// Raw figures of every round, and their tables: median, least and greatest, ratios.
#ifndef TIDEMARK_TESTS_BENCH_SERVICE_BENCH_REPORT_H_
#define TIDEMARK_TESTS_BENCH_SERVICE_BENCH_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::bench {

double Median(std::vector<double> values);
/// The smallest value with at least share q of all at or below it. REQUIRES: not empty.
double Quantile(std::vector<double> values, double q);

/// One figure, measured once a round.
struct Series {
  std::string name;
  std::string unit;
  std::vector<double> rounds;
};

/// A figure against another of the same rounds.
struct Ratio {
  std::string name;
  std::vector<double> rounds;  ///< within each round
  double of_medians = 0;
  std::string aim;  ///< in words; empty: none
};

/// The figures of one section, in the order of their first appearance.
class Section {
 public:
  explicit Section(std::string name) : name_(std::move(name)) {}

  void Add(std::string_view series, std::string_view unit, double value);
  /// Nothing if one of them was not measured. REQUIRES: as many rounds of both.
  void AddRatio(std::string_view name, std::string_view numerator, std::string_view denominator,
                std::string_view aim);
  void Note(std::string note) { notes_.push_back(std::move(note)); }

  const std::string& name() const { return name_; }
  const std::vector<Series>& series() const { return series_; }
  const std::vector<Ratio>& ratios() const { return ratios_; }
  /// Markdown on stdout.
  void Print() const;

 private:
  const Series* Find(std::string_view series) const;

  std::string name_;
  std::vector<Series> series_;
  std::vector<Ratio> ratios_;
  std::vector<std::string> notes_;
};

/// CPU model, cores, kernel, compiler, load average: one line for each.
std::vector<std::string> DescribeMachine();

/// Machine and raw rounds as one JSON document. Throws std::runtime_error if it cannot be written.
void WriteJson(const std::string& path, const std::vector<Section>& sections);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_SERVICE_BENCH_REPORT_H_
