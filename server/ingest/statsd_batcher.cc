#include "server/ingest/statsd_batcher.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "server/window/refusal.h"

namespace tidemark::server {
namespace {

// A stream that could not be opened is tried again after this: until then its lines cost a lookup.
constexpr RecordedTime kRetryMicros = 1'000'000;
constexpr std::size_t kTableFirst = 256;
// Longer names that are refused cost more than a lookup: most are longer than any stream's, and
// would take the place of those that are sent again.
constexpr std::size_t kRefusedKeyBytesMax = 512;
// Values and items of a chunk whose room is kept for the next one: a read of 512 KiB has as many
// lines of eight bytes.
constexpr std::size_t kItemsKept = 65'536;

__extension__ using Wide = unsigned __int128;

// Multiplies and folds: the mixing step of the wyhash family.
std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t LoadWord(const char* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Only places entries in the table, whose keys are compared in full: never in an answer, never
// stored. Seeded so that a sender cannot know which names collide.
std::uint64_t HashBytes(std::string_view text, std::uint64_t hash) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  const char* p = text.data();
  std::size_t left = text.size();
  hash ^= text.size() * kOdd;
  while (left > sizeof(std::uint64_t)) {
    hash = Mix(hash ^ LoadWord(p), kOdd);
    p += sizeof(std::uint64_t);
    left -= sizeof(std::uint64_t);
  }
  if (text.size() >= sizeof(std::uint64_t)) {
    // The last eight bytes, some of them for the second time.
    return Mix(hash ^ LoadWord(p + left - sizeof(std::uint64_t)), kOdd);
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < left; ++i) word = (word << 8) | static_cast<unsigned char>(p[i]);
  return Mix(hash ^ word, kOdd);
}

template <typename T>
void Clear(std::vector<T>& values) {
  values.clear();
  if (values.capacity() > kItemsKept) values.shrink_to_fit();
}

template <typename T>
void GiveBack(std::vector<T>& values) {
  values = std::vector<T>();  // `{}` would be a list of no values, and keep the room
}

template <typename T>
std::size_t BytesOf(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

// memcmp for names, which are short: without the call, eight bytes at a time.
bool SameBytes(const char* a, const char* b, std::size_t bytes) {
  if (bytes < sizeof(std::uint64_t)) {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }
  const std::size_t last = bytes - sizeof(std::uint64_t);
  for (std::size_t i = 0; i < last; i += sizeof(std::uint64_t)) {
    if (LoadWord(a + i) != LoadWord(b + i)) return false;
  }
  return LoadWord(a + last) == LoadWord(b + last);
}

// Of this process, so that nobody outside can choose names of one hash. Not of each connection: to
// ask for it takes 40 us.
std::uint64_t HashSeed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  return seed;
}

}  // namespace

StatsdBatcher::StatsdBatcher(IngestSink& sink, Metrics& metrics, Source source, GaugeTable& gauges,
                             const StatsdLimits& limits, LimitedLog& log)
    : sink_(sink),
      metrics_(metrics),
      source_(source),
      gauges_(gauges),
      limits_(limits),
      log_(log),
      seed_(HashSeed()) {
  for (std::size_t kind = 0; kind < kStatsdKinds; ++kind) {
    line_counters_[kind] =
        &metrics.StatsdLines(source, StatsdKindName(static_cast<StatsdKind>(kind)));
  }
  for (std::size_t field = 0; field < kStatsdFields; ++field) {
    field_counters_[field] =
        &metrics.StatsdFieldsIgnored(source, StatsdFieldName(static_cast<StatsdField>(field)));
  }
}

void StatsdBatcher::Add(std::string_view text, RecordedTime now) {
  if (values_.empty() && items_.empty()) {
    const std::uint64_t version = caller_ != nullptr ? caller_->Version() : 0;
    if (std::exchange(access_version_, version) != version) ForgetNames();
    ForgetDeleted();
  }
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    const auto* stop =
        static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
    const char* const next = stop == nullptr ? end : stop + 1;
    if (stop == nullptr) stop = end;
    if (stop != p && stop[-1] == '\r') --stop;
    if (stop != p) AddLine({p, static_cast<std::size_t>(stop - p)}, now);
    p = next;
  }
}

