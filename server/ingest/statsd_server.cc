#include "server/ingest/statsd_server.h"

#include <boost/asio/io_context.hpp>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "server/ingest/connection.h"
#include "server/ingest/stream_server.h"
#include "server/ingest/udp_receiver.h"

namespace tidemark::server {
namespace {

// With port 0, a port that is free for TCP may be taken for UDP; then another is tried.
constexpr int kPortTries = 20;

class StatsdConnection final : public Connection {
 public:
  StatsdConnection(boost::asio::ip::tcp::socket socket, ConnectionContext& shared, Metrics& metrics,
                   GaugeTable& gauges, const StatsdLimits& limits, LimitedLog& log)
      : Connection(std::move(socket), shared),
        limits_(limits),
        batcher_(shared.sink, metrics, Source::kStatsdTcp, gauges, limits, log),
        refused_at_stop_(metrics.Refused(Source::kStatsdTcp, "shutting_down")),
        refused_at_reset_(metrics.Refused(Source::kStatsdTcp, "reset")) {
    batcher_.ActFor(&caller());
  }

 private:
  // All whole lines that have been read are one chunk.
  Parsed Parse(std::span<const std::byte> bytes, std::size_t& consumed,
               std::size_t& needed) override {
    if (MustPause()) return Parsed::kPaused;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (skipping_) {
      const std::size_t end = text.find('\n');
      consumed = end == std::string_view::npos ? text.size() : end + 1;
      skipping_ = end == std::string_view::npos;
    }
    if (const std::size_t end = text.rfind('\n');
        end != std::string_view::npos && end >= consumed) {
      batcher_.Add(text.substr(consumed, end + 1 - consumed), now());
      batcher_.Flush(now());
      consumed = end + 1;
    }
    if (text.size() - consumed > limits_.line_bytes_max) {
      batcher_.RefuseLong(text.substr(consumed), now());
      skipping_ = true;
      consumed = text.size();
    }
    needed = limits_.line_bytes_max + 1;
    return Parsed::kNeedMore;
  }

  void AtEnd(End end, std::span<const std::byte> rest) override {
    if (end == End::kStop || end == End::kReset) {
      (end == End::kStop ? refused_at_stop_ : refused_at_reset_).Increment(LinesNotTaken(rest));
      return;
    }
    if (rest.empty() || skipping_) return;
    // The last line needs no end.
    batcher_.Add({reinterpret_cast<const char*>(rest.data()), rest.size()}, now());
    batcher_.Flush(now());
  }

  bool DrainsAtStop() const override { return true; }
  void SayWhy(const absl::Status& /*refused*/) override {}  // StatsD has no answers
  void OnQuiet() override { batcher_.Forget(); }

  // The lines that begin in `rest`, a half one too: how it would have gone on is not known.
  double LinesNotTaken(std::span<const std::byte> rest) {
    double lines = 0;
    for (const std::byte byte : rest) {
      if (byte == std::byte{'\n'}) {
        skipping_ = in_refused_ = false;
      } else if (!skipping_ && !in_refused_) {
        ++lines;
        in_refused_ = true;
      }
    }
    return lines;
  }

  const StatsdLimits& limits_;
  StatsdBatcher batcher_;
  prometheus::Counter& refused_at_stop_;
  prometheus::Counter& refused_at_reset_;
  bool skipping_ = false;    // the rest of a line that is too long
  bool in_refused_ = false;  // the rest of a line that is counted as one of the two
};

}  // namespace

struct StatsdServer::Impl {
  Impl(boost::asio::io_context& io_in, IngestSink& sink_in, Metrics& metrics_in,
       StatsdServerOptions options_in, Clocks clocks_in, LogFn log_in)
      : io(io_in),
        sink(sink_in),
        metrics(metrics_in),
        options(std::move(options_in)),
        clocks(std::move(clocks_in)),
        log(std::move(log_in)),
        limited_log(log),
        gauges(options.gauges_max) {}

  absl::Status TryStart() {
    std::uint16_t port = options.listen.port;
    if (options.tcp) {
      tcp.emplace(
          io, sink, metrics, Source::kStatsdTcp, options.listen, clocks, log,
          [this](boost::asio::ip::tcp::socket socket, ConnectionContext& context) {
            return std::make_shared<StatsdConnection>(std::move(socket), context, metrics, gauges,
                                                      options.limits, limited_log);
          },
          [](const std::string& /*why*/) { return std::string(); });
      if (absl::Status status = tcp->Start(); !status.ok()) return status;
      port = tcp->port();
    }
    if (options.udp) {
      udp.emplace(io, sink, metrics, gauges, options.limits, clocks, limited_log,
                  options.listen.guard);
      if (absl::Status status = udp->Start(options.listen.host, port, options.udp_buffer_bytes);
          !status.ok()) {
        tcp.reset();
        udp.reset();
        return status;
      }
    }
    return absl::OkStatus();
  }

  boost::asio::io_context& io;
  IngestSink& sink;
  Metrics& metrics;
  const StatsdServerOptions options;
  const Clocks clocks;
  const LogFn log;
  LimitedLog limited_log;
  GaugeTable gauges;
  std::optional<StreamServer> tcp;
  std::optional<UdpReceiver> udp;
};

StatsdServer::StatsdServer(boost::asio::io_context& io, IngestSink& sink, Metrics& metrics,
                           StatsdServerOptions options, Clocks clocks, LogFn log)
    : impl_(std::make_unique<Impl>(io, sink, metrics, std::move(options), std::move(clocks),
                                   std::move(log))) {}

StatsdServer::~StatsdServer() = default;

absl::Status StatsdServer::Start() {
  absl::Status status = impl_->TryStart();
  for (int i = 1; i < kPortTries && impl_->options.listen.port == 0 && absl::IsUnavailable(status);
       ++i) {
    status = impl_->TryStart();
  }
  if (!status.ok()) return status;
  if (impl_->udp && impl_->udp->buffer_bytes() < impl_->options.udp_buffer_bytes && impl_->log) {
    impl_->log(IngestLogLevel::kWarning,
               "statsd_udp: the kernel gave a receive buffer of " +
                   std::to_string(impl_->udp->buffer_bytes()) + " bytes instead of " +
                   std::to_string(impl_->options.udp_buffer_bytes) +
                   "; raise net.core.rmem_max or run with CAP_NET_ADMIN to lose less under load");
  }
  return absl::OkStatus();
}

std::uint16_t StatsdServer::port() const {
  if (impl_->tcp) return impl_->tcp->port();
  return impl_->udp ? impl_->udp->port() : std::uint16_t{0};
}

void StatsdServer::Stop(std::chrono::milliseconds deadline) {
  if (impl_->udp) impl_->udp->Stop();
  if (impl_->tcp) impl_->tcp->Stop(deadline);
}

void StatsdServer::Sweep() {
  if (impl_->tcp) impl_->tcp->Sweep();
  if (impl_->udp) impl_->udp->Sweep();
}

std::size_t StatsdServer::connections() const { return impl_->tcp ? impl_->tcp->connections() : 0; }

}  // namespace tidemark::server
