#include "client/demo/feeds.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "client/demo/sources.h"

namespace tidemark::demo {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kTickNs = 10'000'000;
constexpr std::uint64_t kRareNs = 100'000'000;

void SleepUntil(std::uint64_t ns) {
  const timespec until = {static_cast<time_t>(ns / 1'000'000'000),
                          static_cast<long>(ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace

std::string Feeds::StreamName(const std::string& prefix, FeedId id) {
  return prefix + kFeedInfo[id].name;
}

Feeds::Feeds(client::Client* client, const std::string& prefix) {
  for (std::size_t i = 0; i < kFeeds; ++i) {
    Feed& feed = feeds_[i];
    const std::string name = StreamName(prefix, static_cast<FeedId>(i));
    client->CreateStream(name, {.type = kFeedInfo[i].type});
    client::AcknowledgedPushOptions options;
    options.on_acknowledgement = [&feed](const client::Acknowledgement& a) {
      if (a.code != client::Code::kOk) throw client::Error(a.code, a.message);
      feed.acknowledged += a.accepted;
    };
    feed.pusher = std::unique_ptr<client::AcknowledgedPusher>(
        new client::AcknowledgedPusher(client->PushAcknowledged(name, std::move(options))));
  }
  machine_ = std::thread([this] { Guard([this] { RunMachine(); }); });
  wake_ = std::thread([this] { Guard([this] { RunWake(); }); });
  pthread_setname_np(machine_.native_handle(), "demo-machine");
  pthread_setname_np(wake_.native_handle(), "demo-wake");
}

Feeds::~Feeds() {
  if (!machine_.joinable()) return;
  stop_ = true;
  Cancel();
  machine_.join();
  wake_.join();
}

template <typename Function>
void Feeds::Guard(Function run) {
  try {
    run();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

std::exception_ptr Feeds::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

FeedCount Feeds::count(FeedId id) const { return {feeds_[id].sent, feeds_[id].acknowledged}; }

void Feeds::Stop() {
  stop_ = true;
  machine_.join();
  wake_.join();
  if (error_) std::rethrow_exception(error_);
}

void Feeds::Cancel() {
  for (Feed& feed : feeds_) feed.pusher->Cancel();
}

template <typename T>
void Feeds::Push(FeedId id, const std::vector<T>& values) {
  if (values.empty()) return;
  // Counted before: whoever reads both never sees more acknowledged than sent.
  feeds_[id].sent += values.size();
  feeds_[id].pusher->Write(std::span<const T>(values));
}

void Feeds::RunMachine() {
  Loopback loopback;
  std::vector<std::uint32_t> gaps;
  std::vector<float> trips;
  std::uint64_t next = ClockNs();
  std::uint64_t next_rare = next;
  while (!stop_) {
    gaps.clear();
    // Two bursts: the time between them is no gap between successive readings.
    for (int i = 0; i < 2; ++i) AppendClockGaps(client::kBatchValues, 1ms, &gaps);
    Push(kClockGaps, gaps);

    trips.clear();
    const std::uint64_t trips_end = ClockNs() + 500'000;
    while (ClockNs() < trips_end) {
      if (const auto trip = loopback.RoundTripNs()) trips.push_back(*trip);
    }
    Push(kLoopback, trips);

    const std::uint64_t start = ClockNs();
    if (start >= next_rare) {
      Push(kThreads, ThreadStates());
      Push(kPeers, TcpPeers());
      const std::uint64_t end = ClockNs();
      next_rare = std::max(start + kRareNs, end + 20 * (end - start));
      for (Feed& feed : feeds_) {
        if (&feed != &feeds_[kWakeDelays]) feed.pusher->Flush();
      }
    }
    // Late ticks are not made up for: a machine that is busy is left alone.
    next = std::max(next + kTickNs, ClockNs());
    SleepUntil(next);
  }
  for (Feed& feed : feeds_) {
    if (&feed != &feeds_[kWakeDelays]) feed.pusher->Finish();
  }
}

void Feeds::RunWake() {
  client::AcknowledgedPusher& pusher = *feeds_[kWakeDelays].pusher;
  std::vector<double> delays;
  while (!stop_) {
    delays.clear();
    const std::uint64_t end = ClockNs() + kRareNs;
    while (ClockNs() < end) delays.push_back(WakeDelayNs(200us));
    Push(kWakeDelays, delays);
    pusher.Flush();
  }
  pusher.Finish();
}

}  // namespace tidemark::demo