void StatsdBatcher::AddLine(std::string_view line, RecordedTime now) {
  if (line.size() > limits_.line_bytes_max) {
    RefuseLong(line, now);
    return;
  }
  if (const StatsdError error = ParseStatsdLine(line, line_); error != StatsdError::kNone) {
    Refuse("bad_line", 1);
    Warn(StatsdErrorText(error), line, now);
    return;
  }
  if (line_.fields_ignored > 0) {
    for (std::size_t field = 0; field < kStatsdFields; ++field) {
      fields_ignored_[field] += line_.fields_ignored_of[field];
    }
  }
  for (std::uint32_t i = 0; i < line_.groups; ++i) {
    if (!AddGroup(line_, line_.group[i], now)) return;
  }
  ++lines_[static_cast<std::size_t>(line_.kind)];
}

bool StatsdBatcher::AddGroup(const StatsdLine& line, const StatsdGroup& group, RecordedTime now) {
  const bool set = group.kind == StatsdKind::kSet;
  const std::uint32_t index = FindEntry(line.name, line.tags, set, now);
  if (index == kNoEntry || !entries_[index].stream) {
    Refuse(index == kNoEntry ? refusal_ : entries_[index].refusal, 1);
    return false;
  }
  Entry& entry = entries_[index];
  switch (group.kind) {
    case StatsdKind::kSet:
      if (entry.values++ == 0) items_touched_.push_back(index);
      items_.push_back({group.values, index});
      return true;
    case StatsdKind::kCounter:
      ForEachNumber(group,
                    [&](double value, std::string_view) { Push(index, value / group.rate); });
      return true;
    case StatsdKind::kGauge: {
      GaugeCell* const cell = Gauge(entry);
      std::uint64_t unknown = 0;
      ForEachNumber(group, [&](double value, std::string_view text) {
        if (text[0] == '+' || text[0] == '-') {
          if (cell == nullptr) {
            ++unknown;
            return;
          }
          value = std::isnan(value) ? value : cell->Add(value);
        } else if (cell != nullptr && !std::isnan(value)) {
          cell->Set(value);
        }
        Push(index, value);
      });
      if (unknown > 0) {
        Refuse("gauge_limit", 1);
        sink_.CountRefused(entry.stream, unknown);
        Warn("too many gauges to remember what this one is relative to", line.name, now);
      }
      return unknown == 0;
    }
    default:
      ForEachNumber(group, [&](double value, std::string_view) { Push(index, value); });
      return true;
  }
}

void StatsdBatcher::Push(std::uint32_t entry, double value) {
  if (entries_[entry].values++ == 0) touched_.push_back(entry);
  values_.push_back({value, entry});
}

GaugeCell* StatsdBatcher::Gauge(Entry& entry) {
  if (!entry.gauge) {
    std::string identity;
    StatsdIdentity(std::string_view(entry.key).substr(0, entry.name_bytes),
                   std::string_view(entry.key).substr(entry.name_bytes), identity);
    entry.gauge = gauges_.Get(identity);
  }
  return entry.gauge.get();
}

std::uint32_t StatsdBatcher::FindEntry(std::string_view name, std::string_view tags, bool set,
                                       RecordedTime now) {
  std::uint64_t hash = HashBytes(name, seed_ + (set ? 1 : 0));
  if (!tags.empty()) hash = HashBytes(tags, hash);
  if (!table_.empty()) {
    for (std::size_t slot = hash & (table_.size() - 1); table_[slot] != 0;
         slot = (slot + 1) & (table_.size() - 1)) {
      Entry& entry = entries_[table_[slot] - 1];
      if (entry.hash != hash || entry.name_bytes != name.size() ||
          entry.key.size() != name.size() + tags.size() || entry.set != set ||
          !SameBytes(entry.key.data(), name.data(), name.size()) ||
          !SameBytes(entry.key.data() + name.size(), tags.data(), tags.size())) {
        continue;
      }
      // A clock set back must not postpone the next try for long.
      if (!entry.stream && (now >= entry.retry_at || entry.retry_at > now + kRetryMicros)) {
        Open(entry, now);
      }
      return table_[slot] - 1;
    }
  }
  return AddEntry(hash, name, tags, set, now);
}

