#include "server/window/stream_registry.h"

#include <mutex>
#include <utility>

#include "server/window/concat.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

absl::Status CheckEpsilon(double epsilon, std::string_view which) {
  if (epsilon >= kEpsilonMin && epsilon <= kEpsilonMax) return absl::OkStatus();
  return absl::InvalidArgumentError(Concat(which, " epsilon ", epsilon,
                                           " is out of range; expected ", kEpsilonMin, " to ",
                                           kEpsilonMax));
}

std::string Describe(const StreamSettings& settings) {
  return Concat("type ", ElementTypeName(settings.element()), ", quantile epsilon ",
                settings.quantile_epsilon, ", frequency epsilon ", settings.frequency_epsilon);
}

absl::Status NoSuchStream(std::string_view name) {
  return absl::NotFoundError(Concat("there is no stream \"", Printable(name), "\""));
}

}  // namespace

StreamSettings StreamRegistry::defaults() const {
  const std::shared_lock lock(mutex_);
  return defaults_;
}

void StreamRegistry::set_defaults(StreamSettings defaults) {
  const std::unique_lock lock(mutex_);
  defaults_ = defaults;
}

absl::StatusOr<StreamHandle> StreamRegistry::Insert(std::string_view name,
                                                    const StreamSettings& settings) {
  if (absl::Status status = CheckStreamName(name, limits_.name_bytes_max); !status.ok()) {
    return status;
  }
  if (streams_.size() >= limits_.streams_max) {
    return absl::ResourceExhaustedError(Concat("cannot create stream \"", Printable(name),
                                               "\": the limit of ", limits_.streams_max,
                                               " streams is reached"));
  }
  if (settings.payload != PayloadType::kNone) {
    return WithRefusal(absl::UnimplementedError(Concat("stream \"", Printable(name),
                                                       "\": no summary takes weights or y yet")),
                       Refusal::kTypeMismatch);
  }
  StreamHandle stream = MakeStream(std::string(name), settings, context_);
  streams_.emplace(stream->name(), stream);
  return stream;
}

absl::StatusOr<StreamHandle> StreamRegistry::Create(std::string_view name,
                                                    StreamSettings settings) {
  if (absl::Status status = CheckEpsilon(settings.quantile_epsilon, "quantile"); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckEpsilon(settings.frequency_epsilon, "frequency"); !status.ok()) {
    return status;
  }
  const std::unique_lock lock(mutex_);
  if (const auto at = streams_.find(name); at != streams_.end()) {
    if (at->second->settings() == settings) return at->second;
    return absl::AlreadyExistsError(
        Concat("stream \"", Printable(name),
               "\" exists with other settings: ", Describe(at->second->settings())));
  }
  return Insert(name, settings);
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
  return Insert(name, settings);
}

absl::StatusOr<StreamHandle> StreamRegistry::Find(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto at = streams_.find(name);
  if (at == streams_.end()) return NoSuchStream(name);
  return at->second;
}

absl::Status StreamRegistry::Delete(std::string_view name) {
  StreamHandle stream;
  {
    const std::unique_lock lock(mutex_);
    const auto at = streams_.find(name);
    if (at == streams_.end()) return NoSuchStream(name);
    stream = std::move(at->second);
    streams_.erase(at);
  }
  stream->MarkDeleted();
  return absl::OkStatus();
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
