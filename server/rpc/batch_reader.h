// From a Batch message to the pipeline; one for each ingest call.
#ifndef TIDEMARK_SERVER_RPC_BATCH_READER_H_
#define TIDEMARK_SERVER_RPC_BATCH_READER_H_

#include <string>

#include "server/telemetry/metrics.h"
#include "server/window/ingest_sink.h"
#include "tidemark/v1/ingest.pb.h"

namespace tidemark::server {

/// Thread: one at a time.
class BatchReader {
 public:
  BatchReader(IngestSink& sink, Metrics& metrics) : sink_(sink), metrics_(metrics) {}

  /// Appends a batch. A stream that was deleted since the batch before is created anew, once.
  AppendResult Append(const v1::Batch& batch, RecordedTime time);

 private:
  absl::Status SelectStream(const v1::Batch& batch, bool reopen, bool& bad_name);
  AppendResult AppendValues(const v1::Batch& batch, RecordedTime time);

  IngestSink& sink_;
  Metrics& metrics_;
  std::string name_;
  StreamHandle stream_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_RPC_BATCH_READER_H_
