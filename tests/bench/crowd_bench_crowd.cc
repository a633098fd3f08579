#include "tests/bench/crowd_bench_crowd.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "tests/bench/service_bench_daemon.h"

namespace tidemark::bench {
namespace {

// A tenth of the members drips at each tick: a byte a second each.
constexpr std::chrono::milliseconds kTick{100};
constexpr std::size_t kTicksASecond = 10;
constexpr int kEvents = 512;
// The crowd stands for other machines: it comes after the daemon and who asks.
constexpr int kNice = 10;

}  // namespace

std::size_t RaiseDescriptorLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::size_t>(limit.rlim_cur);
}

Crowd::Crowd(std::uint16_t port, std::size_t members, const Script& script)
    : port_(port),
      script_(script),
      members_(members),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      thread_([this] { Live(); }) {}

Crowd::~Crowd() {
  stop_ = true;
  thread_.join();
  for (const Member& member : members_) {
    if (member.fd >= 0) close(member.fd);
  }
  close(epoll_);
}

bool Crowd::IsThere() const {
  if (failed_) throw std::runtime_error(failure_);
  return arrived_ >= members_.size();
}

void Crowd::Live() {
  nice(kNice);  // on Linux of the calling thread
  try {
    for (Member& member : members_) {
      if (stop_) return;
      Connect(member);
    }
  } catch (const std::exception& error) {
    failure_ = error.what();
    failed_ = true;
    return;
  }
  Drive();
}

void Crowd::Connect(Member& member) {
  member.fd = ConnectLoopback(SOCK_STREAM, port_);
  const linger reset{1, 0};
  setsockopt(member.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  if (script_.deaf) {
    const int little = 4096;
    setsockopt(member.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  }
  fcntl(member.fd, F_SETFL, fcntl(member.fd, F_GETFL) | O_NONBLOCK);
  if (!script_.first.empty()) {
    // Fits any socket's buffer; a peer that has closed is seen by reading.
    (void)!send(member.fd, script_.first.data(), script_.first.size(), MSG_NOSIGNAL);
  }
  Watch(member, EPOLL_CTL_ADD);
  if (script_.answer_bytes == 0) Settle(member);
}

// A deaf member that has settled is only told that its connection was reset.
void Crowd::Watch(const Member& member, int how) const {
  epoll_event event{};
  event.data.u64 = static_cast<std::uint64_t>(&member - members_.data());
  if (!(script_.deaf && member.has_settled)) event.events |= EPOLLIN;
  if (!script_.flood.empty() && member.has_settled) event.events |= EPOLLOUT;
  epoll_ctl(epoll_, how, member.fd, &event);
}

void Crowd::Drive() {
  std::array<epoll_event, kEvents> events{};
  auto next_tick = std::chrono::steady_clock::now() + kTick;
  std::size_t tick = 0;
  while (!stop_) {
    const int ready = epoll_wait(epoll_, events.data(), kEvents, static_cast<int>(kTick.count()));
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      Member& member = members_[event.data.u64];
      if (member.fd < 0) continue;
      if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
        End(member);
        continue;
      }
      if ((event.events & EPOLLIN) != 0) Read(member);
      if (member.fd >= 0 && (event.events & EPOLLOUT) != 0) Flood(member);
    }
    if (std::chrono::steady_clock::now() < next_tick) continue;
    next_tick += kTick;
    Drip(tick++);
  }
}

void Crowd::Read(Member& member) {
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t got = recv(member.fd, chunk.data(), chunk.size(), 0);
    if (got > 0) {
      member.got += static_cast<std::size_t>(got);
      if (!member.has_settled && script_.answer_bytes > 0 && member.got >= script_.answer_bytes) {
        Settle(member);
        if (script_.deaf) return;
      }
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) End(member);
    return;
  }
}

void Crowd::Flood(Member& member) {
  const std::string_view left = std::string_view(script_.flood).substr(member.flooded);
  const ssize_t sent = send(member.fd, left.data(), left.size(), MSG_NOSIGNAL);
  if (sent > 0) {
    member.flooded = (member.flooded + static_cast<std::size_t>(sent)) % script_.flood.size();
  } else if (errno != EAGAIN && errno != EINTR) {
    End(member);
  }
}

void Crowd::Drip(std::size_t tick) {
  for (std::size_t i = tick % kTicksASecond; i < members_.size(); i += kTicksASecond) {
    Member& member = members_[i];
    if (member.fd < 0) continue;
    if (member.dripped >= script_.drip.size()) continue;
    if (send(member.fd, &script_.drip[member.dripped], 1, MSG_NOSIGNAL) == 1) {
      ++member.dripped;
    } else if (errno != EAGAIN && errno != EINTR) {
      End(member);
    }
  }
}

void Crowd::Settle(Member& member) {
  member.has_settled = true;
  ++settled_;
  ++arrived_;
  Watch(member, EPOLL_CTL_MOD);
}

void Crowd::End(Member& member) {
  close(member.fd);
  member.fd = -1;
  if (!member.has_settled && script_.answer_bytes > 0 && member.got > 0) ++misanswered_;
  if (!member.has_settled) ++arrived_;
  ++ended_;
}

}  // namespace tidemark::bench
