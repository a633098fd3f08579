// The bus between the host's memory and the device's, and what gl-compute makes of it.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/gl/buffer.h"
#include "gpu/gl/capabilities.h"
#include "gpu/gl/fence.h"
#include "gpu/gl/gl_check.h"
#include "gpu/gl/gl_thread.h"
#include "tests/bench/gpu_bench_sections.h"
#include "tests/bench/gpu_bench_sorting.h"
#include "tests/bench/measuring.h"

namespace tidemark::bench {
namespace {

using sort::kChannels;

constexpr std::chrono::seconds kLimit{30};

/// A context with a buffer of each kind: those that gl-compute moves windows through.
class Lane {
 public:
  Lane(bool allow_software, std::size_t bytes)
      : bytes_(bytes), host_(bytes), thread_(allow_software) {
    auto made = std::make_shared<Buffers>();
    thread_.Run(
        [made, bytes] {
          if (!gl::ReadComputeCapabilities().buffer_storage) {
            throw gl::GlError("mapped buffers need OpenGL 4.4 or ARB_buffer_storage");
          }
          made->upload = gl::Buffer(bytes, gl::Buffer::Use::kUpload);
          made->read_back = gl::Buffer(bytes, gl::Buffer::Use::kReadBack);
          made->in = gl::Buffer(bytes, gl::Buffer::Use::kDevice);
          made->out = gl::Buffer(bytes, gl::Buffer::Use::kDevice);
        },
        kLimit);
    buffers_ = made.get();
    std::memset(buffers_->upload.mapped(), 1, bytes);
    thread_.Keep(std::move(made));
    Move(1, true, true);
  }

  /// `times` buffers up, or down, or both, and waits for the last.
  void Move(std::size_t times, bool up, bool down) {
    thread_.Run(
        [this, times, up, down] {
          for (std::size_t i = 0; i < times; ++i) {
            if (up) buffers_->upload.CopyTo(buffers_->in, bytes_);
            if (down) buffers_->out.CopyTo(buffers_->read_back, bytes_);
          }
          gl::CompleteReadBack();
          if (!gl::Fence::Insert().Wait(kLimit)) throw gl::GlError("the bus hangs");
          gl::CheckGl("moving buffers");
        },
        2 * kLimit);
  }
  /// The host's own copies, into and out of the mapped memory.
  void WriteMapped() { std::memcpy(buffers_->upload.mapped(), host_.data(), bytes_); }
  void ReadMapped() { std::memcpy(host_.data(), buffers_->read_back.mapped(), bytes_); }

