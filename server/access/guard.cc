#include "server/access/guard.h"

#include <limits>

namespace tidemark::server {

void Guard::Set(std::shared_ptr<const Policy> policy) {
  const std::lock_guard lock(mutex_);
  policy_ = std::move(policy);
  generation_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<const Policy> Guard::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

void Guard::Count(std::string_view protocol, Denial denial) const {
  metrics_.AccessRefused(protocol, DenialName(denial)).Increment();
}

Caller::Caller(const Guard* guard, std::string_view protocol, Credentials credentials)
    : guard_(guard), protocol_(protocol), credentials_(std::move(credentials)) {
  Refresh();
}

// The generation first: rules that are set in between are then found by the next Follow.
void Caller::Refresh() {
  ++version_;
  if (guard_ == nullptr) return;
  generation_ = guard_->generation();
  policy_ = guard_->policy();
  if (!policy_) return;
  const std::int64_t now = guard_->Now();
  identity_ = policy_->Identify(credentials_, now);
  expired_ = false;
}

// Takes in other rules, and that a token has expired.
void Caller::Follow() {
  if (guard_ == nullptr) return;
  const bool replaced = guard_->generation() != generation_;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const bool expired = policy_ && !expired_ && identity_.expires_us() != kNever &&
                       identity_.expires_us() <= guard_->Now();
  if (!replaced && !expired) return;
  Refresh();
  expired_ = expired;
}

void Caller::Show(const TokenHash& token) {
  credentials_.token = token;
  Refresh();
}

absl::Status Caller::Judge(const Decision& decision) const {
  if (decision.allowed()) return absl::OkStatus();
  guard_->Count(protocol_, decision.denial);
  return decision.denial == Denial::kRole ? absl::PermissionDeniedError(decision.why)
                                          : absl::UnauthenticatedError(decision.why);
}

absl::Status Caller::MayOver(Role role, std::string_view stream) {
  Follow();
  return policy_ ? Judge(policy_->MayOver(identity_, role, stream)) : absl::OkStatus();
}
absl::Status Caller::MayOverAny(Role role) {
  Follow();
  return policy_ ? Judge(policy_->MayOverAny(identity_, role)) : absl::OkStatus();
}
absl::Status Caller::MayOverAll(Role role) {
  Follow();
  return policy_ ? Judge(policy_->MayOverAll(identity_, role)) : absl::OkStatus();
}
absl::Status Caller::MayAnything() {
  Follow();
  return policy_ ? Judge(policy_->MayAnything(identity_)) : absl::OkStatus();
}
std::string Caller::Peer() {
  Follow();
  if (policy_) {
    // "principal" and a blank are in no address.
    if (const std::string_view name = policy_->NameOf(identity_); !name.empty()) {
      return "principal " + std::string(name);
    }
  } else if (!credentials_.certificate_names.empty()) {
    return "certificate " + credentials_.certificate_names.front();
  }
  const PeerTable* const peers = guard_ == nullptr ? nullptr : guard_->peers();
  if (credentials_.loopback && (peers == nullptr || !peers->limits().loopback_is_one_peer)) {
    return "";
  }
  return PeerOfAddress(credentials_.address);
}

absl::Status Caller::Hold(PeerResource what, std::uint64_t amount, PeerShare& share) {
  PeerTable* const peers = guard_ == nullptr ? nullptr : guard_->peers();
  if (peers == nullptr) return absl::OkStatus();
  std::string peer = Peer();
  // As the limit of all connections, that of a peer's is of each protocol: who has all its places
  // there can still be asked for /metrics.
  if (what == PeerResource::kConnections && !peer.empty()) {
    peer += ' ';
    peer += protocol_;
  }
  return peers->Take(peer, what, amount, protocol_, share);
}

bool Caller::Sees(std::string_view stream) {
  Follow();
  return !policy_ || policy_->Sees(identity_, stream);
}

}  // namespace tidemark::server
