#include "server/ingest/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "server/access/loopback.h"
#include "server/window/call_back.h"

namespace tidemark::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Reads of one connection before the others on the same thread get their turn: 4 x 512 KiB are
// about a millisecond.
constexpr int kReadsPerTurn = 4;
// Of a frame that is not whole yet, within the idle timeout: less is no sending.
constexpr std::size_t kProgressBytes = std::size_t{16} << 10;
// What arrives too late is read in pieces of this.
constexpr std::size_t kRefusedChunk = std::size_t{16} << 10;
// From the decision to close until the socket is closed whatever the peer does.
constexpr std::chrono::milliseconds kCloseLimit{5000};
// A peer that has been silent for so long while we linger has nothing on its way that a reset could
// cross. On Stop the wait is shorter, as nobody should wait a second for a daemon to end.
constexpr std::chrono::milliseconds kQuietLimit{1000};
constexpr std::chrono::milliseconds kQuietLimitStopping{100};

std::string PeerName(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  if (error) return "unknown peer";
  return endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

// The peer has reset the connection, or TCP has given it up. Not: it has ended sending.
bool IsReset(int descriptor) {
  pollfd asked{.fd = descriptor, .events = 0, .revents = 0};  // errors come unasked
  return poll(&asked, 1, 0) == 1 && (asked.revents & (POLLERR | POLLHUP)) != 0;
}

// What is known of a peer by its address.
Credentials CredentialsOf(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto peer = socket.remote_endpoint(error);
  return CredentialsAt(error ? "" : peer.address().to_string());
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ConnectionContext& context)
    : socket_(std::move(socket)),
      context_(context),
      peer_(PeerName(socket_)),
      caller_(context.guard, context.protocol, CredentialsOf(socket_)),
      handshaking_(context.tls != nullptr),
      buffer_(context.read_buffer_bytes),
      now_(context.clocks.recorded()),
      quiet_limit_(kQuietLimit),
      close_timer_(socket_.get_executor()),
      handshake_timer_(socket_.get_executor()),
      quiet_timer_(socket_.get_executor()),
      last_activity_(context.clocks.steady()),
      last_progress_(last_activity_.load()) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  // Acknowledgements are small and awaited.
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

absl::Status Connection::TakePlace() { return caller_.Hold(PeerResource::kConnections, 1, place_); }

void Connection::Start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] {
    if (!self->handshaking_) {
      if (self->state_ == State::kOpen && self->MustIntroduceItself()) self->ArmHandshakeTimer();
      self->WaitReadable();
      return;
    }
    if (self->state_ != State::kOpen) return;  // Stop was first
    self->ArmHandshakeTimer();
    self->AwaitOpening();
  });
}

void Connection::ArmHandshakeTimer() {
  handshake_timer_.expires_after(context_.handshake_timeout);
  handshake_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->state_ == State::kClosed) return;
    if (self->handshaking_) {
      self->context_.handshakes_failed.Increment();
      self->Close();
    } else if (self->state_ == State::kOpen && self->MustIntroduceItself()) {
      self->context_.guard->Count(self->context_.protocol, Denial::kNoCredentials);
      self->AtEnd(End::kStranger, self->buffer_.readable());
      self->Finish();
    }
  });
}

void Connection::AwaitOpening() {
  if (state_ == State::kClosed) return;
  switch (opening_.Look(socket_.native_handle())) {
    case OpeningLook::State::kMissing:
      socket_.async_wait(asio::socket_base::wait_read,
                         [self = shared_from_this()](const error_code& error) {
                           if (!error) {
                             self->AwaitOpening();
                           } else {
                             self->Close();
                           }
                         });
      return;
    case OpeningLook::State::kWhole:
      tls_ = std::make_unique<TlsSocket>(context_.tls->Get(), socket_.native_handle());
      Handshake();
      return;
    case OpeningLook::State::kEnded:
      context_.handshakes_failed.Increment();
      Close();
      return;
  }
}

void Connection::Handshake() {
  if (state_ == State::kClosed) return;
  const TlsSocket::Step step = tls_->Handshake();
  if (step == TlsSocket::Step::kDone) {
    OnSecured();
  } else if (step == TlsSocket::Step::kFailed) {
    context_.handshakes_failed.Increment();
    Close();
  } else {
    socket_.async_wait(step == TlsSocket::Step::kWaitRead ? asio::socket_base::wait_read
                                                          : asio::socket_base::wait_write,
                       [self = shared_from_this()](const error_code& error) {
                         if (!error) {
                           self->Handshake();
                         } else {
                           self->Close();
                         }
                       });
  }
}

