// What a client sees while the log's disk fails, and how it is looked at.
#ifndef TIDEMARK_TESTS_FAULT_DISK_TROUBLE_H_
#define TIDEMARK_TESTS_FAULT_DISK_TROUBLE_H_

#include <functional>
#include <string>

#include "tests/fault/fault_run.h"

namespace tidemark::fault {

/// Waits until batches are refused, then: a push is refused with UNAVAILABLE and RetryInfo, and
/// says `why`; queries of every stream go on; the metrics say so; the process answers that it is
/// healthy; and acknowledgements come to
/// rest.
/// `again` is called before each try: for a disk that is full until the log removes a segment.
void ExpectRefusedLoudly(
    FaultRun& run, const std::string& why, const std::function<void()>& again = [] {});

/// Batches that were refused because of the log, as the metrics say.
double RefusedBatches(FaultRun& run);

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_DISK_TROUBLE_H_
