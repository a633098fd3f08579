// What is true of prefixes of addresses of 128 bits, counted one by one, and whether an answer
// agrees with it.
#ifndef TIDEMARK_TESTS_SUPPORT_PREFIX_TRUTH_H_
#define TIDEMARK_TESTS_SUPPORT_PREFIX_TRUTH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "summaries/hierarchy.h"

namespace tidemark::test {

inline Key128 PrefixOf(Key128 address, int length) {
  return length == 0 ? Key128{0} : address >> (128 - length) << (128 - length);
}

/// Addresses of a few networks of different lengths, of single hosts, and of everywhere.
inline std::vector<Key128> MakeAddresses(std::mt19937_64& random, std::size_t count) {
  const auto any = [&] { return Key128{random()} << 64 | random(); };
  const Key128 host = Key128{0x2001'0db8'0000'0001U} << 64 | 7;
  const std::pair<Key128, int> networks[] = {
      {PrefixOf(any(), 16), 16}, {PrefixOf(any(), 32), 32}, {PrefixOf(any(), 48), 48},
      {PrefixOf(any(), 61), 61}, {PrefixOf(any(), 64), 64}, {PrefixOf(any(), 120), 120}};
  std::vector<Key128> addresses;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = random() % 16;
    if (draw < 2) {
      addresses.push_back(host + random() % 3);
    } else if (draw < 12) {
      const auto& [prefix, length] = networks[random() % std::size(networks)];
      addresses.push_back(prefix | (any() & ~PrefixOf(~Key128{0}, length)));
    } else {
      addresses.push_back(any());
    }
  }
  return addresses;
}

struct Reported {
  Key128 prefix = 0;
  int length = 0;
  std::uint64_t count_low = 0, count_high = 0;
  std::uint64_t discounted_low = 0, discounted_high = 0;
};

/// What is wrong with an answer about hierarchical heavy hitters, in words; empty if nothing is.
/// `levels`: ascending. `weights`: as many as addresses, or none.
inline std::string WrongWith(std::vector<Reported> answer, std::span<const Key128> addresses,
                             std::span<const std::uint64_t> weights, std::vector<int> levels,
                             double support, double epsilon) {
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1 : weights[i]; };
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) n += weight(i);
  const double share = support * static_cast<double>(n);
  std::ostringstream wrong;
  std::vector<bool> claimed(addresses.size());
  std::size_t checked = 0;
  std::reverse(levels.begin(), levels.end());
  for (const int length : levels) {
    std::map<Key128, std::pair<std::uint64_t, std::uint64_t>> counts;  // all, and not claimed below
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      auto& [all, free] = counts[PrefixOf(addresses[i], length)];
      all += weight(i);
      free += claimed[i] ? 0 : weight(i);
    }
    std::map<Key128, bool> reported;
    for (const Reported& row : answer) {
      if (row.length != length) continue;
      ++checked;
      if (!reported.emplace(row.prefix, true).second) wrong << "a /" << length << " twice\n";
      const auto found = counts.find(row.prefix);
      if (found == counts.end()) {
        wrong << "a /" << length << " that never came\n";
        continue;
      }
      const auto [all, free] = found->second;
      if (row.count_low > all || row.count_high < all) {
        wrong << "/" << length << ": came " << all << " times, not " << row.count_low << " to "
              << row.count_high << "\n";
      }
      if (row.discounted_low > free || row.discounted_high < free) {
        wrong << "/" << length << ": discounted " << free << ", not " << row.discounted_low
              << " to " << row.discounted_high << "\n";
      }
      if (static_cast<double>(row.count_high - row.count_low) >
          epsilon * static_cast<double>(n) * (1 + 1e-12)) {
        wrong << "/" << length << ": " << row.count_low << " to " << row.count_high
              << " is wider than epsilon\n";
      }
    }
    for (const auto& [prefix, count] : counts) {
      if (!reported.contains(prefix) && static_cast<double>(count.second) >= share) {
        wrong << "a /" << length << " is missing that came " << count.second << " times\n";
      }
    }
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (reported.contains(PrefixOf(addresses[i], length))) claimed[i] = true;
    }
  }
  if (checked != answer.size()) wrong << "prefixes of levels that nobody asked for\n";
  return wrong.str();
}

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_SUPPORT_PREFIX_TRUTH_H_