void Connection::OnSecured() {
  handshaking_ = false;
  Credentials shown = CredentialsOf(socket_);
  if (auto names = tls_->PeerNames()) {
    shown.certificate = true;
    shown.certificate_names = *std::move(names);
  }
  caller_ = Caller(context_.guard, context_.protocol, std::move(shown));
  last_activity_.store(context_.clocks.steady(), std::memory_order_relaxed);
  Progress();
  if (const absl::Status place = TakePlace(); !place.ok()) {
    SayWhy(place);
    Finish();
    return;
  }
  if (!MustIntroduceItself()) handshake_timer_.cancel();
  WaitReadable();
}

void Connection::Refuse(std::string message) {
  asio::dispatch(socket_.get_executor(),
                 [self = shared_from_this(), message = std::move(message)]() mutable {
                   // A handshake for the sake of a refusal would cost more than the refusal saves.
                   if (!self->handshaking_) self->out_ = std::move(message);
                   self->Finish();
                 });
}

void Connection::Stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->stopping_ = true;
    self->quiet_limit_ = kQuietLimitStopping;
    if (self->handshaking_) self->Close();
    if (self->state_ == State::kOpen) {
      if (self->DrainsAtStop()) self->drain_left_ = self->Available();
      if (!self->waits_for_sink() || !self->DrainsAtStop()) self->Pump();
    }
    if (self->state_ == State::kLingering) self->ArmQuietTimer();
  });
}

void Connection::Abort() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kOpen && !self->handshaking_ && self->DrainsAtStop()) {
      self->AtEnd(End::kStop, self->buffer_.readable());
      self->RefuseArrived(End::kStop);
    }
    self->Close();
  });
}

void Connection::CloseIfReset() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ != State::kOpen || !self->waits_for_sink()) return;
    if (!IsReset(self->socket_.native_handle())) return;
    if (self->DrainsAtStop()) {
      self->AtEnd(End::kReset, self->buffer_.readable());
      self->RefuseArrived(End::kReset);
    }
    self->Close();
  });
}

void Connection::CloseIdle() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ != State::kOpen) return;
    if (self->handshaking_) return;  // which has a limit of its own
    self->context_.metrics.idle_closed.Increment();
    self->AtEnd(End::kIdle, self->buffer_.readable());
    self->Finish();
  });
}

void Connection::ReleaseBuffer() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ != State::kOpen) return;
    self->OnQuiet();
    if (!self->buffer_.empty()) return;
    self->buffer_.Release();
    self->bytes_.Force(0);
    self->buffer_bytes_.store(0, std::memory_order_relaxed);
  });
}

absl::Status Connection::HoldKept(std::size_t bytes) {
  const absl::Status held = caller_.Hold(PeerResource::kBytes, bytes, kept_);
  if (!held.ok() || kept_.Resize(bytes)) return held;
  return absl::ResourceExhaustedError("this peer has all the bytes that one may have");
}

bool Connection::MustPause() const {
  // While stopping, what has been read is taken in whatever the sink says: it is at most one
  // buffer. What is still to be read may be much more.
  if (stopping_ && !DrainsAtStop()) return false;
  return UnsentBytes() > context_.outbound_bytes_max || context_.sink.saturated();
}

void Connection::WaitReadable() {
  if (wait_outstanding_ || state_ == State::kClosed) return;
  wait_outstanding_ = true;
  const auto readable = [self = shared_from_this()](const error_code& error) {
    self->wait_outstanding_ = false;
    if (self->state_ == State::kClosed) return;
    if (error) {
      self->Close();
    } else {
      self->OnReadable();
    }
  };
  if (tls_ && tls_->HasMore()) {
    asio::post(socket_.get_executor(), [readable] { readable({}); });
  } else {
    socket_.async_wait(tls_ && tls_->ReadWaitsToWrite() ? asio::socket_base::wait_write
                                                        : asio::socket_base::wait_read,
                       readable);
  }
}

std::size_t Connection::ReadSome(std::span<std::byte> room, error_code& error) {
  return tls_ ? tls_->Read(room, error)
              : socket_.read_some(asio::buffer(room.data(), room.size()), error);
}

