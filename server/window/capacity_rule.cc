#include "server/window/capacity_rule.h"

#include <algorithm>
#include <bit>

namespace tidemark::server {

void CapacityRule::OnBatch(RecordedTime time, std::uint32_t held, CapacityLimits limits) {
  if (held == 0 || Age(time) < kSlowFill) return;
  capacity_ = std::min(capacity_, std::max(limits.min, std::bit_ceil(held)));
}

void CapacityRule::OnFull(RecordedTime time, CapacityLimits limits) {
  // Four at a time: from 2^8 to 2^18 in five windows, and no larger than the data seen so far.
  if (Age(time) < kFastFill) capacity_ = std::min(limits.max, capacity_ * 4);
}

}  // namespace tidemark::server
