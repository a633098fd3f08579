#include "server/rpc/posted_calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/rpc/convert.h"
#include "server/rpc/try.h"
#include "server/rpc/unary_call.h"

namespace tidemark::server {
namespace {

// A call without a deadline of its own waits no longer than this.
constexpr auto kLongestCall = std::chrono::seconds(30);

QueryEngine::Deadline DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto left = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::min<std::chrono::system_clock::duration>(
          context.deadline() - std::chrono::system_clock::now(), kLongestCall));
  return std::chrono::steady_clock::now() + left;
}

}  // namespace

grpc::ServerUnaryReactor* PostedCalls::Run(const Call& call, const absl::Status& parsed, bool brief,
                                           Reply reply) {
  auto* const reactor = new UnaryCall;  // deletes itself
  grpc::CallbackServerContext* const context = call.context;
  const absl::Status begun_with =
      parsed.ok() ? reactor->Take(call.caller, call.request_bytes) : parsed;
  const auto finish = [this, reactor, method = call.method](const absl::Status& status) {
    if (!status.ok()) {
      metrics_.QueryErrors(method, absl::StatusCodeToString(status.code())).Increment();
    }
    reactor->Finish(ToGrpc(status));
    running_.fetch_sub(1);
  };
  running_.fetch_add(1);
  const auto begun = std::chrono::steady_clock::now();
  const auto observe_and_finish = [this, finish, begun, method = call.method,
                                   response = &call.response](const absl::Status& status) {
    const auto spent = std::chrono::steady_clock::now() - begun;
    metrics_.QuerySeconds(method).Observe(std::chrono::duration<double>(spent).count());
    if (!status.ok()) response->Clear();
    finish(status);
  };
  const auto settle = [reactor, observe_and_finish, response = &call.response](
                          QueryEngine::Deadline deadline, const Outcome& outcome) {
    if (outcome.wait) {
      if (outcome.status.ok()) reactor->ForceAnswer(response->Length());
      outcome.wait(deadline,
                   [observe_and_finish, status = outcome.status](const absl::Status& waited) {
                     observe_and_finish(waited.ok() ? status : waited);
                   });
    } else if (outcome.status.ok()) {
      observe_and_finish(reactor->TakeAnswer(response->Length()));
    } else {
      observe_and_finish(outcome.status);
    }
  };
  if (!begun_with.ok()) {
    finish(begun_with);
    return reactor;
  }
  if (brief) {
    PostedCalls::Outcome outcome = Try([&] { return reply(QueryEngine::kAtOnce); });
    if (!absl::IsDeadlineExceeded(outcome.status)) {
      settle(DeadlineOf(*context), std::move(outcome));
      return reactor;
    }
  }
  const bool posted = executor_.Post([context, finish, settle, reply = std::move(reply)] {
    if (context->IsCancelled()) {
      finish(absl::CancelledError("the call was cancelled before it was answered"));
      return;
    }
    const QueryEngine::Deadline deadline = DeadlineOf(*context);
    if (deadline <= std::chrono::steady_clock::now()) {
      finish(absl::DeadlineExceededError("the deadline passed before the call was begun"));
      return;
    }
    settle(deadline, Try([&] { return reply(deadline); }));
  });
  if (!posted) {
    finish(absl::UnavailableError("too many queries are waiting to be answered; try again"));
  }
  return reactor;
}

}  // namespace tidemark::server