void Connection::OnReadable() {
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    if (!MakeRoom()) return;
    std::span<std::byte> room = buffer_.Prepare();
    if (drain_left_ > 0) room = room.first(std::min(room.size(), drain_left_));
    error_code error;
    const std::size_t bytes = ReadSome(room, error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      if (tls_ && stopping_ && drain_left_ > 0) {
        // What had arrived was counted with what TLS adds to it: all of it has come.
        drain_left_ = 0;
        Pump();
        if (state_ != State::kOpen) return;
      }
      break;
    }
    if (error == asio::error::eof) {
      peer_ended_ = true;
      if (state_ == State::kOpen) {
        Pump();
      } else if (state_ == State::kLingering) {
        Close();
      }
      return;
    }
    if (error) {
      Close();
      return;
    }
    if (state_ != State::kOpen) {  // thrown away: the connection is ending
      if (state_ == State::kLingering) ArmQuietTimer();
      continue;
    }
    buffer_.Commit(bytes);
    context_.metrics.bytes.Increment(static_cast<double>(bytes));
    drain_left_ -= std::min(drain_left_, bytes);
    now_ = context_.clocks.recorded();
    last_activity_.store(context_.clocks.steady(), std::memory_order_relaxed);
    since_progress_ += bytes;
    if (since_progress_ >= kProgressBytes) Progress();
    Pump();
    if (state_ == State::kClosed || wait_outstanding_ || waits_for_writer_ ||
        waits_for_sink_.load(std::memory_order_relaxed)) {
      return;
    }
    if (bytes < room.size()) break;  // most likely there is no more yet
  }
  WaitReadable();
}

// A buffer as large as it should be; where the peer has all the bytes that one may have, as it is.
// False: it is full, and the connection ends.
bool Connection::MakeRoom() {
  const std::size_t wanted = buffer_.Wanted(needed_);
  if (wanted == buffer_.capacity()) return true;
  const absl::Status held = caller_.Hold(PeerResource::kBytes, buffer_.capacity(), bytes_);
  if (wanted <= ReadBuffer::kBytesFirst) {
    bytes_.Force(wanted);  // a connection is worth that
  } else if (!held.ok() || !(buffer_.full() ? bytes_.Resize(wanted) : bytes_.TryResize(wanted))) {
    if (!buffer_.full()) return true;  // slower
    SayWhy(held.ok() ? absl::ResourceExhaustedError(
                           "this peer has all the bytes on their way that one may have, and this "
                           "connection is in the middle of a long frame")
                     : held);
    Finish();
    return false;
  }
  buffer_.Resize(wanted);
  buffer_bytes_.store(wanted, std::memory_order_relaxed);
  return true;
}

// Parses what has been read and decides what comes next. Does not itself wait for more to read
// while OnReadable does; callers from elsewhere get that too.
void Connection::Pump() {
  if (state_ != State::kOpen) return;
  waits_for_writer_ = false;
  waits_for_sink_.store(false, std::memory_order_relaxed);
  std::size_t consumed = 0;
  needed_ = 0;
  const Parsed parsed = Parse(buffer_.readable(), consumed, needed_);
  buffer_.Consume(consumed);
  if (consumed > 0) Progress();
  StartWrite();
  if (state_ != State::kOpen) return;
  switch (parsed) {
    case Parsed::kNeedMore:
      if (peer_ended_ || (stopping_ && drain_left_ == 0)) TakeInNoMore();
      return;
    case Parsed::kPaused:
      if (UnsentBytes() > context_.outbound_bytes_max) {
        waits_for_writer_ = true;  // OnWritten goes on
        context_.metrics.paused.Increment();
      } else {
        PauseForSink();
      }
      return;
    case Parsed::kClose:
      Finish();
      return;
  }
}

void Connection::Progress() {
  since_progress_ = 0;
  last_progress_.store(last_activity(), std::memory_order_relaxed);
}

// All that is taken in has been.
void Connection::TakeInNoMore() {
  if (!DrainsAtStop()) {
    AtEnd(stopping_ ? End::kStop : End::kPeer, buffer_.readable());
  } else if (peer_ended_ || !stopping_) {
    AtEnd(End::kPeer, buffer_.readable());
  } else {
    // An end that came right behind the last byte makes the last line whole.
    std::byte next{};
    error_code error;
    if (!tls_) socket_.receive(asio::buffer(&next, 1), asio::socket_base::message_peek, error);
    peer_ended_ = error == asio::error::eof;
    AtEnd(peer_ended_ ? End::kPeer : End::kStop, buffer_.readable());
    RefuseArrived(End::kStop);
  }
  Finish();
}

// Bytes that have come since Stop, or that the sink had no room for.
void Connection::RefuseArrived(End end) {
  std::array<std::byte, kRefusedChunk> chunk;
  // No more than there is now: a peer that never stops would keep us here.
  for (std::size_t left = Available(); left > 0;) {
    error_code error;
    const std::size_t bytes = ReadSome(std::span(chunk).first(std::min(left, chunk.size())), error);
    if (error || bytes == 0) return;
    context_.metrics.bytes.Increment(static_cast<double>(bytes));
    AtEnd(end, std::span(chunk).first(bytes));
    left -= bytes;
  }
}

