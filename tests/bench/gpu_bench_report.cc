#include "tests/bench/gpu_bench_report.h"

#include <unistd.h>

#include <cstring>
#include <ctime>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/capabilities.h"
#include "tests/bench/measuring.h"

namespace tidemark::bench {
namespace {

constexpr const char* kCsvHeader =
    "section,subject,form,parameter,key_bits,payload_bits,windows,log2_keys,rounds,"
    "ms_least,ms_median,ms_greatest,device_ms_least,device_ms_median,device_ms_greatest,"
    "timer_ms_median,keys_per_s,device_keys_per_s,bus_bytes,bus_bytes_per_s,bus_share,"
    "comparisons,passes,copies,draw_calls,device_bytes,additions,search_steps,lines,result,device,"
    "driver,software,date";

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Milliseconds(const std::vector<double>& seconds) {
  if (seconds.empty()) return "–";
  Spread spread = SpreadOf(seconds);
  for (double* s : {&spread.least, &spread.median, &spread.greatest}) *s *= 1e3;
  return Print(spread, spread.median < 10 ? 3 : 1);
}

double Median(const std::vector<double>& seconds) {
  return seconds.empty() ? 0 : SpreadOf(seconds).median;
}

// Of a rate that is not known: "–".
std::string Rate(double amount, const std::vector<double>& seconds, double unit) {
  const double median = Median(seconds);
  if (amount <= 0 || median <= 0) return "–";
  const double rate = amount / median / unit;
  return Format(rate < 10 ? "%.2f" : "%.0f", rate);
}

// By streams, here and below: where a literal is put before a string, GCC 12 warns of an overlap
// that there is not.
std::string Keys(const Row& row) {
  if (row.log2_keys < 0) return "–";
  std::ostringstream text;
  text << row.windows << " × 2^" << row.log2_keys << " × " << row.key_bits;
  if (row.payload_bits > 0) text << "+" << row.payload_bits;
  return text.str();
}

double PerKey(const Row& row, double count) { return row.keys > 0 ? count / row.keys : count; }

struct Cell {
  const char* head;
  std::string text;
};

std::string PassesOf(const Row& row) {
  if (!row.counts) return "–";
  std::ostringstream text;
  text << row.counts->passes;
  if (row.counts->copies > 0) text << " + " << row.counts->copies;
  return text.str();
}

Cell CountCell(Column column, const Row& row) {
  const bool sort = row.counts.has_value();
  const bool reduction = row.reduction.has_value();
  switch (column) {
    case Column::kComparisons:
      return {
          "comparisons a key",
          sort ? Format("%.1f", PerKey(row, static_cast<double>(row.counts->comparisons))) : "–"};
    case Column::kPasses:
      return {"passes + copies", PassesOf(row)};
    case Column::kDrawCalls:
      return {"draw calls", sort ? std::to_string(row.counts->draw_calls) : "–"};
    case Column::kDeviceBytes:
      return {
          "bytes moved a key",
          sort ? Format("%.0f", PerKey(row, static_cast<double>(row.counts->bytes_moved))) : "–"};
    case Column::kAdditions:
      return {"additions a key",
              reduction ? Format("%.2f", PerKey(row, static_cast<double>(row.reduction->additions)))
                        : "–"};
    case Column::kSearchSteps:
      return {"search rounds a key",
              reduction
                  ? Format("%.2f", PerKey(row, static_cast<double>(row.reduction->search_steps)))
                  : "–"};
    default:
      return {"lines", reduction ? std::to_string(row.reduction->lines) : "–"};
  }
}

Cell CellOf(Column column, const Row& row, double bus_share) {
  switch (column) {
    case Column::kSubject:
      return {"subject", row.subject};
    case Column::kForm:
      return {"form", row.form.empty() ? "–" : row.form};
    case Column::kParameter:
      return {"parameter", row.parameter.empty() ? "–" : row.parameter};
    case Column::kKeys:
      return {"windows × keys × bits", Keys(row)};
    case Column::kEndToEnd:
      return {"end to end, ms", Milliseconds(row.seconds)};
    case Column::kDevice:
      return {"device only, ms", Milliseconds(row.device)};
    case Column::kTimer:
      return {"by timer query, ms", Milliseconds(row.by_timer)};
    case Column::kRate:
      return {"million keys/s", Rate(row.keys, row.seconds, 1e6)};
    case Column::kDeviceRate:
      return {"device, million keys/s", Rate(row.keys, row.device, 1e6)};
    case Column::kBusRate:
      return {"bus, GB/s", Rate(row.bus_bytes, row.seconds, 1e9)};
    case Column::kBusShare:
      return {"share of the bus", bus_share > 0 ? Format("%.2f", bus_share) : "–"};
    case Column::kRounds:
      return {"rounds", std::to_string(row.seconds.size())};
    case Column::kResult:
      return {"result", row.result};
    default:
      return CountCell(column, row);
  }
}

std::string Quoted(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\n' || c == '\r') c = '\'';
  }
  if (text.find(',') == std::string::npos) return text;
  std::ostringstream quoted;
  quoted << '"' << text << '"';
  return quoted.str();
}

bool StartsWith(const std::string& text, const char* begin) { return text.rfind(begin, 0) == 0; }

}  // namespace

