#include "server/access/peers.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <utility>

namespace tidemark::server {

struct PeerShare::Peer {
  PeerTable& table;
  const std::string key;
  std::array<std::atomic<std::uint64_t>, kPeerResources> used{};
};

std::string_view PeerResourceName(PeerResource what) {
  switch (what) {
    case PeerResource::kConnections:
      return "connections";
    case PeerResource::kCalls:
      return "calls";
    case PeerResource::kBytes:
      return "bytes";
  }
  return "unknown";
}

std::string PeerOfAddress(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without the interface
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return text;
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, &v6.s6_addr[12], written.data(), written.size());
    return written.data();
  }
  for (std::size_t i = 8; i < sizeof(v6.s6_addr); ++i) v6.s6_addr[i] = 0;
  inet_ntop(AF_INET6, &v6, written.data(), written.size());
  return fmt::format("{}/64", written.data());
}

PeerShare& PeerShare::operator=(PeerShare&& other) noexcept {
  if (this == &other) return *this;
  Release();
  peer_ = std::exchange(other.peer_, nullptr);
  what_ = other.what_;
  protocol_ = other.protocol_;
  amount_ = std::exchange(other.amount_, 0);
  return *this;
}

void PeerShare::Release() {
  if (!peer_) return;
  peer_->used[static_cast<std::size_t>(what_)].fetch_sub(amount_);
  amount_ = 0;
  peer_.reset();
}

void PeerShare::Force(std::uint64_t amount) {
  if (!peer_) return;
  // Wraps around when it shrinks, which adds up all the same.
  peer_->used[static_cast<std::size_t>(what_)].fetch_add(amount - amount_);
  amount_ = amount;
}

bool PeerShare::Resize(std::uint64_t amount) {
  if (TryResize(amount)) return true;
  peer_->table.metrics_.PeerRefused(protocol_, PeerResourceName(what_)).Increment();
  return false;
}

bool PeerShare::TryResize(std::uint64_t amount) {
  if (!peer_ || amount <= amount_) {
    Force(amount);
    return true;
  }
  auto& used = peer_->used[static_cast<std::size_t>(what_)];
  const std::uint64_t limit = peer_->table.LimitOf(what_);
  const std::uint64_t more = amount - amount_;
  std::uint64_t before = used.load();
  do {
    if (limit != 0 && (before > limit || more > limit - before)) return false;
  } while (!used.compare_exchange_weak(before, before + more));
  amount_ = amount;
  return true;
}

bool PeerShare::IsOf(std::string_view peer) const {
  return peer_ ? peer_->key == peer : peer.empty();
}

absl::Status PeerTable::Take(std::string_view peer, PeerResource what, std::uint64_t amount,
                             std::string_view protocol, PeerShare& share) {
  if (share.IsOf(peer)) return absl::OkStatus();
  PeerShare taken;
  if (!peer.empty() && LimitOf(what) != 0) {
    taken.peer_ = Find(peer);
    taken.what_ = what;
    taken.protocol_ = protocol;
    if (!taken.Resize(amount)) {
      return absl::ResourceExhaustedError(
          what == PeerResource::kBytes
              ? fmt::format("more than the {} bytes that one peer may have on their way",
                            limits_.bytes)
              : fmt::format("this peer has {} {}, which is the limit of one peer; try again later",
                            LimitOf(what), PeerResourceName(what)));
    }
  }
  share = std::move(taken);
  return absl::OkStatus();
}

std::uint64_t PeerTable::LimitOf(PeerResource what) const {
  switch (what) {
    case PeerResource::kConnections:
      return limits_.connections;
    case PeerResource::kCalls:
      return limits_.calls;
    case PeerResource::kBytes:
      return limits_.bytes;
  }
  return 0;
}

std::shared_ptr<PeerShare::Peer> PeerTable::Find(std::string_view peer) {
  std::string key(peer);
  const std::lock_guard lock(mutex_);
  if (const auto found = peers_.find(key); found != peers_.end()) {
    if (auto known = found->second.peer.lock()) return known;
  }
  const std::shared_ptr<PeerShare::Peer> fresh(new PeerShare::Peer{*this, key},
                                               [](PeerShare::Peer* gone) {
                                                 gone->table.Forget(gone);
                                                 delete gone;
                                               });
  peers_[std::move(key)] = {fresh, fresh.get()};
  metrics_.peers().Set(static_cast<double>(peers_.size()));
  return fresh;
}

// Somebody may have come back under the same key since the last share ended: then the entry is
// theirs.
void PeerTable::Forget(PeerShare::Peer* peer) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(peer->key);
  if (found != peers_.end() && found->second.is == peer) peers_.erase(found);
  metrics_.peers().Set(static_cast<double>(peers_.size()));
}

std::size_t PeerTable::peers() const {
  const std::lock_guard lock(mutex_);
  return peers_.size();
}

}  // namespace tidemark::server
