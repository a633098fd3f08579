#include "server/ingest/stream_server.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/ingest/resolve.h"

namespace tidemark::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Refused connections that are given the time to read why. Beyond, they are closed at once, so that
// a flood of connections holds no more than this many descriptors over the limit.
constexpr std::size_t kRefusedLingering = 64;
// The pause after accept failed, which is nearly always for want of descriptors.
constexpr std::chrono::milliseconds kAcceptRetry{100};
// How often connections are looked over, unless the idle timeout asks for more.
constexpr std::chrono::milliseconds kSweepInterval{5000};
// A connection that is quiet for so long gives its read buffer back.
constexpr RecordedTime kReleaseBufferMicros = 10'000'000;

}  // namespace

// Kept alive by its own handlers, so that one that runs late finds it.
struct StreamServer::Impl : std::enable_shared_from_this<Impl> {
  Impl(asio::io_context& io_in, IngestSink& sink, Metrics& metrics_in, Source source,
       ListenOptions options_in, Clocks clocks_in, LogFn log_in, ConnectionFactory factory_in,
       RefusalFn refusal_in)
      : io(io_in),
        options(std::move(options_in)),
        clocks(std::move(clocks_in)),
        factory(std::move(factory_in)),
        refusal(std::move(refusal_in)),
        metrics(metrics_in.source(source)),
        context{sink,
                metrics,
                clocks,
                options.read_buffer_bytes,
                options.outbound_bytes_max,
                options.tls,
                options.guard,
                options.handshake_timeout,
                SourceName(source),
                metrics_in.TlsFailed(SourceName(source)),
                [this](Connection* connection) { OnClosed(connection); }},
        strand(asio::make_strand(io_in)),
        acceptor(strand),
        retry_timer(strand),
        sweep_timer(strand),
        accept_log(std::move(log_in)) {}

  absl::Status Listen() {
    const absl::StatusOr<std::uint16_t> bound = ListenOn(io, options.host, options.port, acceptor);
    if (!bound.ok()) return bound.status();
    port = *bound;
    return absl::OkStatus();
  }

  void Accept() {
    acceptor.async_accept(asio::make_strand(io),
                          [self = shared_from_this()](const error_code& error, tcp::socket socket) {
                            if (!self->acceptor.is_open()) return;
                            if (!error) {
                              self->OnAccepted(std::move(socket));
                              self->Accept();
                              return;
                            }
                            self->Report("cannot accept: " + ErrorText(error));
                            self->retry_timer.expires_after(kAcceptRetry);
                            self->retry_timer.async_wait([self](const error_code& cancelled) {
                              if (!cancelled && self->acceptor.is_open()) self->Accept();
                            });
                          });
  }

