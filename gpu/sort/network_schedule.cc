#include "gpu/sort/network_schedule.h"

#include <cassert>
#include <ostream>

namespace tidemark::sort {

std::vector<NetworkStep> BitonicSchedule(std::uint32_t log2_keys) {
  assert(log2_keys <= kMaxLog2Keys);
  std::vector<NetworkStep> schedule;
  schedule.reserve(std::size_t{log2_keys} * (log2_keys + 1) / 2);
  for (std::uint32_t stage = 1; stage <= log2_keys; ++stage) {
    for (std::uint32_t step = 1; step <= stage; ++step) {
      schedule.push_back({stage, step, std::uint32_t{1} << (stage - step), step == 1});
    }
  }
  return schedule;
}

std::vector<NetworkStep> BitonicMergeSchedule(std::uint32_t log2_keys) {
  std::vector<NetworkStep> schedule = BitonicSchedule(log2_keys);
  schedule.erase(schedule.begin(), schedule.end() - log2_keys);
  return schedule;
}

std::ostream& operator<<(std::ostream& out, const NetworkStep& step) {
  return out << "stage " << step.stage << " step " << step.step << ": distance " << step.distance
             << (step.mirrored ? " mirrored" : "");
}

}  // namespace tidemark::sort
