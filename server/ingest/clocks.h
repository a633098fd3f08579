// The two times of ingest, passed in.
#ifndef TIDEMARK_SERVER_INGEST_CLOCKS_H_
#define TIDEMARK_SERVER_INGEST_CLOCKS_H_

#include <functional>

#include "server/window/ingest_sink.h"

namespace tidemark::server {

/// Microseconds. Thread: any.
using ClockFn = std::function<RecordedTime()>;

struct Clocks {
  /// Since 1970: what batches are recorded with. May be set, and so step either way.
  ClockFn recorded;
  /// Since any moment; never steps. What a silence is measured by.
  ClockFn steady;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_CLOCKS_H_
