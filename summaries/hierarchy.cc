#include "summaries/hierarchy.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace tidemark {

template <class Key>
PrefixLevels<Key>::PrefixLevels(std::vector<int> lengths) : lengths_(std::move(lengths)) {
  if (lengths_.empty()) throw std::invalid_argument("a hierarchy of prefixes has no levels");
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    const int length = lengths_[i];
    if (length < 0 || length > kKeyBits) {
      throw std::invalid_argument("a prefix of " + std::to_string(length) +
                                  " bits, expected 0 to " + std::to_string(kKeyBits));
    }
    if (i > 0 && length <= lengths_[i - 1]) {
      throw std::invalid_argument("a prefix of " + std::to_string(length) + " bits after one of " +
                                  std::to_string(lengths_[i - 1]) + ", expected a longer one");
    }
    masks_.push_back(length == 0 ? Key{0} : static_cast<Key>(~Key{0} << (kKeyBits - length)));
  }
}

template <class Key>
PrefixLevels<Key> PrefixLevels<Key>::Every(int bits) {
  if (bits < 1 || bits > kKeyBits) {
    throw std::invalid_argument("levels every " + std::to_string(bits) + " bits, expected 1 to " +
                                std::to_string(kKeyBits));
  }
  std::vector<int> lengths;
  for (int length = 0; length < kKeyBits; length += bits) lengths.push_back(length);
  lengths.push_back(kKeyBits);
  return PrefixLevels(std::move(lengths));
}

template class PrefixLevels<std::uint32_t>;
template class PrefixLevels<std::uint64_t>;
template class PrefixLevels<Key128>;

TextLevels::TextLevels(char separator, int depth, TextRoot root)
    : separator_(separator), depth_(depth), root_(root) {
  if (depth < 1 || depth > kMaxDepth) {
    throw std::invalid_argument("a hierarchy of texts with a depth of " + std::to_string(depth) +
                                ", expected 1 to " + std::to_string(kMaxDepth));
  }
}

std::vector<std::string_view> TextLevels::Prefixes(std::string_view text) const {
  std::vector<std::string_view> prefixes;
  if (text.empty()) return prefixes;
  const bool first = root_ == TextRoot::kFirst;
  // Everything on this side of a separator is a prefix; the separator at the outer end has nothing
  // there.
  std::size_t from = first ? 1 : text.size() - 1;
  while (prefixes.size() < static_cast<std::size_t>(depth_)) {
    const std::size_t at = first       ? text.find(separator_, from)
                           : from == 0 ? std::string_view::npos
                                       : text.rfind(separator_, from - 1);
    if (at == std::string_view::npos) {
      prefixes.push_back(text);
      break;
    }
    prefixes.push_back(first ? text.substr(0, at) : text.substr(at + 1));
    from = first ? at + 1 : at;
  }
  return prefixes;
}

namespace internal {

void AddUp(std::vector<KeyWeight<std::uint64_t>>& items) {
  std::sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  std::size_t size = 0;
  for (const auto& item : items) {
    if (size > 0 && items[size - 1].key == item.key) {
      items[size - 1].weight += item.weight;
    } else {
      items[size++] = item;
    }
  }
  items.resize(size);
}

}  // namespace internal
}  // namespace tidemark
