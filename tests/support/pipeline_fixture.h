// A pipeline without sockets, for tests: CPU sorter, no measurement, times passed in.
#ifndef TIDEMARK_TESTS_SUPPORT_PIPELINE_FIXTURE_H_
#define TIDEMARK_TESTS_SUPPORT_PIPELINE_FIXTURE_H_

#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/pipeline/pipeline.h"

namespace tidemark::server {

struct TestPipeline {
  explicit TestPipeline(PipelineOptions options = {}, sort::SorterSelection sorter = CpuSorter())
      : pipeline(options, std::move(sorter), metrics, [this](const std::string& error) {
          const std::lock_guard lock(mutex);
          sorter_errors.push_back(error);
        }) {
    pipeline.Start();
  }

  static sort::SorterSelection CpuSorter() {
    sort::SorterOptions options;
    options.name = "cpu";
    options.measure_budget_ms = 0;
    return sort::MakeSorter(options);
  }

  template <class Value>
  AppendResult Append(std::string_view stream, ValueType type, std::span<const Value> values,
                      RecordedTime time = 0) {
    const StreamHandle handle = pipeline.Open(stream, type).value();
    if constexpr (std::is_same_v<Value, std::string_view>) {
      return pipeline.AppendStrings(handle, values, time);
    } else {
      return pipeline.AppendPacked(handle, std::as_bytes(values), time);
    }
  }

  std::string Bytes(std::string_view stream) {
    return pipeline.streams().Find(stream).value()->SerializeSummaries();
  }

  std::mutex mutex;
  std::vector<std::string> sorter_errors;  // guarded by mutex
  Metrics metrics{"test"};
  Pipeline pipeline;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SUPPORT_PIPELINE_FIXTURE_H_
