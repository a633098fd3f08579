// One TCP connection of an ingest server: reading, pausing, writing, closing. What the bytes mean
// is the derived class's.
//
//   (TLS: handshake, which begins when its first record is whole (opening.h), or kClosed when it
//   fails or takes too long; nothing is parsed before its end)
//   kOpen ──► Parse says kClose, peer ended, Stop ──► kFlushing ──► kLingering ──► kClosed
//     └────────────────── read or write failed, Abort, CloseIfReset ─────────────────┘
//
// Flow control, in order of importance:
//  1. sink.saturated(): reading stops until the sink's WhenReady; counted in `paused`.
//  2. more than outbound_bytes_max of answers unsent: reading stops until half of them are gone. A
//     producer that never reads its answers so costs a bounded amount and is slowed by TCP; and so
//     is one whose answers wait for the disk (HeldBytes).
// Stop: what has been read is taken in. A protocol that acknowledges leaves it at that: its peer
// knows what was not. Of one that does not (DrainsAtStop) all that the kernel held at Stop is read
// and taken in, as fast as the sink has room; what arrives later, or is left at Abort, is told to
// AtEnd. Closing: answers are flushed, then our side is shut, then what the peer still sends is
// read and thrown away until it ends, is quiet, or a limit is reached: closing with unread bytes
// would make TCP reset the connection, and the peer could lose the very message that says why.
//
// A connection that waits for the sink waits for nothing on its socket, so its server looks whether
// the peer is still there (CloseIfReset). After a reset nobody waits for answers: what was not
// taken in was not acknowledged, and a protocol that acknowledges nothing counts what had arrived.
// The connection ends, for its place and its buffer are worth more to others. After a mere end it
// stays: a peer may end sending and wait for its answers, or need none, and the kernel does not say
// whether it has gone.
//
// Thread: handlers run on the connection's strand; Stop, Abort and last_activity from any thread.
// Lifetime: handlers keep it alive; after OnClosed it touches nothing but itself.
#ifndef TIDEMARK_SERVER_INGEST_CONNECTION_H_
#define TIDEMARK_SERVER_INGEST_CONNECTION_H_

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/access/guard.h"
#include "server/access/opening.h"
#include "server/access/tls_material.h"
#include "server/ingest/clocks.h"
#include "server/ingest/ingest_log.h"
#include "server/ingest/read_buffer.h"
#include "server/ingest/tls_socket.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"

namespace tidemark::server {

/// What the connections of a server share. Lifetime: until the last OnClosed returned.
struct ConnectionContext {
  IngestSink& sink;
  SourceMetrics& metrics;
  const Clocks& clocks;
  std::size_t read_buffer_bytes;
  std::size_t outbound_bytes_max;
  /// Null: no TLS; no rules.
  const TlsHolder* tls;
  const Guard* guard;
  std::chrono::milliseconds handshake_timeout;
  /// As metrics call it: "tcp", "statsd_tcp".
  std::string_view protocol;
  prometheus::Counter& handshakes_failed;
  /// Called once, from the strand, when the connection is closed and will not use the context
  /// again.
  std::function<void(class Connection*)> on_closed;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ConnectionContext& context);
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes the place of one connection from what its peer may have: as a stranger's, by its
  /// address, until it has shown who it is. Errors: RESOURCE_EXHAUSTED, counted. Before Start.
  absl::Status TakePlace();
  /// Begins to read. Call once.
  void Start();
  /// Instead of Start: sends `message`, as bytes of the protocol, and closes.
  void Refuse(std::string message);
  /// Takes in what has been read or, with DrainsAtStop, has arrived; flushes the answers and
  /// closes.
  void Stop();
  /// Closes now.
  void Abort();
  /// Ends the connection because nothing arrived for so long.
  void CloseIdle();
  /// Closes now if the connection waits for the sink and its peer has reset it, or TCP has given it
  /// up. Costs a system call.
  void CloseIfReset();
  /// Gives back what a quiet connection need not hold: what the protocol has cached, and the read
  /// buffer, if it is empty.
  void ReleaseBuffer();

  /// When bytes last arrived, by the steady clock.
  RecordedTime last_activity() const { return last_activity_.load(std::memory_order_relaxed); }
  /// When they last made something whole, a frame or a line, or 16 KiB of one had come: a peer that
  /// sends a byte now and then gains nothing by it.
  RecordedTime last_progress() const { return last_progress_.load(std::memory_order_relaxed); }
  /// Reading has stopped because the sink is saturated: not the peer's fault.
  bool waits_for_sink() const { return waits_for_sink_.load(std::memory_order_relaxed); }
  std::size_t buffer_bytes() const { return buffer_bytes_.load(std::memory_order_relaxed); }

