// Values in, over gRPC, in packed batches.
#ifndef TIDEMARK_CLIENT_PUSH_H_
#define TIDEMARK_CLIENT_PUSH_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "client/error.h"
#include "client/value.h"

namespace tidemark::client {

class Client;
struct PushCall;  // push.cc

/// Values of one batch: at 16k the cost of a message vanishes beside that of its values, and 128
/// KiB of float64 stays far below gRPC's 4 MiB a message.
constexpr std::size_t kBatchValues = 16 * 1024;
/// Bytes of the items of one batch of strings, unless one item alone is longer.
constexpr std::size_t kBatchStringBytes = 256 * 1024;

/// What travels beside the values of a span: nothing, a weight, or a y for each of them.
using Payloads =
    std::variant<std::monostate, std::span<const std::uint64_t>, std::span<const double>>;

/// Both ways to push share these. Each Write sends its values at once, in batches of at most
/// kBatchValues: hand over many values at a time. Write waits while the daemon is full (nothing is
/// dropped), without a deadline; Cancel ends the wait.
///
/// The element type of the span says the type of the stream, which is created on first use; a
/// stream of another type refuses the batch (FAILED_PRECONDITION). Errors: every method throws
/// Error; after that the call is over and each further one throws again. Thread: one at a time,
/// except Cancel, which may come from any thread while the object lives.
class BatchWriter {
 public:
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;
  /// Cancels the call unless it was finished; batches that have arrived by then stay.
  virtual ~BatchWriter();

  void Write(std::span<const double> values);
  void Write(std::span<const float> values);
  void Write(std::span<const std::int64_t> values);
  void Write(std::span<const std::uint64_t> values);
  void Write(std::span<const std::uint32_t> values);
  void Write(std::span<const Ipv4> values);
  void Write(std::span<const Ipv6> values);
  /// Items must be UTF-8: INVALID_ARGUMENT, with nothing of this span sent, otherwise.
  void Write(std::span<const std::string_view> items, Payloads payloads = {});
  void Write(std::span<const std::string> items, Payloads payloads = {});
  /// Packed values of `type` (not kString), little-endian, of kIpv6 in network order.
  /// INVALID_ARGUMENT if the size is no multiple of the type's, or if there are payloads, but not
  /// one for each value.
  void WritePacked(ValueType type, std::span<const std::byte> values, Payloads payloads = {});

  void Cancel();

 protected:
  explicit BatchWriter(std::unique_ptr<PushCall> call);
  std::unique_ptr<PushCall> call_;
};

struct PushSummary {
  std::uint64_t batches = 0;
  std::uint64_t accepted = 0;  ///< values that are part of n from now on
  std::uint64_t refused = 0;   ///< NaN; what is not finite, and is summed: a y, or a value (sums)
};

/// Client streaming: one answer at the end, and the daemon ends the call at the first refused
/// batch.
class Pusher final : public BatchWriter {
 public:
  /// Says that nothing more comes and waits for the daemon's count.
  PushSummary Finish();

 private:
  friend class Client;
  explicit Pusher(std::unique_ptr<PushCall> call);
};

struct Acknowledgement {
  std::uint64_t batch_id = 0;  ///< 1, 2, ... in the order sent
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  Code code = Code::kOk;  ///< else the batch was refused whole, for the reason in `message`
  std::string message;
  /// The daemon had taken it in before, and its acknowledgement was lost: it is counted once.
  bool duplicate = false;
};

struct AcknowledgedPushOptions {
  /// Batches sent and not acknowledged yet; Write waits for an acknowledgement beyond that. With
  /// retry_for at most 64.
  std::size_t max_unacknowledged = 32;
  /// Not 0: effectively once. When the connection breaks, or the daemon answers UNAVAILABLE (it
  /// stops; its log's disk fails), what is not acknowledged is sent again, over a new call, until
  /// the daemon has answered nothing for so long. It recognises what it has taken in already, even
  /// if it was killed meanwhile and has a log (store.durability). To that end the batches are
  /// numbered under an id of 16 random bytes, and kept here until they are acknowledged.
  /// Not promised: that, where the last try failed, what is not acknowledged was not taken in.
  std::chrono::milliseconds retry_for{0};
  /// Called in order with each acknowledgement, from Write, Flush or Finish. Without it, a refused
  /// batch is thrown as an Error by Flush or Finish.
  std::function<void(const Acknowledgement&)> on_acknowledgement;
};

struct AcknowledgedPushSummary {
  std::uint64_t batches = 0;
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;          ///< of accepted batches, as in PushSummary
  std::uint64_t refused_batches = 0;  ///< refused whole
  std::uint64_t duplicates = 0;       ///< of `batches`: see Acknowledgement
  std::uint64_t retries = 0;          ///< calls that were begun anew
};

/// Bidirectional: every batch is acknowledged in order, and a refused one does not end the call.
class AcknowledgedPusher final : public BatchWriter {
 public:
  /// Waits until every batch sent so far is acknowledged; the counts so far.
  AcknowledgedPushSummary Flush();
  /// Flush, and the end of the call.
  AcknowledgedPushSummary Finish();

 private:
  friend class Client;
  explicit AcknowledgedPusher(std::unique_ptr<PushCall> call);
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_PUSH_H_
