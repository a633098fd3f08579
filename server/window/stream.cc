#include "server/window/stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "server/window/concat.h"
#include "server/window/keyed_stream.h"
#include "server/window/refusal.h"
#include "server/window/text_rules.h"

namespace tidemark::server {

SummaryOptions StreamSettings::summaries() const {
  SummaryOptions options;
  if (HasRanks(type)) options.quantile_epsilon = quantile_epsilon;
  options.quantile_form = quantile_form;
  options.tail_epsilon = tail_epsilon;
  if (frequencies) options.frequency_epsilon = frequency_epsilon;
  options.sliding = sliding;
  options.hierarchy = hierarchy;
  options.weights = payload == PayloadType::kWeight && frequencies;
  options.sums = payload == PayloadType::kY;
  if (sums) options.value_sums = ValueSumType(type);
  return options;
}

std::optional<SumType> ValueSumType(ValueType type) {
  switch (type) {
    case ValueType::kFloat64:
    case ValueType::kFloat32:
      return SumType::kFloat64;
    case ValueType::kInt64:
      return SumType::kInt64;
    case ValueType::kUint64:
    case ValueType::kUint32:
      return SumType::kUint64;
    default:
      return std::nullopt;
  }
}

std::string Describe(const StreamSettings& settings) {
  std::string text =
      Concat("type ", ElementTypeName(settings.element()), ", quantile epsilon ",
             settings.quantile_epsilon, " (", QuantileKindName(settings.quantile_form), "), ");
  if (settings.quantile_form == QuantileKind::kTail) {
    text += Concat("tail epsilon ", settings.tail_epsilon, ", ");
  }
  text += settings.frequencies ? Concat("frequency epsilon ", settings.frequency_epsilon)
                               : std::string("no frequencies");
  if (settings.sums) text += ", sums of values";
  for (const int length : settings.hierarchy.prefix_lengths) text += Concat(", /", length);
  if (settings.hierarchy.depth > 0) {
    text += Concat(", prefixes of up to ", settings.hierarchy.depth, " components between '",
                   std::string(1, settings.hierarchy.separator), "'",
                   settings.hierarchy.root_last ? ", from the last one" : "");
  }
  if (settings.sliding.any()) {
    text += Concat(", sliding over up to ", settings.sliding.values_max, " values and ",
                   settings.sliding.time_max_us, " us, epsilon ", settings.sliding.epsilon);
  }
  return text;
}

StreamLosses Stream::Losses() const {
  StreamLosses losses{
      .refused = 0,
      .refused_whole = refused_whole_.load(std::memory_order_relaxed),
      .dropped_datagrams = context_.dropped_datagrams ? context_.dropped_datagrams() : 0};
  const std::lock_guard lock(mutex_);
  losses.refused = refused_;
  return losses;
}

absl::Status Stream::MarkDeleted() {
  const std::lock_guard lock(mutex_);
  return MarkDeletedLocked();
}

absl::Status Stream::MarkDeletedLocked() {
  if (context_.log != nullptr) {
    if (absl::Status status = context_.log->Deleted(log_id_); !status.ok()) return status;
  }
  deleted_ = true;
  return absl::OkStatus();
}

std::uint32_t Stream::idle_trims() const {
  const std::lock_guard lock(mutex_);
  return active_ ? 0 : idle_trims_;
}

void Stream::RestartIdle() {
  const std::lock_guard lock(mutex_);
  idle_trims_ = 0;
}

bool Stream::MarkDeletedIfIdle(std::uint32_t trims) {
  const std::lock_guard lock(mutex_);
  return !active_ && idle_trims_ >= trims && MarkDeletedLocked().ok();
}

absl::StatusOr<std::uint64_t> Stream::LogBatch(LoggedBatch batch) {
  if (context_.log == nullptr) return 0;
  batch.stream_id = log_id_;
  batch.element = settings_.element();
  return Logged(context_.log->Batch(batch));
}

absl::StatusOr<std::uint64_t> Stream::Logged(absl::StatusOr<std::uint64_t> sequence) {
  if (absl::IsUnavailable(sequence.status())) {
    return WithRefusal(sequence.status(), Refusal::kLog);
  }
  if (sequence.ok() && *sequence != 0) last_logged_ = *sequence;
  return sequence;
}

absl::StatusOr<std::uint64_t> Stream::Subscribe(std::string_view name, std::string_view request) {
  const std::lock_guard lock(mutex_);
  if (deleted_) return DeletedStatus();
  absl::StatusOr<std::uint64_t> sequence = 0;
  if (context_.log != nullptr) {
    sequence = Logged(context_.log->Subscribed(log_id_, name, request));
  }
  if (!sequence.ok()) return sequence;
  if (subscriptions_ == nullptr) subscriptions_ = std::make_unique<StreamSubscriptions>();
  subscriptions_->insert_or_assign(std::string(name), std::string(request));
  return sequence;
}

absl::StatusOr<std::uint64_t> Stream::Unsubscribe(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (subscriptions_ == nullptr || !subscriptions_->contains(name)) {
    return absl::NotFoundError(
        Concat("stream \"", Printable(name_), "\" has no subscription \"", Printable(name), "\""));
  }
  absl::StatusOr<std::uint64_t> sequence = 0;
  if (context_.log != nullptr) sequence = Logged(context_.log->Unsubscribed(log_id_, name));
  if (sequence.ok()) subscriptions_->erase(subscriptions_->find(name));
  return sequence;
}

StreamSubscriptions Stream::subscriptions() const {
  const std::lock_guard lock(mutex_);
  return subscriptions_ == nullptr ? StreamSubscriptions() : *subscriptions_;
}

std::optional<std::string> Stream::FindSubscription(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (subscriptions_ == nullptr) return std::nullopt;
  const auto at = subscriptions_->find(name);
  if (at == subscriptions_->end()) return std::nullopt;
  return at->second;
}

AppendResult Stream::RefuseUnread(absl::Status why) {
  const std::lock_guard lock(mutex_);
  if (deleted_) return {.status = DeletedStatus()};
  active_ = true;
  return {.status = std::move(why)};
}

bool Stream::Answered(const ProducerBatch& from, AppendResult& result) {
  if (deleted_) {
    result.status = DeletedStatus();
    return true;
  }
  active_ = true;  // whatever becomes of the batch: somebody sends
  // What is replayed was taken in.
  if (!from.numbered() || context_.replaying) return false;
  const absl::StatusOr<std::optional<TakenBatch>> taken = Producers().Find(from);
  if (!taken.ok()) {
    result.status = WithRefusal(
        absl::FailedPreconditionError(
            Concat("stream \"", Printable(name_), "\": ", std::string(taken.status().message()))),
        Refusal::kProducer);
    return true;
  }
  if (!taken->has_value()) return false;
  result.accepted = (*taken)->accepted;
  result.refused = (*taken)->refused;
  if (context_.log != nullptr) {
    result.log_sequence = std::max((*taken)->log_sequence, context_.replayed_sequence);
  }
  result.duplicate = true;
  return true;
}

void Stream::Remember(const ProducerBatch& from, const AppendResult& result) {
  if (!from.numbered()) return;
  Producers().Add(from, {.accepted = static_cast<std::uint32_t>(result.accepted),
                         .refused = static_cast<std::uint32_t>(result.refused),
                         .log_sequence = result.log_sequence});
}

StreamProducers& Stream::Producers() {
  if (producers_ == nullptr) producers_ = std::make_unique<StreamProducers>(context_.producers);
  return *producers_;
}

absl::Status Stream::CheckPayloads(std::size_t values, std::size_t payload_bytes) const {
  const bool wanted = settings_.payload != PayloadType::kNone;
  if (wanted != (payload_bytes != 0) && values != 0) {
    return absl::FailedPreconditionError(
        Concat("stream \"", Printable(name_), "\" holds ", ElementTypeName(settings_.element()),
               wanted ? "; the batch has none beside its values"
                      : "; the batch has weights or y beside its values"));
  }
  if (wanted && payload_bytes != values * kPayloadBytes) {
    return absl::InvalidArgumentError(Concat(payload_bytes, " bytes of weights or y beside ",
                                             values, " values; expected ", kPayloadBytes,
                                             " for each"));
  }
  return absl::OkStatus();
}

absl::Status Stream::DeletedStatus() const {
  return absl::NotFoundError(Concat("stream \"", Printable(name_), "\" was deleted"));
}

std::shared_ptr<Stream> MakeStream(std::string name, StreamSettings settings,
                                   StreamContext& context) {
  return WithKeyOf(settings.type, [&]<class Key>(Key) -> std::shared_ptr<Stream> {
    return std::make_shared<KeyedStream<Key>>(std::move(name), settings, context);
  });
}

}  // namespace tidemark::server
