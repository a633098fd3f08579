#include "server/window/flow_gate.h"

#include <utility>

namespace tidemark::server {

void FlowGate::Leave(std::uint64_t keys) {
  const std::uint64_t left = keys_.fetch_sub(keys) - keys;
  if (left <= ready_ && anyone_waits_.load()) Ring();
}

void FlowGate::WhenReady(std::function<void()> resume) {
  {
    const std::lock_guard lock(mutex_);
    gone_.DropFrom(waiting_, [](const auto& one) { return IsGone(one); });
    waiting_.push_back(std::move(resume));
    anyone_waits_.store(true);
  }
  // The level may have fallen between the caller's look and the lines above; Leave then saw nobody.
  if (keys_.load() <= ready_ || closed_.load()) Ring();
}

void FlowGate::Close() {
  closed_.store(true);
  Ring();
}

std::size_t FlowGate::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void FlowGate::Ring() {
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    ready.swap(waiting_);
    gone_.Left(0);
    anyone_waits_.store(false);
  }
  for (const auto& resume : ready) resume();
}

}  // namespace tidemark::server
