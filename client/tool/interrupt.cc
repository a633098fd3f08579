#include "client/tool/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace tidemark::tool {
namespace {

int Checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return fd;
}

void Signal(int fd) {
  const std::uint64_t one = 1;
  // An eventfd write of 1 fails only when the counter is full: it is readable then as well.
  [[maybe_unused]] const auto written = write(fd, &one, sizeof(one));
}

}  // namespace

Interrupt::Interrupt() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  signal_fd_ = Checked(signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  raised_fd_ = Checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  stop_fd_ = Checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  thread_ = std::thread([this] { Run(); });
}

Interrupt::~Interrupt() {
  Signal(stop_fd_);
  thread_.join();
  close(signal_fd_);
  close(raised_fd_);
  close(stop_fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupt::raised() const {
  const std::lock_guard lock(mutex_);
  return count_ > 0;
}

void Interrupt::SetAction(std::function<void(int)> action) {
  const std::lock_guard lock(mutex_);
  action_ = std::move(action);
  if (!action_) return;
  for (int i = 1; i <= count_; ++i) action_(i);
}

void Interrupt::Run() {
  while (true) {
    std::array<pollfd, 2> fds = {{{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;  // EINTR
    if ((fds[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    const std::lock_guard lock(mutex_);
    ++count_;
    Signal(raised_fd_);
    if (action_) action_(count_);
  }
}

}  // namespace tidemark::tool
