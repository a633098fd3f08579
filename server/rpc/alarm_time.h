// Times of grpc::Alarm.
#ifndef TIDEMARK_SERVER_RPC_ALARM_TIME_H_
#define TIDEMARK_SERVER_RPC_ALARM_TIME_H_

#include <grpc/support/time.h>

#include <chrono>

namespace tidemark::server {

/// By the clock that nobody sets: by the other, an alarm would be silent for as long as that is set
/// back.
inline gpr_timespec AlarmTime(std::chrono::steady_clock::duration from_now) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(from_now).count();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_micros(us, GPR_TIMESPAN));
}

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_ALARM_TIME_H_