  void OnAccepted(tcp::socket socket) {
    auto connection = factory(std::move(socket), context);
    const absl::Status place = connection->TakePlace();
    bool serve = false;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      serve = place.ok() && served < options.connections_max;
      if (!serve && connections.size() - served >= kRefusedLingering) {
        if (place.ok()) metrics.connections_refused.Increment();
        return;
      }
      connections.emplace(connection.get(), Entry{connection, serve});
      if (serve) ++served;
      metrics.connections.Set(static_cast<double>(served));
    }
    if (serve) {
      connection->Start();
      return;
    }
    if (!place.ok()) {
      Refuse(*connection, std::string(place.message()));
      return;
    }
    metrics.connections_refused.Increment();
    const std::string limit = std::to_string(options.connections_max);
    Refuse(*connection,
           "the server has " + limit + " connections, which is its limit; try again later");
  }

  void Refuse(Connection& connection, const std::string& why) {
    Report("refused a connection: " + why);
    connection.Refuse(refusal(why));
  }

  void Report(std::string message) {
    if (accept_log.Admit(clocks.steady())) {
      accept_log.Write(IngestLogLevel::kWarning, std::move(message));
    }
  }

  void OnClosed(Connection* connection) {
    const std::lock_guard lock(mutex);
    const auto found = connections.find(connection);
    if (found == connections.end()) return;
    if (found->second.served) --served;
    metrics.connections.Set(static_cast<double>(served));
    connections.erase(found);
    if (connections.empty()) all_closed.notify_all();
  }

  std::vector<std::shared_ptr<Connection>> Snapshot() {
    const std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections.size());
    for (const auto& [pointer, entry] : connections) all.push_back(entry.connection);
    return all;
  }

  void Sweep() {
    const RecordedTime time = clocks.steady();
    for (const auto& connection : Snapshot()) {
      const RecordedTime quiet = time - connection->last_activity();
      const RecordedTime idle = time - connection->last_progress();
      if (connection->waits_for_sink()) connection->CloseIfReset();
      if (options.idle_timeout.count() > 0 && idle >= options.idle_timeout.count() &&
          !connection->waits_for_sink()) {
        connection->CloseIdle();
      } else if (quiet >= kReleaseBufferMicros && connection->buffer_bytes() > 0) {
        connection->ReleaseBuffer();
      }
    }
  }

  void ArmSweep() {
    auto interval = std::chrono::duration_cast<std::chrono::milliseconds>(kSweepInterval);
    if (options.idle_timeout.count() > 0) {
      const auto quarter =
          std::chrono::duration_cast<std::chrono::milliseconds>(options.idle_timeout / 4);
      interval = std::clamp(quarter, std::chrono::milliseconds(10), interval);
    }
    sweep_timer.expires_after(interval);
    sweep_timer.async_wait([self = shared_from_this()](const error_code& cancelled) {
      if (cancelled || !self->acceptor.is_open()) return;
      self->Sweep();
      self->ArmSweep();
    });
  }

  struct Entry {
    std::shared_ptr<Connection> connection;
    bool served;  // counts against the limit
  };

  asio::io_context& io;
  const ListenOptions options;
  const Clocks clocks;
  const ConnectionFactory factory;
  const RefusalFn refusal;
  SourceMetrics& metrics;
  ConnectionContext context;
  std::uint16_t port = 0;

  // Of the strand.
  asio::strand<asio::io_context::executor_type> strand;
  tcp::acceptor acceptor;
  asio::steady_timer retry_timer;
  asio::steady_timer sweep_timer;
  LimitedLog accept_log;

  mutable std::mutex mutex;
  std::condition_variable all_closed;
  std::unordered_map<Connection*, Entry> connections;
  std::size_t served = 0;
  bool stopping = false;
};

StreamServer::StreamServer(asio::io_context& io, IngestSink& sink, Metrics& metrics, Source source,
                           ListenOptions options, Clocks clocks, LogFn log,
                           ConnectionFactory factory, RefusalFn refusal)
    : impl_(std::make_shared<Impl>(io, sink, metrics, source, std::move(options), std::move(clocks),
                                   std::move(log), std::move(factory), std::move(refusal))) {}

StreamServer::~StreamServer() { Stop(std::chrono::milliseconds(0)); }

absl::Status StreamServer::Start() {
  if (absl::Status status = impl_->Listen(); !status.ok()) return status;
  asio::dispatch(impl_->strand, [impl = impl_] {
    impl->Accept();
    impl->ArmSweep();
  });
  return absl::OkStatus();
}

std::uint16_t StreamServer::port() const { return impl_->port; }

void StreamServer::BeginStop() {
  {
    const std::lock_guard lock(impl_->mutex);
    if (std::exchange(impl_->stopping, true)) return;
  }
  if (impl_->port == 0) return;  // never listened
  // Once this has run on the strand no handler accepts any more: what it would call may then go.
  std::promise<void> closed;
  asio::post(impl_->strand, [impl = impl_, &closed] {
    error_code ignored;
    impl->acceptor.close(ignored);
    impl->retry_timer.cancel();
    impl->sweep_timer.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
  for (const auto& connection : impl_->Snapshot()) connection->Stop();
}

void StreamServer::Stop(std::chrono::milliseconds deadline) {
  BeginStop();
  std::unique_lock lock(impl_->mutex);
  const auto empty = [this] { return impl_->connections.empty(); };
  if (impl_->all_closed.wait_for(lock, deadline, empty)) return;
  lock.unlock();
  for (const auto& connection : impl_->Snapshot()) connection->Abort();
  lock.lock();
  impl_->all_closed.wait(lock, empty);
}

void StreamServer::Sweep() { impl_->Sweep(); }

std::size_t StreamServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->connections.size();
}

}  // namespace tidemark::server