Machine DescribeMachine(bool allow_software) {
  Machine machine;
  machine.cpu = CpuModel();
  machine.cores = std::thread::hardware_concurrency();
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::tm utc{};
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  machine.date = date;
  try {
    const egl::HeadlessContext context = egl::HeadlessContext::Open(allow_software);
    const gl::Capabilities capabilities = gl::ReadCapabilities();
    machine.device = capabilities.renderer;
    machine.vendor = capabilities.vendor;
    machine.driver = capabilities.version;
    machine.software = capabilities.software;
    // llvmpipe counts 0 for compute shaders.
    machine.has_timer = !capabilities.software;
  } catch (const std::runtime_error& error) {
    machine.no_gl = error.what();
  }
  return machine;
}

Report::Report(Machine machine, const std::string& csv) : machine_(std::move(machine)) {
  if (csv.empty()) return;
  csv_ = std::fopen(csv.c_str(), "a");
  if (csv_ == nullptr) {
    throw std::runtime_error("cannot write " + csv + ": " + std::strerror(errno));
  }
  std::fseek(csv_, 0, SEEK_END);
  if (std::ftell(csv_) == 0) std::fprintf(csv_, "%s\n", kCsvHeader);
}

Report::~Report() {
  if (csv_ != nullptr) std::fclose(csv_);
}

void Report::Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void Report::Table(const std::string& title, std::vector<Column> columns) {
  columns_ = std::move(columns);
  std::ostringstream head, rule;
  for (const Column column : columns_) {
    head << "| " << CellOf(column, Row{}, 0).head << " ";
    rule << "|---";
  }
  Say("\n### " + title + "\n\n" + head.str() + "|\n" + rule.str() + "|");
}

double Report::BusShare(const Row& row) const {
  const double median = Median(row.seconds);
  return bus_rate_ > 0 && median > 0 ? row.up_bytes / median / bus_rate_ : 0;
}

void Report::Add(const Row& row) {
  std::ostringstream line;
  for (const Column column : columns_) {
    line << "| " << CellOf(column, row, BusShare(row)).text << " ";
  }
  Say(line.str() + "|");
  if (StartsWith(row.result, "WRONG") || StartsWith(row.result, "failed")) {
    Failed(row.subject + " " + row.form + ": " + row.result);
  }
  if (csv_ != nullptr) AddCsv(row);
}

void Report::Failed(const std::string& what) {
  bad_ = true;
  std::fprintf(stderr, "gpu_bench: %s\n", what.c_str());
}

void Report::AddCsv(const Row& row) {
  std::string line = Quoted(section_) + "," + Quoted(row.subject) + "," + Quoted(row.form) + "," +
                     Quoted(row.parameter);
  const auto add = [&](const std::string& text) { line.append(1, ',').append(text); };
  for (const int number : {row.key_bits, row.payload_bits, row.windows, row.log2_keys}) {
    add(std::to_string(number));
  }
  add(std::to_string(row.seconds.size()));
  for (const std::vector<double>* times : {&row.seconds, &row.device}) {
    const Spread s = times->empty() ? Spread{} : SpreadOf(*times);
    for (const double of : {s.least, s.median, s.greatest}) {
      add(times->empty() ? "" : Format("%.6f", 1e3 * of));
    }
  }
  add(row.by_timer.empty() ? "" : Format("%.6f", 1e3 * Median(row.by_timer)));
  const auto rate = [](double amount, double median) {
    return amount > 0 && median > 0 ? Format("%.0f", amount / median) : std::string();
  };
  add(rate(row.keys, Median(row.seconds)));
  add(rate(row.keys, Median(row.device)));
  add(row.bus_bytes > 0 ? Format("%.0f", row.bus_bytes) : "");
  add(rate(row.bus_bytes, Median(row.seconds)));
  add(BusShare(row) > 0 ? Format("%.4f", BusShare(row)) : "");
  const sort::SortCounts counts = row.counts.value_or(sort::SortCounts{});
  for (const std::uint64_t count :
       {counts.comparisons, counts.passes, counts.copies, counts.draw_calls, counts.bytes_moved}) {
    add(row.counts ? std::to_string(count) : "");
  }
  const reduce::ReductionCounts found = row.reduction.value_or(reduce::ReductionCounts{});
  for (const std::uint64_t count : {found.additions, found.search_steps, found.lines}) {
    add(row.reduction ? std::to_string(count) : "");
  }
  for (const std::string& text : {row.result, machine_.device, machine_.driver}) add(Quoted(text));
  add(machine_.software ? "1" : "0");
  add(machine_.date);
  std::fprintf(csv_, "%s\n", line.c_str());
  std::fflush(csv_);
  fsync(fileno(csv_));
}

}  // namespace tidemark::bench