 private:
  struct Buffers {
    gl::Buffer upload, read_back, in, out;
  };
  const std::size_t bytes_;
  std::vector<std::byte> host_;
  gl::GlThread thread_;
  Buffers* buffers_ = nullptr;  // owned by the thread
};

// Transfers of what four windows of 2^log2_keys 32-bit keys have.
std::vector<Entrant> BusCell(std::shared_ptr<Lane> one, std::shared_ptr<Lane> other, int log2_keys,
                             std::size_t times) {
  std::vector<Entrant> cell;
  const double bytes = static_cast<double>(kChannels * 4) * static_cast<double>(1 << log2_keys);
  const auto add = [&](const char* form, double directions, auto move) {
    Entrant entrant;
    entrant.row.subject = "bus";
    entrant.row.form = form;
    entrant.row.key_bits = 32;
    entrant.row.windows = static_cast<int>(kChannels);
    entrant.row.log2_keys = log2_keys;
    entrant.row.bus_bytes = directions * bytes;
    entrant.requests = static_cast<double>(times);
    entrant.prepare = [] {};
    entrant.run = [move, times] { return move() / static_cast<double>(times); };
    entrant.check = [] { return std::string(); };
    cell.push_back(std::move(entrant));
  };
  add("up", 1, [=] { return Seconds([&] { one->Move(times, true, false); }); });
  add("down", 1, [=] { return Seconds([&] { one->Move(times, false, true); }); });
  add("both, one context", 2, [=] { return Seconds([&] { one->Move(times, true, true); }); });
  add("both, a context each", 2, [=] {
    return OnThreads(
        2, [&](unsigned lane) { (lane == 0 ? one : other)->Move(times, lane == 0, lane == 1); });
  });
  add("host writes mapped memory", 1, [=] {
    return Seconds([&] {
      for (std::size_t i = 0; i < times; ++i) one->WriteMapped();
    });
  });
  add("host reads mapped memory", 1, [=] {
    return Seconds([&] {
      for (std::size_t i = 0; i < times; ++i) one->ReadMapped();
    });
  });
  return cell;
}

// Returns the highest rate upwards, bytes a second.
double RunBus(Report& report, const GpuBenchOptions& options) {
  report.Table("The bus, in the buffers that gl-compute uses",
               {Column::kKeys, Column::kForm, Column::kEndToEnd, Column::kBusRate, Column::kRounds,
                Column::kResult});
  // A fence costs some 10 µs: enough is moved between two that it does not count.
  const std::size_t least_bytes =
      options.smoke ? 0 : std::size_t{1} << (report.machine().software ? 24 : 28);
  double rate_up = 0;
  const std::vector<int> sizes = options.Sizes();
  Budget budget = options.budget;
  budget.seconds /= 4;                              // it varies little
  Rounds rounds(report, budget, 3 * sizes.size());  // the others are gl-compute's
  for (const int log2_keys : sizes) {
    const std::size_t bytes = kChannels * 4 << log2_keys;
    const auto one = std::make_shared<Lane>(report.machine().software, bytes);
    const auto other = std::make_shared<Lane>(report.machine().software, bytes);
    const std::size_t times = std::max<std::size_t>(1, least_bytes / bytes);
    const std::vector<Row> rows = rounds.Run(BusCell(one, other, log2_keys, times), 1);
    if (!rows[0].seconds.empty()) {
      rate_up = std::max(rate_up, rows[0].bus_bytes / SpreadOf(rows[0].seconds).median);
    }
  }
  return rate_up;
}

// What may be wanted of windows, and of which keys.
struct Reduction {
  const char* form;
  bool samples;  // every 2^8th
  bool runs;
  std::size_t different;  // keys drawn from so many; 0: from all
};
constexpr Reduction kReductions[] = {{"whole", false, false, 0},
                                     {"samples", true, false, 0},
                                     {"samples and runs, 1000 different", true, true, 1000},
                                     {"samples and runs", true, true, 0}};

// What one caller has under way. Its windows lie where the sorter wants them, as in the service.
template <class Key>
struct Caller {
  std::shared_ptr<std::pmr::memory_resource> memory;  // null: the heap
  std::array<std::pmr::vector<Key>, kChannels> windows;
  std::vector<sort::ReducedWindow<Key>> found;

  Caller(const BenchSorter& sorter, const FourWindows<Key>& keys)
      : memory(sorter.compute->window_memory()),
        windows{Copy(keys[0]), Copy(keys[1]), Copy(keys[2]), Copy(keys[3])},
        found(kChannels) {}
  void Reset(const FourWindows<Key>& keys) {
    for (std::size_t c = 0; c < kChannels; ++c) windows[c].assign(keys[c].begin(), keys[c].end());
    found.assign(kChannels, {});
  }

