// From a Batch message to the pipeline; one for each ingest call.
#ifndef TIDEMARK_SERVER_RPC_BATCH_READER_H_
#define TIDEMARK_SERVER_RPC_BATCH_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/access/guard.h"
#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "server/window/refusal.h"
#include "tidemark/v1/ingest.pb.h"

namespace tidemark::server {

/// Thread: one at a time.
class BatchReader {
 public:
  BatchReader(IngestSink& sink, Metrics& metrics, std::uint64_t batch_bytes_max,
              Caller caller = Caller(nullptr, "grpc", {}))
      : sink_(sink),
        metrics_(metrics),
        batch_bytes_max_(batch_bytes_max),
        caller_(std::move(caller)) {}

  /// Appends a batch, if the rules allow its stream to the caller. A stream that was deleted since
  /// the batch before is created anew, once. Errors: RESOURCE_EXHAUSTED if its values take more
  /// than batch_bytes_max, counted as framed TCP packs them: an item of a string batch takes 4
  /// bytes and its text. INVALID_ARGUMENT for half of a producer and its number.
  AppendResult Append(const v1::Batch& batch, RecordedTime time);

 private:
  absl::Status SelectStream(const v1::Batch& batch, bool reopen, Attempt& what);
  AppendResult AppendValues(const v1::Batch& batch, const BatchStamp& stamp);
  /// Of the stream, too, where it is known.
  void CountRefused(const v1::Batch& batch, std::string_view reason);

  IngestSink& sink_;
  Metrics& metrics_;
  const std::uint64_t batch_bytes_max_;
  Caller caller_;
  std::string name_;                 // of the newest batch that named one
  StreamHandle stream_;              // of name_, once it may be written to and is open
  std::uint64_t asked_version_ = 0;  // of the caller, when it was asked for stream_
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_BATCH_READER_H_
