// One subscriber of a continuous query.
//
//   alarm ──► executor: answer ──► moved? ──► newest ──► write (one at a time)
//     ▲                                                     │
//     └───────────────── interval ──────────────────────────┘
//
// Memory: one answer being written, one waiting, and with min_change the last one pushed, each at
// most kWatchBytesMax. While one waits no other is computed: a reader that has
// stopped costs an alarm now and then. What it misses is counted as skipped, and once it reads
// again it is looked at anew, in place of what waited.
#ifndef TIDEMARK_SERVER_RPC_WATCH_REACTOR_H_
#define TIDEMARK_SERVER_RPC_WATCH_REACTOR_H_

#include <grpcpp/alarm.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/query/query_engine.h"
#include "server/rpc/executor.h"
#include "server/rpc/watch_request.h"
#include "server/telemetry/metrics.h"
#include "tidemark/v1/query.grpc.pb.h"

namespace tidemark::server {

class WatchReactor;

/// The subscriptions that live now, so that a shutdown can end them. Thread: any.
class OpenSubscriptions {
 public:
  /// False after EndAll: the subscription must then end by itself.
  bool Add(const std::shared_ptr<WatchReactor>& subscription);
  void Remove(const WatchReactor* subscription);
  void EndAll(const absl::Status& status);

 private:
  std::mutex mutex_;
  std::map<const WatchReactor*, std::weak_ptr<WatchReactor>> open_;  // guarded by mutex_
  bool ended_ = false;                                               // guarded by mutex_
};

/// Lifetime: keeps itself alive until gRPC calls OnDone and no alarm or task of its own is left.
/// Thread: alarms, tasks and gRPC's callbacks come from any thread; mutex_ orders them.
///
/// Metrics: every end but the subscriber's own counts in
/// tidemark_query_errors_total{method="watch"} with its code; so do looks without an answer, which
/// do not end it: UNAVAILABLE (the executor was full), DEADLINE_EXCEEDED (windows under way did not
/// come back). Looks are timed as queries are.
class WatchReactor final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  struct Environment {
    const QueryEngine& engine;
    Executor& executor;
    Metrics& metrics;
    const std::function<std::int64_t()>& clock;
    std::atomic<std::uint64_t>& subscriptions;  ///< counts one that Begin is given, until it ends
    OpenSubscriptions& open;
  };

  /// Looks of a reader that has stopped are counted at least so often, or every interval.
  static constexpr auto kLongestStall = std::chrono::seconds(1);

  /// `caller` is asked again before an answer if the rules have changed by then; `place` is held
  /// until the call is over.
  static WatchReactor* Begin(const Environment& environment, const v1::WatchRequest& request,
                             Caller caller = Caller(nullptr, "grpc", {}), PeerShare place = {});
  /// A call that ends at once with `status`.
  static WatchReactor* Refuse(const Environment& environment, const absl::Status& status);

  /// Ends it once the write that is under way is done.
  void Stop(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  WatchReactor(const Environment& environment, Caller caller, v1::WatchRequest request);

  /// Posts the next look at the stream, or sets the alarm for it.
  void Look();
  void SetAlarm();
  void OnAlarm(std::uint64_t turn);
  void Compute();
  absl::Status MayGoOn();
  absl::Status ComputeAnswer(v1::WatchResponse& response) const;
  void CountError(absl::StatusCode code);
  bool MovedSinceLast(const v1::WatchResponse& response) const;
  // mutex_ held.
  void ArmAt(std::chrono::steady_clock::time_point when);
  void SkipLooks();
  void CountSkipped(std::uint64_t answers);
  void Deliver(v1::WatchResponse response);
  void WriteNext();
  void End(const absl::Status& status);
  void FinishIfIdle();

  const Environment environment_;
  const v1::WatchRequest request_;
  std::chrono::microseconds interval_{};
  std::shared_ptr<WatchReactor> self_;  // until OnDone
  PeerShare place_;                     // one call

  // Touched only by the one look that is under way.
  Caller caller_;
  std::uint64_t asked_version_ = 0;  // of the caller, at the last look
  bool counted_ = true;              // in environment_.subscriptions
  std::chrono::steady_clock::time_point look_begun_;
  v1::WatchResponse last_pushed_;
  bool pushed_any_ = false;

  std::mutex mutex_;
  // A new one for each look: a callback may still be running when the next alarm is set.
  std::unique_ptr<grpc::Alarm> alarm_;
  std::optional<v1::WatchResponse> newest_;
  grpc::ByteBuffer writing_;
  bool write_under_way_ = false;
  std::optional<absl::Status> ended_;
  bool finished_ = false;
  std::uint64_t skipped_ = 0;
  std::chrono::steady_clock::time_point next_look_;
  std::chrono::microseconds stall_{0};  // the pause between looks that are not made; 0: they are
  bool missed_looks_ = false;           // since newest_ was computed
  std::uint64_t turn_ = 0;              // of the alarm that counts; earlier ones are void
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_WATCH_REACTOR_H_
