#include "server/rpc/watch_reactor.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "server/rpc/access_rules.h"
#include "server/rpc/alarm_time.h"
#include "server/rpc/convert.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/query_calls.h"
#include "server/rpc/try.h"
#include "server/window/concat.h"

namespace tidemark::server {

bool OpenSubscriptions::Add(const std::shared_ptr<WatchReactor>& subscription) {
  const std::lock_guard lock(mutex_);
  if (!ended_) open_.emplace(subscription.get(), subscription);
  return !ended_;
}

void OpenSubscriptions::Remove(const WatchReactor* subscription) {
  const std::lock_guard lock(mutex_);
  open_.erase(subscription);
}

void OpenSubscriptions::EndAll(const absl::Status& status) {
  std::vector<std::shared_ptr<WatchReactor>> open;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    for (const auto& [key, subscription] : open_) {
      if (auto one = subscription.lock()) open.push_back(std::move(one));
    }
  }
  // Without the lock: an ended subscription removes itself.
  for (const auto& one : open) one->Stop(status);
}

WatchReactor::WatchReactor(const Environment& environment, Caller caller, v1::WatchRequest request)
    : environment_(environment), request_(std::move(request)), caller_(std::move(caller)) {
  environment_.metrics.subscribers().Increment();
}

WatchReactor* WatchReactor::Begin(const Environment& environment, const v1::WatchRequest& request,
                                  Caller caller, PeerShare place) {
  const std::shared_ptr<WatchReactor> reactor(
      new WatchReactor(environment, std::move(caller), request));
  reactor->self_ = reactor;
  reactor->place_ = std::move(place);
  reactor->next_look_ = std::chrono::steady_clock::now();
  const absl::StatusOr<std::chrono::microseconds> interval = CheckWatchRequest(request);
  absl::Status status = interval.status();
  if (interval.ok()) reactor->interval_ = *interval;
  if (!environment.open.Add(reactor))
    status = absl::UnavailableError("the server is shutting down");
  if (!status.ok()) {
    const std::lock_guard lock(reactor->mutex_);
    reactor->End(status);
  } else {
    reactor->Look();
  }
  return reactor.get();
}

WatchReactor* WatchReactor::Refuse(const Environment& environment, const absl::Status& status) {
  const std::shared_ptr<WatchReactor> reactor(
      new WatchReactor(environment, Caller(nullptr, "grpc", {}), {}));
  reactor->self_ = reactor;
  reactor->counted_ = false;
  const std::lock_guard lock(reactor->mutex_);
  reactor->End(status);
  return reactor.get();
}

void WatchReactor::Look() {
  look_begun_ = std::chrono::steady_clock::now();
  // A full executor skips this look; the next one comes an interval later.
  if (!environment_.executor.Post([self = shared_from_this()] { self->Compute(); })) {
    CountError(absl::StatusCode::kUnavailable);
    SetAlarm();
  }
}

void WatchReactor::CountError(absl::StatusCode code) {
  environment_.metrics.QueryErrors("watch", absl::StatusCodeToString(code)).Increment();
}

void WatchReactor::SetAlarm() {
  const std::lock_guard lock(mutex_);
  stall_ = std::chrono::microseconds(0);
  next_look_ = std::max(next_look_ + interval_, std::chrono::steady_clock::now());
  ArmAt(next_look_);
}

void WatchReactor::ArmAt(std::chrono::steady_clock::time_point when) {
  if (ended_) return;
  alarm_ = std::make_unique<grpc::Alarm>();
  // Weak: an alarm keeps its callback after it fired, and this object keeps the alarm.
  alarm_->Set(AlarmTime(when - std::chrono::steady_clock::now()),
              [weak = weak_from_this(), turn = ++turn_](bool fired) {
                const std::shared_ptr<WatchReactor> self = weak.lock();
                if (fired && self) self->OnAlarm(turn);
              });
}

void WatchReactor::OnAlarm(std::uint64_t turn) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || turn != turn_) return;
    if (newest_) {
      SkipLooks();
      return;
    }
  }
  Look();
}

// The reader has not taken what is there: looking again would cost as much as for one who reads.
// The looks that are due are counted at ever longer intervals until it has.
void WatchReactor::SkipLooks() {
  const auto now = std::chrono::steady_clock::now();
  const std::int64_t due = std::max<std::int64_t>(1 + (now - next_look_) / interval_, 1);
  CountSkipped(static_cast<std::uint64_t>(due));
  missed_looks_ = true;
  stall_ = std::max(interval_, std::min<std::chrono::microseconds>(2 * stall_, kLongestStall));
  next_look_ = std::max(next_look_ + due * interval_, now);
  ArmAt(std::max(next_look_, now + stall_));
}

void WatchReactor::CountSkipped(std::uint64_t answers) {
  skipped_ += answers;
  environment_.metrics.subscription_skipped().Increment(static_cast<double>(answers));
}

