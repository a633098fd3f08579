// Counts of whole addresses of 128 bits (ipv6), and of what they weigh.
//
// A whole address is a prefix of 128 bits: a hierarchy of that one level counts addresses by the
// rule and within the bounds of FrequencySummary (D(n), exact up to 1/epsilon values;
// hierarchical_frequency.h has the proof), in a form that takes 128 bits. FrequencySummary itself
// is not made for them: it packs the distances of its keys in at most 8 bytes.
#ifndef TIDEMARK_SERVER_SUMMARIZE_ADDRESS_ITEMS_H_
#define TIDEMARK_SERVER_SUMMARIZE_ADDRESS_ITEMS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "summaries/hierarchical_frequency.h"
#include "summaries/hierarchical_view.h"

namespace tidemark::server {

inline PrefixLevels<Key128> WholeAddresses() { return PrefixLevels<Key128>({128}); }

/// Asked as FrequencySummary and WeightedFrequencySummary are. Thread and errors: as
/// HierarchicalFrequencySummary.
class AddressItems {
 public:
  explicit AddressItems(double epsilon) : tree_(epsilon, WholeAddresses()) {}

  /// Ascending keys.
  void AddWindow(std::span<const Key128> sorted) { tree_.AddWindow(sorted); }
  /// With what they weigh; all counts are then of weights.
  void AddWindow(std::span<const KeyWeight<Key128>> items) { tree_.AddWeighted(items); }
  void Merge(const AddressItems& other) { tree_.Merge(other.tree_); }

  double epsilon() const { return tree_.epsilon(); }
  std::uint64_t count() const { return tree_.count(); }
  bool exact() const { return tree_.exact(); }
  std::size_t bytes() const { return tree_.bytes(); }
  HierarchicalSnapshot<Key128> Snapshot() const { return tree_.Snapshot(); }

  /// A frame "TMHF" of 128 bits with the one level 128.
  std::string Serialize() const { return tree_.Serialize(); }
  /// Errors: throws std::invalid_argument, naming what is wrong.
  static AddressItems Deserialize(std::string_view bytes) {
    AddressItems read(HierarchicalFrequencySummary<Key128>::Deserialize(bytes));
    if (!(read.tree_.levels() == WholeAddresses())) {
      throw std::invalid_argument("a hierarchy of other levels than 128, whole addresses");
    }
    return read;
  }

 private:
  explicit AddressItems(HierarchicalFrequencySummary<Key128> tree) : tree_(std::move(tree)) {}

  HierarchicalFrequencySummary<Key128> tree_;
};

/// A view of one level, HierarchicalView or SlidingHierarchicalView, asked as FrequencyView is.
template <class Tree>
class AddressItemsView {
 public:
  template <class... Of>
  explicit AddressItemsView(const Of&... of) : tree_(of...) {}

  std::uint64_t n() const { return tree_.n(); }
  ItemCount<Key128> Count(Key128 key) const { return tree_.Count(0, key); }
  bool Serves(double support) const { return tree_.Serves(support); }
  double MinimumSupport() const { return tree_.MinimumSupport(); }
  /// Nothing stands below a whole address, so that discounted counts are counts.
  std::vector<ItemCount<Key128>> HeavyHitters(double support) const {
    std::vector<ItemCount<Key128>> items;
    for (const auto& item : tree_.HeavyHitters(support)) {
      items.push_back({item.prefix, item.count_low, item.count_high});
    }
    return items;
  }

 private:
  Tree tree_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SUMMARIZE_ADDRESS_ITEMS_H_