 protected:
  enum class Parsed { kNeedMore, kPaused, kClose };
  enum class End { kPeer, kStop, kIdle, kStranger, kReset };

  /// Consumes frames or lines of `bytes`, stopping with kPaused when MustPause(). On kNeedMore
  /// `needed` says how many bytes, counted after `consumed`, would get it further.
  virtual Parsed Parse(std::span<const std::byte> bytes, std::size_t& consumed,
                       std::size_t& needed) = 0;
  /// The connection ends and `rest` is all that is left; may append a last answer. With
  /// DrainsAtStop kStop comes again with each further piece that is not taken in; and so does
  /// kReset, which without it does not come at all.
  virtual void AtEnd(End end, std::span<const std::byte> rest) = 0;
  /// The peer must still show who it is. It has handshake_timeout for it, TLS's handshake included;
  /// then the connection ends with kStranger, counted as a refusal for want of credentials.
  virtual bool MustIntroduceItself() { return false; }
  /// The peer is told of no batch whether it was taken in.
  virtual bool DrainsAtStop() const { return false; }
  /// A last answer, for a connection that ends because its peer has all that one may have; may be
  /// nothing.
  virtual void SayWhy(const absl::Status& refused) = 0;
  /// Nothing has arrived for a while; a part of a frame or line may be in the buffer.
  virtual void OnQuiet() {}
  /// Of answers that wait for something else than the socket: they count as unsent, and the
  /// connection ends when they have left, or its time is over. Call Release when some went to
  /// out().
  virtual std::size_t HeldBytes() const { return 0; }
  /// Sends what is in out().
  void Release();
  /// Runs `task` on the strand unless the connection is closed by then. Thread: any.
  void Post(std::function<void()> task);

  /// Counts so many bytes, which the protocol keeps for the peer beside the read buffer, against
  /// what the peer may have, instead of those before; they are given back when the connection ends.
  /// Errors: RESOURCE_EXHAUSTED, counted; then as before. Cost: a lookup.
  absl::Status HoldKept(std::size_t bytes);
  bool MustPause() const;
  /// Answers not sent yet; append to it.
  std::string& out() { return out_; }
  ConnectionContext& context() { return context_; }
  /// Who the peer is; by its certificate, if it showed one.
  Caller& caller() { return caller_; }
  RecordedTime now() const { return now_; }
  const std::string& peer() const { return peer_; }

 private:
  enum class State { kOpen, kFlushing, kLingering, kClosed };

  void ArmHandshakeTimer();
  void AwaitOpening();
  void Handshake();
  void OnSecured();
  void WaitReadable();
  void OnReadable();
  std::size_t ReadSome(std::span<std::byte> room, boost::system::error_code& error);
  void WriteTls(std::size_t begin);
  void Pump();
  bool MakeRoom();
  void Progress();
  void TakeInNoMore();
  void RefuseArrived(End end);
  std::size_t Available();
  void PauseForSink();
  std::size_t UnsentBytes() const { return out_.size() + writing_.size() + HeldBytes(); }
  void StartWrite();
  void OnWritten(const boost::system::error_code& error);
  void Finish();
  void Linger();
  void ArmQuietTimer();
  void Close();

  boost::asio::ip::tcp::socket socket_;
  ConnectionContext& context_;
  std::string peer_;

  // Of the strand.
  Caller caller_;
  PeerShare place_;  // one connection
  PeerShare bytes_;  // the read buffer
  PeerShare kept_;   // what the protocol keeps
  OpeningLook opening_{Opening::kTls};
  std::unique_ptr<TlsSocket> tls_;  // null: no TLS, or it has not begun
  bool handshaking_;                // nothing is read or written but TLS's own
  State state_ = State::kOpen;
  ReadBuffer buffer_;
  std::string out_;      // answers not yet handed to the socket
  std::string writing_;  // answers of the outstanding write
  bool write_outstanding_ = false;
  bool has_written_ = false;
  bool wait_outstanding_ = false;
  bool waits_for_writer_ = false;
  bool stopping_ = false;
  bool peer_ended_ = false;
  std::size_t drain_left_ = 0;  // bytes that the kernel held at Stop and that are still to be read
  std::size_t needed_ = 0;
  std::size_t since_progress_ = 0;  // bytes
  RecordedTime now_ = 0;
  std::chrono::milliseconds quiet_limit_;
  boost::asio::steady_timer close_timer_;  // the whole of flushing and lingering
  boost::asio::steady_timer handshake_timer_;
  boost::asio::steady_timer quiet_timer_;  // since the peer's last byte while lingering

  // Read by the server's sweep.
  std::atomic<RecordedTime> last_activity_;
  std::atomic<RecordedTime> last_progress_;
  std::atomic<bool> waits_for_sink_{false};
  std::atomic<std::size_t> buffer_bytes_{0};
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_CONNECTION_H_
