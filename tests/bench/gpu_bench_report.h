// What gpu_bench tells: a Markdown table as it goes, and the same rows as CSV.
#ifndef TIDEMARK_TESTS_BENCH_GPU_BENCH_REPORT_H_
#define TIDEMARK_TESTS_BENCH_GPU_BENCH_REPORT_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "gpu/reduce/stream_reduction.h"
#include "gpu/sort/sort_counts.h"

namespace tidemark::bench {

/// Where a run was made.
struct Machine {
  std::string cpu;
  unsigned cores = 0;
  std::string device;  ///< the renderer; empty without GL
  std::string vendor;
  std::string driver;      ///< GL's version string
  bool software = false;   ///< a software rasteriser: correct, and no measure of a GPU
  bool has_timer = false;  ///< timer queries are to be believed
  std::string no_gl;       ///< why there is none; empty otherwise
  std::string date;        ///< UTC, ISO 8601
};
Machine DescribeMachine(bool allow_software);

/// One subject in one cell. Times are of one request of `windows` windows.
struct Row {
  std::string subject;    ///< "gl-compute"
  std::string form;       ///< "tiles of 64", "reduced: samples"
  std::string parameter;  ///< a number that a sweep varies, "64"
  int key_bits = 0;
  int payload_bits = 0;
  int windows = 0;
  int log2_keys = -1;            ///< of a window; -1: not about windows
  double keys = 0;               ///< of a request; 0: no rate is shown
  double bus_bytes = 0;          ///< over the bus in a request, both ways; 0: none
  double up_bytes = 0;           ///< those of them that go to the device
  std::vector<double> seconds;   ///< end to end, a round each
  std::vector<double> device;    ///< between fences around the passes, data resident
  std::vector<double> by_timer;  ///< the same by timer queries
  std::optional<sort::SortCounts> counts;
  std::optional<reduce::ReductionCounts> reduction;
  std::string result = "ok";  ///< else: "WRONG: …", "failed: …", "refused: …", "left out: …"
};

enum class Column : std::uint8_t {
  kSubject,
  kForm,
  kParameter,
  kKeys,  ///< windows, size, width
  kEndToEnd,
  kDevice,
  kTimer,
  kRate,
  kDeviceRate,
  kBusRate,
  kBusShare,
  kComparisons,  ///< a key
  kPasses,
  kDrawCalls,
  kDeviceBytes,  ///< a key
  kAdditions,    ///< a key
  kSearchSteps,  ///< a key
  kLines,
  kRounds,
  kResult,
};

/// Thread: one. Each row is on the disk before the next is measured.
class Report {
 public:
  /// `csv`: a file that is appended to, with a header if it is new; empty: none.
  /// Errors: throws std::runtime_error where it cannot be written.
  Report(Machine machine, const std::string& csv);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  const Machine& machine() const { return machine_; }
  /// What the rows from here on belong to.
  void Section(const std::string& section) { section_ = section; }
  void Say(const std::string& text);
  void Table(const std::string& title, std::vector<Column> columns);
  /// The rate of the bus upwards, bytes a second, of which later rows show their share.
  void BusRate(double bytes_per_second) { bus_rate_ = bytes_per_second; }
  /// 0 where it is not known.
  double BusShare(const Row& row) const;
  /// A line of the table, and of the CSV.
  void Add(const Row& row);
  /// Whether a result was wrong or something failed.
  bool bad() const { return bad_; }
  void Failed(const std::string& what);

 private:
  void AddCsv(const Row& row);

  const Machine machine_;
  std::string section_;
  std::vector<Column> columns_;
  std::FILE* csv_ = nullptr;
  double bus_rate_ = 0;
  bool bad_ = false;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_GPU_BENCH_REPORT_H_
