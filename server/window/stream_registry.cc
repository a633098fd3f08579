#include "server/window/stream_registry.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "server/window/concat.h"
#include "server/window/finish_or_end.h"
#include "server/window/keyed_stream.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"
#include "summaries/hierarchy.h"

namespace tidemark::server {
namespace {

// Widest sliding windows: beyond them a stream's memory would no longer be worth the name of a
// summary's, and the arithmetic of times stays far from 2^63.
constexpr std::uint64_t kSlidingValuesMax = std::uint64_t{1} << 40;
// Below, a stream would keep tens of millions of values as they came (SlidingRule::recent_values);
// above, blocks are too few for the rule.
constexpr double kSlidingEpsilonMin = 1e-4;
constexpr double kSlidingEpsilonMax = 0.2;
constexpr std::int64_t kSlidingTimeMax = std::int64_t{366} * 24 * 3600 * 1'000'000;

absl::Status CheckEpsilon(double epsilon, std::string_view which, double min = kEpsilonMin,
                          double max = kEpsilonMax) {
  if (epsilon >= min && epsilon <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat(which, " epsilon ", epsilon, " is out of range; expected ", min, " to ", max));
}

absl::Status NoSuchStream(std::string_view name) {
  return absl::NotFoundError(Concat("there is no stream \"", Printable(name), "\""));
}

// The log's answer, for the stream that it has now; or for its sender.
absl::Status Logged(const absl::StatusOr<LoggedStream>& logged, Stream& stream) {
  if (absl::IsUnavailable(logged.status())) return WithRefusal(logged.status(), Refusal::kLog);
  if (logged.ok()) stream.set_logged(*logged);
  return logged.status();
}

}  // namespace

absl::Status CheckSettings(const StreamSettings& settings) {
  const std::pair<double, std::string_view> epsilons[] = {{settings.quantile_epsilon, "quantile"},
                                                          {settings.frequency_epsilon, "frequency"},
                                                          {settings.tail_epsilon, "tail"}};
  for (const auto& [epsilon, which] : epsilons) {
    if (absl::Status status = CheckEpsilon(epsilon, which); !status.ok()) return status;
  }
  if (absl::Status status =
          CheckEpsilon(settings.sliding.epsilon, "sliding", kSlidingEpsilonMin, kSlidingEpsilonMax);
      !status.ok()) {
    return status;
  }
  if (settings.type == ValueType::kString) {
    if (settings.payload == PayloadType::kY) {
      return absl::InvalidArgumentError(
          "strings have no order, so that no y beside them can be summed over a range; expected "
          "weights, or numbers with y");
    }
    if (!settings.frequencies) {
      return absl::InvalidArgumentError(
          "strings have counts and nothing else; expected frequencies");
    }
  }
  if (settings.type == ValueType::kIpv6 &&
      (!settings.frequencies || settings.payload == PayloadType::kY)) {
    return absl::InvalidArgumentError(
        "addresses of ipv6 have counts and no ranks: nothing is left without frequencies, and no y "
        "beside them can be summed over a range; expected frequencies, with weights or without");
  }
  if (settings.sums && !CanSumValues(settings.element())) {
    return absl::InvalidArgumentError(
        Concat("sums of a stream's own values are for numbers with nothing beside them; expected "
               "float64, float32, int64, uint64 or uint32, not ",
               ElementTypeName(settings.element())));
  }
  if (settings.hierarchy.depth != 0) {
    if (settings.type != ValueType::kString) {
      return absl::InvalidArgumentError(
          "components between separators are those of strings; expected type string");
    }
    const char separator = settings.hierarchy.separator;
    if (separator <= ' ' || separator > '~') {
      return absl::InvalidArgumentError(
          "the separator of a hierarchy is one visible character of ASCII, such as . or /");
    }
    if (settings.hierarchy.depth < 0 || settings.hierarchy.depth > TextLevels::kMaxDepth) {
      return absl::InvalidArgumentError(Concat("a hierarchy of ", settings.hierarchy.depth,
                                               " components is out of range; expected 1 to ",
                                               TextLevels::kMaxDepth));
    }
  }
  const std::vector<int>& lengths = settings.hierarchy.prefix_lengths;
  if (!lengths.empty()) {
    const bool ipv6 = settings.type == ValueType::kIpv6;
    if ((settings.type != ValueType::kIpv4 && !ipv6) || !settings.frequencies) {
      return absl::InvalidArgumentError(
          "a hierarchy of prefixes is for addresses that are counted; expected type ipv4 or ipv6, "
          "with frequencies");
    }
    const int most = ipv6 ? 128 : 32;
    const bool ascend = std::is_sorted(lengths.begin(), lengths.end(), std::less_equal<>());
    if (!ascend || lengths.front() < 0 || lengths.back() > most) {
      return absl::InvalidArgumentError(Concat(
          "prefix lengths of a hierarchy must ascend, each once, from 0 to ", most, " bits"));
    }
  }
  if (settings.sliding.values_max > kSlidingValuesMax) {
    return absl::InvalidArgumentError(Concat("a sliding window of ", settings.sliding.values_max,
                                             " values is too wide; expected at most ",
                                             kSlidingValuesMax));
  }
  if (settings.sliding.time_max_us < 0 || settings.sliding.time_max_us > kSlidingTimeMax) {
    return absl::InvalidArgumentError(Concat("a sliding window of ", settings.sliding.time_max_us,
                                             " us is out of range; expected up to ",
                                             kSlidingTimeMax, " (366 days)"));
  }
  return absl::OkStatus();
}

StreamSettings StreamRegistry::defaults() const {
  const std::shared_lock lock(mutex_);
  return defaults_;
}

void StreamRegistry::set_defaults(StreamSettings defaults) {
  const std::unique_lock lock(mutex_);
  defaults_ = defaults;
}

absl::Status StreamRegistry::CheckNew(std::string_view name, const StreamSettings& settings) const {
  constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
  const std::size_t name_bytes_max = context_.replaying ? kAny : limits_.name_bytes_max;
  if (absl::Status status = CheckStreamName(name, name_bytes_max); !status.ok()) {
    return status;
  }
  if (streams_.size() >= limits_.streams_max && !context_.replaying) {
    return absl::ResourceExhaustedError(Concat("cannot create stream \"", Printable(name),
                                               "\": the limit of ", limits_.streams_max,
                                               " streams is reached"));
  }
  if (!context_.replaying && !context_.memory.Admits(MemoryWish::kNewStream, 0)) {
    return context_.memory.Refused(MemoryWish::kNewStream,
                                   Concat("cannot create stream \"", Printable(name), "\""));
  }
  if (const absl::Status wrong = CheckSettings(settings); !wrong.ok()) {
    return absl::Status(wrong.code(),
                        Concat("stream \"", Printable(name), "\": ", std::string(wrong.message())));
  }
  return absl::OkStatus();
}

absl::StatusOr<StreamHandle> StreamRegistry::Insert(std::string_view name,
                                                    const StreamSettings& settings) {
  if (absl::Status status = CheckNew(name, settings); !status.ok()) return status;
  StreamHandle stream = MakeStream(std::string(name), settings, context_);
  const FinishOrEnd created;
  if (context_.log != nullptr) {
    if (absl::Status status = Logged(context_.log->Created(name, settings), *stream);
        !status.ok()) {
      return status;
    }
  }
  streams_.emplace(stream->name(), stream);
  return stream;
}

absl::StatusOr<StreamHandle> StreamRegistry::Create(std::string_view name,
                                                    StreamSettings settings) {
  const std::unique_lock lock(mutex_);
  if (const auto at = streams_.find(name); at != streams_.end()) {
    if (at->second->settings() == settings) return at->second;
    return absl::AlreadyExistsError(
        Concat("stream \"", Printable(name),
               "\" exists with other settings: ", Describe(at->second->settings())));
  }
  return Insert(name, settings);
}

absl::Status StreamRegistry::CheckAbsent(std::string_view name) const {
  if (!streams_.contains(name)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      Concat("there is a stream \"", Printable(name), "\" already; expected a new name"));
}

absl::StatusOr<StreamHandle> StreamRegistry::Restore(std::string_view name, StreamState state) {
  const StreamSettings settings = std::visit([](const auto& held) { return held.settings; }, state);
  const auto check = [&]() -> absl::Status {
    if (absl::Status status = CheckAbsent(name); !status.ok()) return status;
    return CheckNew(name, settings);
  };
  {
    const std::shared_lock lock(mutex_);
    if (absl::Status status = check(); !status.ok()) return status;
  }
  // Without the lock: it may take milliseconds.
  StreamHandle stream = MakeStream(std::string(name), settings, context_);
  const absl::Status restored = std::visit(
      [&]<class Key>(KeyedState<Key>& held) {
        return static_cast<KeyedStream<Key>&>(*stream).Restore(std::move(held));
      },
      state);
  if (!restored.ok()) return restored;
  std::unique_ptr<PreparedState> prepared;
  if (context_.log != nullptr) {
    const absl::StatusOr<std::string> image = stream->Image();
    if (!image.ok()) return image.status();
    absl::StatusOr<std::unique_ptr<PreparedState>> records = context_.log->Prepare(*image);
    if (!records.ok()) return records.status();
    prepared = *std::move(records);
  }
  const std::unique_lock lock(mutex_);
  context_.memory.Look();  // at what it takes
  if (absl::Status status = check(); !status.ok()) return status;
  const FinishOrEnd created;
  if (prepared) {
    if (absl::Status status =
            Logged(context_.log->CreatedFrom(name, settings, std::move(prepared)), *stream);
        !status.ok()) {
      return status;
    }
  }
  streams_.emplace(stream->name(), stream);
  return stream;
}

absl::StatusOr<StreamHandle> StreamRegistry::RestoreImage(std::string_view name,
                                                          const StreamSettings& settings,
                                                          std::uint64_t log_id,
                                                          std::string_view image) {
  const std::unique_lock lock(mutex_);
  if (streams_.contains(name)) {
    return absl::AlreadyExistsError(Concat("there is a stream \"", Printable(name), "\" already"));
  }
  if (absl::Status status = CheckNew(name, settings); !status.ok()) return status;
  StreamHandle stream = MakeStream(std::string(name), settings, context_);
  stream->set_log_id(log_id);
  if (absl::Status status = stream->RestoreImage(image); !status.ok()) return status;
  streams_.emplace(stream->name(), stream);
  return stream;
}

absl::StatusOr<StreamHandle> StreamRegistry::FindOrCreate(std::string_view name,
                                                          std::optional<ElementType> type) {
  const auto check = [&](const StreamHandle& stream) -> absl::StatusOr<StreamHandle> {
    const ElementType held = stream->settings().element();
    if (!type || held == *type) return stream;
    return absl::FailedPreconditionError(Concat("stream \"", Printable(name), "\" holds ",
                                                ElementTypeName(held), ", not ",
                                                ElementTypeName(*type)));
  };
  {
    const std::shared_lock lock(mutex_);
    if (const auto at = streams_.find(name); at != streams_.end()) return check(at->second);
  }
  const std::unique_lock lock(mutex_);
  if (const auto at = streams_.find(name); at != streams_.end()) return check(at->second);
  StreamSettings settings = defaults_;
  if (type) {
    settings.type = type->value;
    settings.payload = type->payload;
  }
  // The defaults are meant for what has ranks, or can be summed: strings have counts and nothing
  // else.
  if (!HasRanks(settings.type)) settings.frequencies = true;
  settings.sums = settings.sums && CanSumValues(settings.element());
  return Insert(name, settings);
}

absl::StatusOr<StreamHandle> StreamRegistry::Find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto at = streams_.find(name);
  if (at == streams_.end()) return NoSuchStream(name);
  return at->second;
}