std::size_t Connection::Available() {
  error_code error;
  const std::size_t bytes = socket_.available(error);
  const std::size_t held = tls_ && tls_->HasMore() ? TlsSocket::kRecordBytesMax : 0;
  return error ? 0 : bytes + held;
}

void Connection::PauseForSink() {
  waits_for_sink_.store(true, std::memory_order_relaxed);
  context_.metrics.paused.Increment();
  // The sink may call back when this connection is long gone, and forgets it then.
  auto resume = [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    asio::post(self->socket_.get_executor(), [self] {
      if (self->state_ != State::kOpen || !self->waits_for_sink()) return;
      self->now_ = self->context_.clocks.recorded();
      // The time that the sink was full is not the peer's silence.
      self->last_activity_.store(self->context_.clocks.steady(), std::memory_order_relaxed);
      self->Progress();
      self->Pump();
      if (!self->waits_for_sink() && !self->waits_for_writer_) self->WaitReadable();
    });
  };
  context_.sink.WhenReady(OfAsker<>{weak_from_this(), std::move(resume)});
}

void Connection::StartWrite() {
  if (write_outstanding_ || out_.empty()) return;
  writing_.swap(out_);
  write_outstanding_ = true;
  has_written_ = true;
  if (tls_) {
    WriteTls(0);
    return;
  }
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      self->OnWritten(error);
                    });
}

// Writes writing_ from `begin` on, as far as the socket takes it, and goes on when it takes more.
void Connection::WriteTls(std::size_t begin) {
  TlsSocket::Step step = TlsSocket::Step::kDone;
  while (begin < writing_.size() && step == TlsSocket::Step::kDone) {
    std::size_t written = 0;
    step = tls_->Write(std::as_bytes(std::span(writing_)).subspan(begin), written);
    begin += written;
  }
  const auto done = [self = shared_from_this(), begin](const error_code& error) {
    if (error || begin == self->writing_.size()) {
      self->OnWritten(error);
    } else if (self->state_ != State::kClosed) {
      self->WriteTls(begin);
    }
  };
  if (step == TlsSocket::Step::kDone || step == TlsSocket::Step::kFailed) {
    // Later, as asio's writes end: whoever began this one goes on first.
    const error_code error =
        step == TlsSocket::Step::kDone ? error_code() : asio::error::connection_reset;
    asio::post(socket_.get_executor(), [done, error] { done(error); });
  } else {
    socket_.async_wait(step == TlsSocket::Step::kWaitRead ? asio::socket_base::wait_read
                                                          : asio::socket_base::wait_write,
                       done);
  }
}

void Connection::OnWritten(const error_code& error) {
  write_outstanding_ = false;
  writing_.clear();
  if (state_ == State::kClosed) return;
  if (error) {
    Close();
    return;
  }
  StartWrite();
  if (state_ == State::kFlushing && !write_outstanding_ && HeldBytes() == 0) {
    Linger();
  } else if (waits_for_writer_ && UnsentBytes() <= context_.outbound_bytes_max / 2) {
    Pump();
    if (!waits_for_sink() && !waits_for_writer_) WaitReadable();
  }
}

void Connection::Finish() {
  if (state_ != State::kOpen) return;
  state_ = State::kFlushing;
  waits_for_writer_ = false;
  waits_for_sink_.store(false, std::memory_order_relaxed);
  buffer_.Consume(buffer_.readable().size());
  close_timer_.expires_after(kCloseLimit);
  close_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->Close();
  });
  StartWrite();
  if (!write_outstanding_ && HeldBytes() == 0) Linger();
}

void Connection::Release() {
  if (state_ == State::kOpen || state_ == State::kFlushing) StartWrite();
}

void Connection::Post(std::function<void()> task) {
  asio::post(socket_.get_executor(), [self = shared_from_this(), task = std::move(task)] {
    if (self->state_ != State::kClosed) task();
  });
}

void Connection::Linger() {
  if (peer_ended_ || !has_written_) {  // nothing that a reset could destroy
    Close();
    return;
  }
  state_ = State::kLingering;
  error_code ignored;
  if (tls_) tls_->Shutdown();
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  ArmQuietTimer();
  WaitReadable();
}

void Connection::ArmQuietTimer() {
  quiet_timer_.expires_after(quiet_limit_);
  quiet_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->Close();
  });
}

void Connection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  waits_for_sink_.store(false, std::memory_order_relaxed);
  error_code ignored;
  socket_.close(ignored);
  close_timer_.cancel();
  handshake_timer_.cancel();
  quiet_timer_.cancel();
  place_ = {};
  bytes_ = {};
  kept_ = {};
  context_.on_closed(this);
}

}  // namespace tidemark::server