absl::Status WatchReactor::MayGoOn() {
  const std::uint64_t version = caller_.Version();
  if (version == asked_version_) return absl::OkStatus();
  asked_version_ = version;
  const absl::Status status = MayCall(caller_, *request_.GetDescriptor());
  return status.ok() ? MayAsk(caller_, request_) : status;
}

absl::Status WatchReactor::ComputeAnswer(v1::WatchResponse& response) const {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::max<std::chrono::microseconds>(interval_, std::chrono::seconds(1));
  response.set_time_us(environment_.clock());
  return AnswerWatch(environment_.engine, request_, deadline, response);
}

bool WatchReactor::MovedSinceLast(const v1::WatchResponse& response) const {
  if (!request_.has_min_change() || !pushed_any_) return true;
  const double min_change = request_.min_change();
  switch (request_.query_case()) {
    case v1::WatchRequest::kQuantiles:
      return Moved(last_pushed_.quantiles(), response.quantiles(), min_change);
    case v1::WatchRequest::kHeavyHitters:
      return Moved(last_pushed_.heavy_hitters(), response.heavy_hitters(), min_change);
    case v1::WatchRequest::kHierarchicalHeavyHitters:
      return Moved(last_pushed_.hierarchical_heavy_hitters(), response.hierarchical_heavy_hitters(),
                   min_change);
    case v1::WatchRequest::kSums:
      return Moved(last_pushed_.sums(), response.sums(), min_change);
    case v1::WatchRequest::kSubscription:
    case v1::WatchRequest::QUERY_NOT_SET:
      break;
  }
  return true;
}

void WatchReactor::Compute() {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
  }
  v1::WatchResponse response;
  absl::Status status = MayGoOn();
  if (status.ok()) status = Try([&] { return ComputeAnswer(response); });
  const auto spent = std::chrono::steady_clock::now() - look_begun_;
  environment_.metrics.QuerySeconds("watch").Observe(std::chrono::duration<double>(spent).count());
  if (status.ok()) {
    if (MovedSinceLast(response)) {
      if (request_.has_min_change()) last_pushed_ = response;
      pushed_any_ = true;
      const std::lock_guard lock(mutex_);
      if (!ended_) Deliver(std::move(response));
    }
  } else if (absl::IsDeadlineExceeded(status)) {
    CountError(status.code());  // only slow to answer: it is looked at again
  } else {
    const std::lock_guard lock(mutex_);
    End(status);
    return;
  }
  SetAlarm();
}

void WatchReactor::Deliver(v1::WatchResponse response) {
  if (newest_) CountSkipped(1);
  newest_ = std::move(response);
  WriteNext();
}

void WatchReactor::WriteNext() {
  if (write_under_way_ || !newest_ || ended_) return;
  newest_->set_skipped(skipped_);
  // Never fails: its size was checked when it was made, and `skipped` adds 11 bytes at most.
  (void)SerializeMessage(*newest_, kWatchBytesMax + 64, writing_);
  newest_.reset();
  write_under_way_ = true;
  StartWrite(&writing_);
}

void WatchReactor::OnWriteDone(bool ok) {
  bool look = false;
  {
    const std::lock_guard lock(mutex_);
    write_under_way_ = false;
    if (ok) {
      environment_.metrics.subscription_answers().Increment();
    } else {
      End(absl::CancelledError("the subscriber is gone"));
    }
    if (missed_looks_ && newest_ && !ended_) {
      // What waits is as old as the stall; nobody looks but this thread, once the alarm is void.
      newest_.reset();
      pushed_any_ = false;  // what the next one would be compared with
      CountSkipped(1);
      ++turn_;
      alarm_->Cancel();
      next_look_ = std::chrono::steady_clock::now();
      look = true;
    }
    missed_looks_ = false;
    WriteNext();
    FinishIfIdle();
  }
  if (look) Look();
}

void WatchReactor::OnCancel() {
  const std::lock_guard lock(mutex_);
  End(absl::CancelledError("the subscription was cancelled"));
}

void WatchReactor::End(const absl::Status& status) {
  if (!ended_) {
    ended_ = status;
    if (!absl::IsCancelled(status)) CountError(status.code());
    newest_.reset();
    if (alarm_) alarm_->Cancel();
  }
  FinishIfIdle();
}

void WatchReactor::FinishIfIdle() {
  if (!ended_ || write_under_way_ || finished_) return;
  finished_ = true;
  Finish(ToGrpc(*ended_));
}

void WatchReactor::Stop(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  End(status);
}

void WatchReactor::OnDone() {
  environment_.open.Remove(this);
  environment_.metrics.subscribers().Decrement();
  if (counted_) environment_.subscriptions.fetch_sub(1);
  self_.reset();
}

}  // namespace tidemark::server