absl::Status StreamRegistry::Delete(std::string_view name) {
  StreamHandle stream;  // destroyed without the lock
  const std::unique_lock lock(mutex_);
  const auto at = streams_.find(name);
  if (at == streams_.end()) return NoSuchStream(name);
  stream = at->second;
  // Under the lock, so that the log has it before another stream of that name.
  if (absl::Status status = stream->MarkDeleted(); !status.ok()) return status;
  ForgetSubscriptions(*stream);
  streams_.erase(at);
  deletions_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

std::size_t StreamRegistry::DeleteIdle(std::uint32_t trims) {
  std::size_t deleted = 0;
  for (const StreamHandle& stream : All()) {
    if (stream->idle_trims() < trims) continue;  // without stopping the others
    const std::unique_lock lock(mutex_);
    const auto at = streams_.find(stream->name());
    if (at == streams_.end() || at->second != stream) continue;
    if (!stream->MarkDeletedIfIdle(trims)) continue;
    ForgetSubscriptions(*stream);
    streams_.erase(at);
    deletions_.fetch_add(1, std::memory_order_relaxed);
    ++deleted;
  }
  return deleted;
}

std::vector<StreamHandle> StreamRegistry::List(std::string_view after, std::string_view prefix,
                                               std::size_t limit) const {
  std::vector<StreamHandle> found;
  const std::shared_lock lock(mutex_);
  auto at = streams_.lower_bound(prefix);
  if (!after.empty() && after >= prefix) at = streams_.upper_bound(after);
  for (; at != streams_.end() && found.size() < limit; ++at) {
    if (!at->first.starts_with(prefix)) break;
    found.push_back(at->second);
  }
  return found;
}

std::vector<StreamHandle> StreamRegistry::All() const {
  return List({}, {}, static_cast<std::size_t>(-1));
}

std::size_t StreamRegistry::size() const {
  const std::shared_lock lock(mutex_);
  return streams_.size();
}

}  // namespace tidemark::server
