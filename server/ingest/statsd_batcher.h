// StatsD lines grouped into batches: one append for each stream of a chunk of text.
//
//   chunk ──► lines ──► (entry, value), in order ──► grouped by entry ──► one AppendNumbers a
//   stream
//
// What the lines mean:
//   ms h d   each value is a value of the stream. A sampled timer (@0.1) counts once: its ten
//            unsent siblings are unknown values, and ten copies of one would be an invention.
//   c        each increment is a value, divided by its rate (StatsD: a counter with @0.1 counts ten
//            times).
//   g        the value; with a sign the change against the gauge's last value (GaugeTable), and the
//            result is the stream's value.
//   s        an item of a string stream.
// A line that is not well formed is refused whole. Streams keep the order of their own values,
// those of tags that are written in several ways within a chunk excepted.
//
// Thread: one owner. Lifetime: all that it refers to outlives it.
#ifndef TIDEMARK_SERVER_INGEST_STATSD_BATCHER_H_
#define TIDEMARK_SERVER_INGEST_STATSD_BATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/guard.h"
#include "server/ingest/gauge_table.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/statsd_parser.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"

namespace tidemark::server {

struct StatsdLimits {
  /// Longer lines are refused: DogStatsD clients send at most 8 KiB.
  std::size_t line_bytes_max = 8192;
  /// Names that one connection (or the UDP socket) remembers, some 120 bytes each, and the bytes of
  /// all of them with their tags; when there are more it forgets all and begins anew.
  std::size_t names_max = 8192;
  std::size_t names_bytes_max = std::size_t{1} << 20;
};

class StatsdBatcher {
 public:
  StatsdBatcher(IngestSink& sink, Metrics& metrics, Source source, GaugeTable& gauges,
                const StatsdLimits& limits, LimitedLog& log);

  /// Takes in the lines of `text`, the last with or without its end. `text` must stay as it is
  /// until Flush. `now` is the time that all values until Flush are recorded with.
  void Add(std::string_view text, RecordedTime now);
  /// Counts one line that is refused without having been read whole.
  void RefuseLong(std::string_view begin, RecordedTime now);
  /// Appends what Add collected to the streams.
  void Flush(RecordedTime now);
  /// Gives back all memory, that of the names, too. REQUIRES: nothing to flush.
  void Forget();
  /// Lets go of the names if the sink has deleted a stream since: a name keeps its stream's memory.
  /// Add does so first, so this is for silence. REQUIRES: nothing to flush.
  void ForgetDeleted();

  /// Streams are opened on behalf of `caller`, if the rules allow it; null: for everybody. It
  /// outlives this.
  void ActFor(Caller* caller) { caller_ = caller; }

  std::size_t names() const { return entries_.size(); }
  /// Bytes of memory that it holds, those of streams and gauges excepted.
  std::size_t memory_bytes() const;

 private:
  // A stream under the very bytes by which the sender calls it.
  struct Entry {
    // Touched by every line.
    std::uint64_t hash = 0;
    std::string key;  // name, then tags
    std::uint32_t name_bytes = 0;
    std::uint32_t values = 0;  // of this chunk
    std::uint32_t begin = 0;   // where they begin in grouped_
    bool set = false;
    StreamHandle stream;               // none: `refusal` says why
    std::shared_ptr<GaugeCell> gauge;  // once it was sent a gauge
    // Touched when it cannot be opened.
    std::string_view refusal;   // a reason of tidemark_ingest_refused_total
    RecordedTime retry_at = 0;  // when to try to open it again
  };

  static constexpr std::uint32_t kNoEntry = UINT32_MAX;

  void AddLine(std::string_view line, RecordedTime now);
  bool AddGroup(const StatsdLine& line, const StatsdGroup& group, RecordedTime now);
  /// kNoEntry: it is refused and not remembered; `refusal_` says why.
  std::uint32_t FindEntry(std::string_view name, std::string_view tags, bool set, RecordedTime now);
  std::uint32_t AddEntry(std::uint64_t hash, std::string_view name, std::string_view tags, bool set,
                         RecordedTime now);
  // A value or an item, and the entry whose it is.
  template <typename T>
  struct Owned {
    T what;
    std::uint32_t owner;
  };
  static void Group(const std::vector<std::uint32_t>& touched, std::vector<Entry>& entries,
                    const auto& from, auto& to);
  void Open(Entry& entry, RecordedTime now);
  void GrowTable();
  void ForgetNames();
  GaugeCell* Gauge(Entry& entry);
  void Push(std::uint32_t entry, double value);
  void FlushNumbers(RecordedTime now);
  void FlushItems(RecordedTime now);
  /// Appends `count` of a stream's values of this chunk, beginning with number `begin`.
  using Append = std::function<AppendResult(std::size_t begin, std::size_t count)>;
  void AppendTo(Entry& entry, std::size_t count, RecordedTime now, const Append& append);
  void Refuse(std::string_view reason, std::uint64_t count);
  void Warn(std::string_view why, std::string_view text, RecordedTime now);

  IngestSink& sink_;
  Caller* caller_ = nullptr;
  std::uint64_t deletions_ = 0;       // of the sink, when entries were last forgotten for it
  std::uint64_t access_version_ = 0;  // of the caller, for all entries
  Metrics& metrics_;
  const Source source_;
  GaugeTable& gauges_;
  const StatsdLimits& limits_;
  LimitedLog& log_;
  const std::uint64_t seed_;
  std::array<prometheus::Counter*, kStatsdKinds> line_counters_;
  std::array<prometheus::Counter*, kStatsdFields> field_counters_;

  std::vector<Entry> entries_;
  std::size_t key_bytes_ = 0;         // of all entries
  std::vector<std::uint32_t> table_;  // index into entries_ + 1; 0: free. A power of two in size
  std::string_view refusal_;          // of the last one that is not remembered

  // Of this chunk.
  std::vector<std::uint32_t> touched_;  // entries with values, in the order of their first
  std::vector<Owned<double>> values_;
  std::vector<double> grouped_;
  std::vector<std::uint32_t> items_touched_;
  std::vector<Owned<std::string_view>> items_;
  std::vector<std::string_view> grouped_items_;
  std::array<std::uint64_t, kStatsdKinds> lines_{};
  std::array<std::uint64_t, kStatsdFields> fields_ignored_{};
  StatsdLine line_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_STATSD_BATCHER_H_
