// What a connection is to begin with before anything is spent on it: HTTP/2's preface, or the first
// record of a TLS handshake.
//
// A TLS session takes 40 kB and more, and a thread that reads a byte of it from each of thousands
// of peers has nothing of it (docs/measurements.md). Of a connection whose first bytes are not
// whole this keeps nothing: what it has sent lies in the kernel, which wakes nobody for less than
// is missing (SO_RCVLOWAT). Who sends a whole record and stops has a session; what bounds those are
// the limits of connections and the time that a handshake may take.
#ifndef TIDEMARK_SERVER_ACCESS_OPENING_H_
#define TIDEMARK_SERVER_ACCESS_OPENING_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace tidemark::server {

enum class Opening {
  kNothing,  ///< whatever comes, or nothing
  kHttp2,    ///< the client's connection preface, RFC 9113, 3.4
  kTls,      ///< a record of a handshake, RFC 8446, 5.1, or the first 4 KiB of it
};

/// How many first bytes are to be there before a connection goes on that began so, or, while
/// `begun` tells too little, before it can be told; none if that is no such opening. Of `begun` the
/// first 24 bytes tell.
std::optional<std::size_t> OpeningBytes(Opening opening, std::string_view begun);

/// Whether the peer of a socket has closed it, or its half, or is gone.
bool PeerSendsNoMore(int fd);

/// Looks at what has come on one connected TCP socket, without waiting, and leaves it there.
/// Thread: one at a time.
class OpeningLook {
 public:
  explicit OpeningLook(Opening opening) : opening_(opening) {}

  enum class State {
    kMissing,  ///< wait until the socket can be read: that is when it is whole, or the peer ended
    kWhole,    ///< also: the kernel has woken for less again and again
    kEnded,    ///< it began otherwise, or its peer has closed before it was whole
  };
  /// On kMissing the socket's low-water mark is what there is to be, else the usual one. What came
  /// since must wake who waits: a wait that looks whether the socket can be read, as poll and
  /// Asio's async_wait do, may begin behind this; one for an edge alone begins before.
  State Look(int fd);
  /// The usual mark again: for who gives up before kWhole or kEnded.
  void Reset(int fd);

 private:
  State LookOnce(int fd);

  const Opening opening_;
  std::size_t needed_ = 1;
  int missing_ = 0;  // so often there was too little
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_ACCESS_OPENING_H_
