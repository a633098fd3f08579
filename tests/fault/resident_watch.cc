#include "tests/fault/resident_watch.h"

#include <algorithm>
#include <chrono>

namespace tidemark::fault {

ResidentWatch::ResidentWatch(const test::TestDaemon& daemon) : daemon_(daemon) {
  thread_ = std::thread([this] {
    while (!ends_) {
      most_ = std::max(most_.load(), daemon_.RssBytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
}

ResidentWatch::~ResidentWatch() {
  ends_ = true;
  thread_.join();
}

std::uint64_t ResidentWatch::Most() const {
  return std::max({most_.load(), daemon_.RssBytes(), daemon_.RssPeakBytes()});
}

}  // namespace tidemark::fault
