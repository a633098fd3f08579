#include "gpu/sort/gl_pbsn_sorter.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>
#include <utility>

#include "gpu/gl/gl_check.h"
#include "gpu/sort/blend_keys.h"
#include "gpu/sort/gl_pbsn_engine.h"

namespace tidemark::sort {
namespace {

// Where a window of 32-bit keys is cut: both sides are less than kBlendRanks wide.
constexpr std::uint64_t kCut = std::uint64_t{1} << 31;
static_assert(kCut <= kBlendRanks);

}  // namespace

GlPbsnSorter::GlPbsnSorter(GlTexelOptions options)
    : GlTexelSorter(
          "gl-pbsn", TexelLayout::kInterleaved, std::move(options),
          [](const StepObserver& observer) { return std::make_shared<GlPbsnEngine>(observer); }) {}

std::string_view GlPbsnSorter::Sort(Channels<std::uint32_t> channels) { return SortAll(channels); }
std::string_view GlPbsnSorter::Sort(Channels<std::uint64_t> channels) { return SortAll(channels); }

template <class Key>
void GlPbsnSorter::AddParts(std::size_t channel, std::span<const Key> keys,
                            std::vector<Part>& parts) const {
  const auto [smallest, largest] = std::minmax_element(keys.begin(), keys.end());
  const std::uint64_t apart = std::uint64_t{*largest} - *smallest;
  Part part;
  part.channel = channel;
  part.base = *smallest;
  if (apart < kBlendRanks) {
    for (const Key key : keys) part.ranks.push_back(static_cast<std::uint32_t>(key - part.base));
    parts.push_back(std::move(part));
    return;
  }
  if (sizeof(Key) == 8) {
    throw SorterRefusal(std::string(name()) + ": keys of one window are " + std::to_string(apart) +
                        " apart; blending carries those that are less than " +
                        std::to_string(kBlendRanks) + " apart");
  }
  Part above;
  above.channel = channel;
  above.base = kCut;
  part.base = 0;
  for (const Key key : keys) {
    Part& side = key < kCut ? part : above;
    side.ranks.push_back(static_cast<std::uint32_t>(key - side.base));
  }
  parts.push_back(std::move(part));
  parts.push_back(std::move(above));
}

// At most kChannels of them; sorts their ranks.
void GlPbsnSorter::SortParts(std::span<Part> parts) {
  std::size_t longest = 0;
  for (const Part& part : parts) longest = std::max(longest, part.ranks.size());
  if (longest < 2) return;
  const std::shared_ptr<Texels> texels =
      MakeTexels(parts.size(), static_cast<std::uint32_t>(std::bit_width(longest - 1)), false);
  std::fill(texels->high.begin(), texels->high.end(), BlendBits(kBlendRanks - 1));
  for (std::size_t c = 0; c < parts.size(); ++c) {
    for (std::size_t i = 0; i < parts[c].ranks.size(); ++i) {
      texels->high[texels->Word(c, i)] = BlendBits(parts[c].ranks[i]);
    }
  }
  SortOnGl(texels, [&] {
    for (std::uint32_t& word : texels->high) word = BlendRank(word);
    for (std::size_t c = 0; c < parts.size(); ++c) {
      CheckSorted<std::uint32_t>(*texels, c, parts[c].ranks);
    }
  });
  for (std::size_t c = 0; c < parts.size(); ++c) {
    for (std::size_t i = 0; i < parts[c].ranks.size(); ++i) {
      parts[c].ranks[i] = texels->high[texels->Word(c, i)];
    }
  }
}

template <class Key>
std::string_view GlPbsnSorter::SortAll(Channels<Key> channels) {
  for (const std::span<Key> keys : channels) RefuseBeyondMax(keys.size());
  std::vector<Part> parts;
  try {
    for (std::size_t c = 0; c < channels.size(); ++c) {
      if (channels[c].size() > 1) AddParts<Key>(c, channels[c], parts);
    }
  } catch (const std::bad_alloc&) {
    throw SorterRefusal(std::string(name()) + ": no memory for the ranks of the keys");
  }
  for (std::size_t first = 0; first < parts.size(); first += kChannels) {
    const std::size_t count = std::min(kChannels, parts.size() - first);
    SortParts(std::span(parts).subspan(first, count));
  }
  // The parts of a channel are in order of their values. Nothing fails from here on.
  std::array<std::size_t, kChannels> written{};
  for (const Part& part : parts) {
    std::size_t& at = written[part.channel];
    for (const std::uint32_t rank : part.ranks) {
      channels[part.channel][at++] = static_cast<Key>(part.base + rank);
    }
  }
  return name();
}

}  // namespace tidemark::sort