 private:
  std::pmr::vector<Key> Copy(const std::vector<Key>& keys) const {
    return {keys.begin(), keys.end(),
            memory != nullptr ? memory.get() : std::pmr::new_delete_resource()};
  }
};

template <class Key>
bool Equal(const std::pmr::vector<Key>& a, const std::vector<Key>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

template <class Key>
struct Wanted {
  std::shared_ptr<const Load<Key>> load;
  sort::WindowNeeds need;
  std::vector<sort::ReducedWindow<Key>> expected;

  Wanted(const Reduction& reduction, std::shared_ptr<const Load<Key>> of) : load(std::move(of)) {
    if (reduction.samples) need.samples = {(1 << 8) - 1, 1 << 8};
    need.runs = reduction.runs;
    for (const std::vector<Key>& keys : load->sorted[0]) {
      expected.push_back(sort::ReduceSorted<Key>(keys, need));
    }
  }
  // Bytes that come back of a channel: the whole of it where its runs are more.
  double DownBytes() const {
    double bytes = 0;
    for (std::size_t c = 0; c < kChannels; ++c) {
      const double whole = static_cast<double>(sizeof(Key) * load->window());
      const double runs = static_cast<double>((sizeof(Key) + 4) * expected[c].runs.size());
      const double samples = static_cast<double>(sizeof(Key) * expected[c].samples.size());
      bytes += need.whole() ? whole : need.runs ? std::min(whole, runs) : samples;
    }
    return bytes;
  }
  std::string Check(const Caller<Key>& caller) const {
    for (std::size_t c = 0; c < kChannels; ++c) {
      const bool whole = need.whole() || caller.found[c].whole;
      const bool equal = whole ? Equal(caller.windows[c], load->sorted[0][c])
                               : caller.found[c].samples == expected[c].samples &&
                                     caller.found[c].runs == expected[c].runs;
      if (!equal) return "differs from std::sort";
    }
    return {};
  }
};

template <class Key>
void RequestOnce(sort::GlComputeSorter& sorter, const Wanted<Key>& wanted, Caller<Key>& caller) {
  const auto spans = SpansOf(caller.windows);
  if (wanted.need.whole()) {
    sorter.Sort(sort::Channels<Key>(spans));
    return;
  }
  const std::vector<sort::WindowNeeds> needs(kChannels, wanted.need);
  sorter.SortReduced(sort::Channels<Key>(spans), needs, caller.found);
}

// Callers that each make `requests` requests, one after the other: the network does the same work
// on sorted keys as on others, so that each goes on with what it has.
template <class Key>
Entrant CallersOf(const BenchSorter& compute, std::shared_ptr<const Wanted<Key>> wanted,
                  const char* form, unsigned callers, std::size_t requests) {
  const auto all = std::make_shared<std::vector<Caller<Key>>>();
  Entrant entrant;
  entrant.row = RowFor("gl-compute", form, *wanted->load);
  entrant.row.parameter = std::to_string(callers);
  entrant.row.up_bytes = static_cast<double>(sizeof(Key)) * entrant.row.keys;
  entrant.row.bus_bytes = entrant.row.up_bytes + wanted->DownBytes();
  entrant.requests = static_cast<double>(callers * requests);
  if (callers == 1) entrant.timer = compute.timer.get();
  entrant.prepare = [compute, all, wanted, callers] {
    while (all->size() < callers) all->emplace_back(compute, wanted->load->original[0]);
    for (Caller<Key>& caller : *all) caller.Reset(wanted->load->original[0]);
  };
  entrant.run = [compute, wanted, all, callers, requests] {
    return OnThreads(callers,
                     [&](unsigned caller) {
                       for (std::size_t i = 0; i < requests; ++i) {
                         RequestOnce(*compute.compute, *wanted, (*all)[caller]);
                       }
                     }) /
           static_cast<double>(callers * requests);
  };
  entrant.check = [all, wanted] {
    std::string wrong;
    for (const Caller<Key>& caller : *all) {
      if (wrong.empty()) wrong = wanted->Check(caller);
    }
    return wrong;
  };
  return entrant;
}

// Most of them want the same keys.
template <class Key>
std::shared_ptr<const Load<Key>> LoadFor(const Reduction& reduction,
                                         std::shared_ptr<const Load<Key>> any, int log2_keys,
                                         std::size_t batch_keys) {
  if (reduction.different == 0) return any;
  return std::make_shared<const Load<Key>>(log2_keys, batch_keys, reduction.different);
}

template <class Key>
std::vector<Row> RunCell(const Report& report, const BenchSorter& compute, const BenchSorter& cpu,
                         const GpuBenchOptions& options, int log2_keys, Rounds& rounds) {
  // One more than there are slots, so that a slot that becomes free is taken at once.
  constexpr unsigned kCallers = sort::GlComputeEngine::kSlots + 1;
  const std::size_t least = report.machine().software ? 1 : 4;  // requests of each
  const auto any = std::make_shared<const Load<Key>>(log2_keys, options.batch_keys);
  std::vector<Entrant> cell;
  for (const Reduction& reduction : kReductions) {
    const auto wanted = std::make_shared<const Wanted<Key>>(
        reduction, LoadFor(reduction, any, log2_keys, options.batch_keys));
    const std::size_t requests = std::max(least, wanted->load->requests());
    for (const unsigned callers : {1U, kCallers}) {
      cell.push_back(CallersOf<Key>(compute, wanted, reduction.form, callers, requests));
    }
  }
  cell.push_back(SortsOnAllCores<Key>(cpu, any, report.machine().cores));
  return rounds.Run(std::move(cell), options.growth());
}

// Where the time of one request goes: each step alone, between fences.
template <class Key>
void RunProfile(Report& report, const BenchSorter& compute, int log2_keys, std::size_t rounds) {
  const auto any = std::make_shared<const Load<Key>>(log2_keys, 0);
  for (const Reduction& reduction : kReductions) {
    const Wanted<Key> wanted(reduction, LoadFor(reduction, any, log2_keys, 0));
    std::map<std::string, std::vector<double>> by_clock, by_timer;
    for (std::size_t round = 0; round <= rounds; ++round) {
      Caller<Key> caller(compute, wanted.load->original[0]);
      compute.timer->Arm();
      const double all = Seconds([&] { RequestOnce(*compute.compute, wanted, caller); });
      const StepTimer::Times times = compute.timer->Disarm();
      if (round == 0) continue;  // it makes buffers and programs
      double rest = all;
      for (const auto& [step, seconds] : times.by_clock) {
        by_clock[step].push_back(seconds);
        rest -= seconds;
      }
      for (const auto& [step, seconds] : times.by_timer) by_timer[step].push_back(seconds);
      by_clock["host: checks, waits, copies of what comes back"].push_back(rest);
    }
    for (const auto& [step, seconds] : by_clock) {
      Row row = RowFor("gl-compute, step by step", reduction.form, *wanted.load);
      row.parameter = step;
      row.keys = 0;
      row.seconds = seconds;
      row.by_timer = by_timer[step];
      report.Add(row);
    }
  }
}

}  // namespace

void BenchBus(Report& report, const GpuBenchOptions& options) {
  const double rate_up = RunBus(report, options);
  report.BusRate(rate_up);
  report.Say("\nShares below are of the highest median rate upwards, " +
             std::to_string(static_cast<long>(rate_up / 1e6)) +
             " MB/s; of a request's keys, which go up once.");
  const BenchSorter compute = OpenCompute(report.machine());
  if (compute.sorter == nullptr) throw std::runtime_error(compute.why_not);
  const BenchSorter cpu = CpuSorter(options.smoke);
  report.Table(
      "gl-compute end to end, whole and reduced, by callers; `cpu` on all cores",
      {Column::kKeys, Column::kSubject, Column::kForm, Column::kParameter, Column::kEndToEnd,
       Column::kDevice, Column::kTimer, Column::kRate, Column::kDeviceRate, Column::kBusRate,
       Column::kBusShare, Column::kRounds, Column::kResult});
  Rounds rounds(report, options.budget, 2 * options.Sizes().size());
  for (const int log2_keys : options.Sizes()) {
    if (rounds.OutOfTime(log2_keys)) break;
    RunCell<std::uint32_t>(report, compute, cpu, options, log2_keys, rounds);
    RunCell<std::uint64_t>(report, compute, cpu, options, log2_keys, rounds);
  }
  report.Table("Where a request's time goes: each step alone, between fences",
               {Column::kKeys, Column::kForm, Column::kParameter, Column::kEndToEnd, Column::kTimer,
                Column::kRounds});
  const int log2_keys = options.Sizes(20).back();
  RunProfile<std::uint32_t>(report, compute, log2_keys, options.smoke ? 1 : 7);
  RunProfile<std::uint64_t>(report, compute, log2_keys, options.smoke ? 1 : 7);
}

}  // namespace tidemark::bench