// Apart from FindEntry, which every line goes through.
std::uint32_t StatsdBatcher::AddEntry(std::uint64_t hash, std::string_view name,
                                      std::string_view tags, bool set, RecordedTime now) {
  Entry entry;
  entry.hash = hash;
  entry.key.reserve(name.size() + tags.size());
  entry.key.append(name).append(tags);
  entry.name_bytes = static_cast<std::uint32_t>(name.size());
  entry.set = set;
  Open(entry, now);
  if (!entry.stream && entry.key.size() > kRefusedKeyBytesMax) {
    refusal_ = entry.refusal;
    return kNoEntry;
  }
  if (entries_.size() >= limits_.names_max ||
      (!entries_.empty() && key_bytes_ + entry.key.size() > limits_.names_bytes_max)) {
    Flush(now);
    ForgetNames();
  }
  if (table_.size() < 2 * (entries_.size() + 1)) GrowTable();
  const auto index = static_cast<std::uint32_t>(entries_.size());
  key_bytes_ += entry.key.size();
  entries_.push_back(std::move(entry));
  std::size_t slot = hash & (table_.size() - 1);
  while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = index + 1;
  return index;
}

void StatsdBatcher::GrowTable() {
  table_.assign(std::max(kTableFirst, table_.size() * 2), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t slot = entries_[i].hash & (table_.size() - 1);
    while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

void StatsdBatcher::Open(Entry& entry, RecordedTime now) {
  const std::string_view key = entry.key;
  std::string identity;
  if (!StatsdIdentity(key.substr(0, entry.name_bytes), key.substr(entry.name_bytes), identity)) {
    entry.refusal = "bad_name";
    entry.retry_at = now + kRetryMicros;
    Warn("a character in the name or in a tag's key that neither may hold", key, now);
    return;
  }
  const absl::Status may =
      caller_ != nullptr ? caller_->MayOver(Role::kIngest, identity) : absl::OkStatus();
  absl::StatusOr<StreamHandle> opened =
      !may.ok() ? absl::StatusOr<StreamHandle>(may)
                : sink_.Open(identity, entry.set ? std::optional(ValueType::kString)
                                                 : std::optional<ValueType>());
  if (!opened.ok()) {
    entry.refusal = ReasonOf(opened.status(), Attempt::kOpen);
    entry.retry_at = now + kRetryMicros;
    Warn(std::string(opened.status().message()), identity, now);
    return;
  }
  entry.stream = *std::move(opened);
}

void StatsdBatcher::Flush(RecordedTime now) {
  FlushNumbers(now);
  FlushItems(now);
  for (std::size_t kind = 0; kind < kStatsdKinds; ++kind) {
    if (const auto count = std::exchange(lines_[kind], 0); count > 0) {
      line_counters_[kind]->Increment(static_cast<double>(count));
    }
  }
  for (std::size_t field = 0; field < kStatsdFields; ++field) {
    if (const auto count = std::exchange(fields_ignored_[field], 0); count > 0) {
      field_counters_[field]->Increment(static_cast<double>(count));
    }
  }
}

// Puts what one chunk brought in the order of its owners: offsets from `touched`, then one pass.
void StatsdBatcher::Group(const std::vector<std::uint32_t>& touched, std::vector<Entry>& entries,
                          const auto& from, auto& to) {
  std::uint32_t begin = 0;
  for (const std::uint32_t index : touched) {
    entries[index].begin = begin;
    begin += std::exchange(entries[index].values, 0);
  }
  to.resize(from.size());
  for (const auto& [what, owner] : from) {
    Entry& entry = entries[owner];
    to[entry.begin + entry.values++] = what;
  }
}

void StatsdBatcher::FlushNumbers(RecordedTime now) {
  if (values_.empty()) return;
  Group(touched_, entries_, values_, grouped_);
  for (const std::uint32_t index : touched_) {
    Entry& entry = entries_[index];
    const std::span<const double> values =
        std::span(grouped_).subspan(entry.begin, std::exchange(entry.values, 0));
    AppendTo(entry, values.size(), now, [&](std::size_t begin, std::size_t count) {
      return sink_.AppendNumbers(entry.stream, values.subspan(begin, count), now);
    });
  }
  touched_.clear();
  Clear(values_);
  // Keeps its size: what Group sets need not be set to 0 before.
  if (grouped_.capacity() > kItemsKept) Clear(grouped_);
}

void StatsdBatcher::FlushItems(RecordedTime now) {
  if (items_.empty()) return;
  Group(items_touched_, entries_, items_, grouped_items_);
  for (const std::uint32_t index : items_touched_) {
    Entry& entry = entries_[index];
    const std::span<const std::string_view> items =
        std::span(grouped_items_).subspan(entry.begin, std::exchange(entry.values, 0));
    AppendTo(entry, items.size(), now, [&](std::size_t begin, std::size_t count) {
      return sink_.AppendStrings(entry.stream, items.subspan(begin, count), now);
    });
  }
  items_touched_.clear();
  Clear(items_);
  Clear(grouped_items_);
}

void StatsdBatcher::AppendTo(Entry& entry, std::size_t count, RecordedTime now,
                             const Append& append) {
  AppendResult result;
  if (entry.stream) result = append(0, count);
  if (entry.stream && absl::IsNotFound(result.status)) {
    // Deleted since it was opened. Its name is still being sent, so it begins anew.
    entry.stream.reset();
    Open(entry, now);
    if (entry.stream) result = append(0, count);
  }
  if (!entry.stream) {
    Refuse(entry.refusal, count);
    return;
  }
  if (absl::IsInvalidArgument(result.status) && count > 1) {
    // A value that the stream cannot hold: the others of the chunk, which may be other senders',
    // are taken in one by one.
    for (std::size_t i = 0; i < count; ++i) {
      const Append one = [&](std::size_t begin, std::size_t size) {
        return append(i + begin, size);
      };
      AppendTo(entry, 1, now, one);
    }
    return;
  }
  if (!result.status.ok()) {
    Refuse(ReasonOf(result.status, Attempt::kBatch), count);
    sink_.CountRefused(entry.stream, count);
    Warn(std::string(result.status.message()), entry.key, now);
    return;
  }
  SourceMetrics& counted = metrics_.source(source_);
  counted.batches.Increment();
  counted.values.Increment(static_cast<double>(result.accepted));
  if (result.refused > 0) Refuse("nan", result.refused);
}

void StatsdBatcher::ForgetDeleted() {
  const std::uint64_t deletions = sink_.deletions();
  if (std::exchange(deletions_, deletions) != deletions) ForgetNames();
}

void StatsdBatcher::ForgetNames() {
  assert(values_.empty() && items_.empty());
  GiveBack(entries_);
  key_bytes_ = 0;
  GiveBack(table_);
}

void StatsdBatcher::Forget() {
  ForgetNames();
  GiveBack(touched_);
  GiveBack(values_);
  GiveBack(grouped_);
  GiveBack(items_touched_);
  GiveBack(items_);
  GiveBack(grouped_items_);
}

std::size_t StatsdBatcher::memory_bytes() const {
  return BytesOf(entries_) + key_bytes_ + BytesOf(table_) + BytesOf(touched_) + BytesOf(values_) +
         BytesOf(grouped_) + BytesOf(items_touched_) + BytesOf(items_) + BytesOf(grouped_items_);
}

void StatsdBatcher::RefuseLong(std::string_view begin, RecordedTime now) {
  Refuse("bad_line", 1);
  Warn("longer than " + std::to_string(limits_.line_bytes_max) + " bytes", begin, now);
}

void StatsdBatcher::Refuse(std::string_view reason, std::uint64_t count) {
  metrics_.Refused(source_, reason).Increment(static_cast<double>(count));
}

void StatsdBatcher::Warn(std::string_view why, std::string_view text, RecordedTime now) {
  if (!log_.Admit(now)) return;
  std::string message(SourceName(source_));
  message += ": refused \"";
  message += Quotable(text);
  message += "\": ";
  message += why;
  log_.Write(IngestLogLevel::kWarning, std::move(message));
}

}  // namespace tidemark::server
