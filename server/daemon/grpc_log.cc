#include "server/daemon/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/telemetry/log.h"

namespace tidemark::server {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

std::atomic<prometheus::Counter*> failed_handshakes = nullptr;
std::atomic<std::int64_t> next_line_us = 0;
std::atomic<std::uint64_t> lines_left_out = 0;

std::int64_t SteadyNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Whoever is at a connection can make gRPC log.
bool MayWrite() {
  const std::int64_t now = SteadyNow();
  std::int64_t next = next_line_us.load();
  return now >= next && next_line_us.compare_exchange_strong(next, now + kSecond);
}

void OnLine(gpr_log_func_args* line) {
  if (SaysHandshakeFailed(line->file, line->message)) {
    if (prometheus::Counter* const counter = failed_handshakes.load()) counter->Increment();
  }
  if (line->severity < GPR_LOG_SEVERITY_ERROR) return;
  if (!MayWrite()) {
    lines_left_out.fetch_add(1);
    return;
  }
  Log(LogLevel::kWarn, "gRPC",
      {{"detail", line->message}, {"left_out", lines_left_out.exchange(0)}});
}

}  // namespace

bool SaysHandshakeFailed(std::string_view file, std::string_view message) {
  return file.ends_with("chttp2_server.cc") && message.starts_with("Handshaking failed");
}

void TakeGrpcLog(prometheus::Counter* handshakes_failed) {
  failed_handshakes.store(handshakes_failed);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  gpr_set_log_function(OnLine);
}

}  // namespace tidemark::server
