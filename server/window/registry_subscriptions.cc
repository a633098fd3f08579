// StreamRegistry: subscriptions by name.
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "server/window/concat.h"
#include "server/window/refusal.h"
#include "server/window/stream_registry.h"
#include "server/window/text_rules.h"

namespace tidemark::server {
namespace {

absl::Status NoSuchSubscription(std::string_view name) {
  return absl::NotFoundError(Concat("there is no subscription \"", Printable(name), "\""));
}

}  // namespace

absl::Status StreamRegistry::CheckSubscription(std::string_view name,
                                               std::string_view request) const {
  if (absl::Status status = CheckStreamName(name, limits_.name_bytes_max); !status.ok()) {
    return absl::Status(status.code(), Concat("a subscription's name is like a stream's: ",
                                              std::string(status.message())));
  }
  if (request.size() > kSubscriptionBytesMax) {
    return absl::ResourceExhaustedError(Concat("subscription \"", Printable(name), "\" takes ",
                                               request.size(), " bytes; expected at most ",
                                               kSubscriptionBytesMax));
  }
  if (subscriptions_.size() >= limits_.subscriptions_max) {
    return absl::ResourceExhaustedError(Concat(
        "cannot keep subscription \"", Printable(name), "\": the limit of ",
        limits_.subscriptions_max, " subscriptions is reached (limits.max_named_subscriptions)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> StreamRegistry::Subscribe(const Subscription& subscription) {
  const std::unique_lock lock(mutex_);
  const auto stream = streams_.find(subscription.stream);
  if (const auto kept = subscriptions_.find(subscription.name); kept != subscriptions_.end()) {
    if (stream != streams_.end() && kept->second == stream->second &&
        kept->second->FindSubscription(subscription.name) == subscription.request) {
      return kept->second->last_logged();
    }
    // Whose it is, is for those to know who may ask that stream.
    return absl::AlreadyExistsError(
        Concat("there is another subscription \"", Printable(subscription.name), "\""));
  }
  if (stream == streams_.end()) {
    return absl::NotFoundError(
        Concat("there is no stream \"", Printable(subscription.stream), "\""));
  }
  if (absl::Status status = CheckSubscription(subscription.name, subscription.request);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<std::uint64_t> sequence =
      stream->second->Subscribe(subscription.name, subscription.request);
  if (sequence.ok()) subscriptions_.emplace(subscription.name, stream->second);
  return sequence;
}

absl::StatusOr<std::uint64_t> StreamRegistry::Unsubscribe(std::string_view name,
                                                          std::string_view stream) {
  const std::unique_lock lock(mutex_);
  const auto kept = subscriptions_.find(name);
  if (kept == subscriptions_.end() || (!stream.empty() && kept->second->name() != stream)) {
    return NoSuchSubscription(name);
  }
  absl::StatusOr<std::uint64_t> sequence = kept->second->Unsubscribe(name);
  if (sequence.ok()) subscriptions_.erase(kept);
  return sequence;
}

absl::StatusOr<Subscription> StreamRegistry::FindSubscription(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto kept = subscriptions_.find(name);
  if (kept == subscriptions_.end()) return NoSuchSubscription(name);
  return Subscription{std::string(name), kept->second->name(),
                      kept->second->FindSubscription(name).value_or("")};
}

std::vector<Subscription> StreamRegistry::ListSubscriptions(std::string_view after,
                                                            std::string_view prefix,
                                                            std::size_t limit) const {
  std::vector<Subscription> found;
  const std::shared_lock lock(mutex_);
  auto at = subscriptions_.lower_bound(prefix);
  if (!after.empty() && after >= prefix) at = subscriptions_.upper_bound(after);
  for (; at != subscriptions_.end() && found.size() < limit; ++at) {
    if (!at->first.starts_with(prefix)) break;
    found.push_back(
        {at->first, at->second->name(), at->second->FindSubscription(at->first).value_or("")});
  }
  return found;
}

std::size_t StreamRegistry::subscriptions() const {
  const std::shared_lock lock(mutex_);
  return subscriptions_.size();
}

void StreamRegistry::ForgetSubscriptions(const Stream& stream) {
  for (const auto& [name, request] : stream.subscriptions()) {
    const auto kept = subscriptions_.find(name);
    if (kept != subscriptions_.end() && kept->second.get() == &stream) subscriptions_.erase(kept);
  }
}

std::vector<KeptTwice> StreamRegistry::NameSubscriptions(const std::vector<StreamHandle>& streams) {
  std::vector<KeptTwice> twice;
  const std::unique_lock lock(mutex_);
  subscriptions_.clear();
  for (const StreamHandle& stream : streams) {
    const StreamSubscriptions all = stream->subscriptions();
    for (const auto& [name, request] : all) {
      const auto [kept, is_new] = subscriptions_.try_emplace(name, stream);
      if (is_new) continue;
      twice.push_back({name, std::exchange(kept->second, stream), stream});
    }
  }
  return twice;
}

}  // namespace tidemark::server
