// A daemon for tests of the client: the four services over gRPC on a free port, each stream a plain
// list of values, every answer exact (computed by sorting). What the real daemon answers is tested
// in tests/e2e; here only what the client makes of answers and errors.
#ifndef TIDEMARK_TESTS_CLIENT_FAKE_SERVER_H_
#define TIDEMARK_TESTS_CLIENT_FAKE_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/value.h"

namespace tidemark::client {

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();  ///< ends open calls

  const std::string& address() const { return address_; }

  /// What a stream holds, in the order taken in; empty for an unknown one.
  std::vector<Value> Values(const std::string& stream) const;
  /// Batches that arrived at any stream.
  std::uint64_t batches() const;
  /// The values of the largest batch that arrived.
  std::uint64_t largest_batch() const;

  /// From now on a batch with this number (from 1, over all streams) is refused with `code`.
  void RefuseBatch(std::uint64_t number, int code, const std::string& message);
  /// Acknowledgements go out only once so many wait, or when the client sends nothing more. A
  /// client that keeps fewer batches unacknowledged would wait for ever.
  void HoldAcknowledgements(std::uint64_t count);
  /// An acknowledged push is ended by the server with UNAVAILABLE after so many batches.
  void EndPushesAfter(std::uint64_t batches);
  /// The push whose batch with this id is taken in next is ended with UNAVAILABLE in place of its
  /// acknowledgement.
  void LoseAcknowledgementOf(std::uint64_t batch_id);
  /// The batch with this id is answered UNAVAILABLE, once, and not taken in.
  void BeUnavailableFor(std::uint64_t batch_id);
  /// A watch is ended by the server with UNAVAILABLE after so many answers.
  void EndWatchesAfter(std::uint64_t answers);
  /// Watches that are open now.
  std::uint64_t open_watches() const;
  /// Every unary query waits (until its deadline, or the end of the server).
  void StallQueries();

  struct State;
  void Set(std::uint64_t State::*what, std::uint64_t to);

 private:
  struct Services;
  std::unique_ptr<State> state_;
  std::unique_ptr<Services> services_;
  std::string address_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_TESTS_CLIENT_FAKE_SERVER_H_
