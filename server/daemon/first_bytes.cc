#include "server/daemon/first_bytes.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

namespace tidemark::server {

namespace posix = boost::asio::posix;

struct FirstBytes::Waiting {
  Waiting(const boost::asio::any_io_executor& executor, Opening opening, RecordedTime since_in)
      : socket(executor), look(opening), since(since_in) {}

  posix::stream_descriptor socket;
  OpeningLook look;
  const RecordedTime since;
  Place place;
};

FirstBytes::FirstBytes(boost::asio::any_io_executor executor, Opening opening, RecordedTime timeout,
                       Take whole, Take ended)
    : executor_(std::move(executor)),
      opening_(opening),
      timeout_(timeout),
      whole_(std::move(whole)),
      ended_(std::move(ended)) {}

FirstBytes::~FirstBytes() { EndAll(); }

void FirstBytes::Add(int fd, RecordedTime now) {
  if (opening_ == Opening::kNothing) return whole_(fd);
  const auto waiting = std::make_shared<Waiting>(executor_, opening_, now);
  boost::system::error_code error;
  if (waiting->socket.assign(fd, error); error) return whole_(fd);
  waiting->place = waiting_.insert(waiting_.end(), waiting);
  WaitFor(waiting);
}

// What comes once it waits wakes it, so that it waits first and looks then.
void FirstBytes::WaitFor(const std::shared_ptr<Waiting>& waiting) {
  waiting->socket.async_wait(posix::stream_descriptor::wait_read,
                             [this, waiting](const boost::system::error_code& /*a look tells*/) {
                               if (!waiting->socket.is_open()) return;  // and this may be gone, too
                               WaitFor(waiting);
                             });
  const OpeningLook::State state = waiting->look.Look(waiting->socket.native_handle());
  if (state == OpeningLook::State::kMissing) return;
  const int fd = Release(*waiting);
  (state == OpeningLook::State::kEnded ? ended_ : whole_)(fd);
}

int FirstBytes::Release(Waiting& waiting) {
  const int fd = waiting.socket.release();
  waiting.look.Reset(fd);
  const std::shared_ptr<Waiting> kept = std::move(*waiting.place);
  waiting_.erase(waiting.place);
  return fd;
}

void FirstBytes::EndOverdue(RecordedTime now) {
  while (!waiting_.empty() && now - waiting_.front()->since >= timeout_) {
    ended_(Release(*waiting_.front()));
  }
}

void FirstBytes::EndAll() {
  while (!waiting_.empty()) ended_(Release(*waiting_.front()));
}

}  // namespace tidemark::server
