// Ten streams that were there before a flood and are fed through all of it: what they took in, and
// whether their answers keep their certificates.
#ifndef TIDEMARK_TESTS_FAULT_BUSY_STREAMS_H_
#define TIDEMARK_TESTS_FAULT_BUSY_STREAMS_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "tests/e2e/test_daemon.h"

namespace tidemark::fault {

enum class BusyKind {
  kNumbers,  ///< float64: quantiles and ranks
  kTexts,    ///< strings: counts and heavy hitters
};

struct BusyOptions {
  BusyKind kind = BusyKind::kNumbers;
  /// Every value follows from it, and from the number of its batch.
  std::uint64_t seed = 0;
  std::size_t batch_values = 200;
  /// From a batch to each stream to the next ones, so that the flood has a processor, too.
  std::chrono::milliseconds pause{2};
};

/// How far answers were off at the end, of all streams.
struct BusyFigures {
  std::uint64_t values_min = 0;  ///< of a stream
  std::uint64_t values_max = 0;
  std::uint64_t error_max = 0;  ///< ranks from the one asked for; texts: width of a count's bounds
  double error_allowed = 0;     ///< ε n of the stream with values_min
  std::uint64_t refused = 0;    ///< values, of all streams; a failure already
  std::size_t judged = 0;       ///< how often, the end included
};

/// Thread: one; feeds from a thread of its own, over framed TCP. Failures of the running test: a
/// batch of these streams that is refused, a value that was acknowledged and is not part of n, an
/// answer outside its certificate or wider than ε allows; all of them looked at while values come,
/// too, whenever four times as many batches were sent as the last time. Lifetime: the daemon's.
class BusyStreams {
 public:
  static constexpr std::size_t kStreams = 10;
  /// Of ranks, and of counts.
  static constexpr double kEpsilon = 0.001;
  /// To each stream, at least: enough for summaries that are not exact.
  static constexpr std::size_t kRoundsMin = 250;

  /// Of the first batch to each: from so many on a stream is not one of the newest.
  static constexpr std::size_t kFirstValues = std::size_t{1} << 16;

  /// Creates the streams and begins; when it returns each has taken in its first batch.
  BusyStreams(test::TestDaemon& daemon, const BusyOptions& options);
  ~BusyStreams();
  BusyStreams(const BusyStreams&) = delete;
  BusyStreams& operator=(const BusyStreams&) = delete;

  /// When all that was begun is answered.
  BusyFigures EndAndJudge();

 private:
  void Run();
  std::size_t Values(std::size_t batch) const {
    return batch < kStreams ? kFirstValues : options_.batch_values;
  }
  void Feed(client::TcpProducer& producer);
  // REQUIRES: every batch has been answered.
  void Judge();
  // What the stream should hold.
  std::uint64_t JudgeNumbers(std::size_t stream, const std::string& name);
  std::uint64_t JudgeTexts(std::size_t stream, const std::string& name);
  void Note(std::uint64_t n, std::uint64_t error);
  template <class T>
  std::vector<T> Batch(std::size_t number) const;
  // All that a stream took in.
  template <class T>
  std::vector<T> Taken(std::size_t stream) const;

  const BusyOptions options_;
  test::TestDaemon& daemon_;
  client::Client client_;
  std::atomic<bool> large_{false};
  std::atomic<bool> ends_{false};
  // Of the thread until it has ended.
  std::vector<bool> taken_;  // batches in their order, of all streams in turn: acknowledged or not
  std::uint64_t refused_ = 0;
  BusyFigures figures_;
  std::thread thread_;
};

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_BUSY_STREAMS_H_
