#include "summaries/grid_kernels.h"

#include <array>

#include "summaries/grid_vectors.h"

namespace tidemark::internal {
namespace {

template <class Key>
inline void AddKey(Key key, GridCell<Key>& cell) {
  const Key max = cell.max;
  cell.max = max > key ? max : key;
  ++cell.count;
}

/// Keys are read from several places in turn.
template <class Key, class Cells>
inline void CountInterleaved(std::span<const Key> keys, Cells cells, GridCell<Key>* counts) {
  const std::size_t part = keys.size() / kCountedPlaces;
  const Key* const first = keys.data();
  for (std::size_t i = 0; i < part; ++i) {
    for (std::size_t place = 0; place < kCountedPlaces; ++place) {
      const Key key = first[place * part + i];
      AddKey(key, counts[cells(key)]);
    }
  }
  for (std::size_t i = kCountedPlaces * part; i < keys.size(); ++i)
    AddKey(first[i], counts[cells(first[i])]);
}

/// Stores once for each stretch of keys in one cell.
template <class Key, class Cells>
inline void CountStretches(std::span<const Key> keys, Cells cells, GridCell<Key>* counts) {
  if (keys.empty()) return;
  std::size_t cell = cells(keys[0]), first = 0;
  Key max = 0;
  const auto store = [&](std::size_t end) {
    counts[cell].count += static_cast<std::uint32_t>(end - first);
    if (counts[cell].max < max) counts[cell].max = max;
  };
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Key key = keys[i];
    const std::size_t next = cells(key);
    if (next == cell) {
      max = max > key ? max : key;
    } else {
      store(i);
      cell = next;
      first = i;
      max = key;
    }
  }
  store(keys.size());
}

template <class Key, class Cells>
inline void Count(std::span<const Key> keys, Cells cells, bool clustered, GridCell<Key>* counts) {
  if (clustered) {
    CountStretches(keys, cells, counts);
    return;
  }
  const std::size_t done = cells.vectors ? CountInVectors(keys, cells, counts) : 0;
  CountInterleaved(keys.subspan(done), cells, counts);
}

template <class Key, class Cells>
inline void Copy(std::span<const Key> keys, Cells cells, const std::uint8_t* wanted, Key* out) {
  std::array<std::uint32_t, kIndexed> indices;
  for (; cells.vectors && keys.size() >= kIndexed; keys = keys.subspan(kIndexed)) {
    IndexKeys(keys.data(), cells, indices.data());
    for (std::size_t i = 0; i < kIndexed; ++i) {
      *out = keys[i];
      out += wanted[indices[i]];
    }
  }
  for (const Key key : keys) {
    *out = key;
    out += wanted[cells(key)];
  }
}

}  // namespace

template <class Key>
void CountKeys(std::span<const Key> keys, EvenCells<Key> cells, bool clustered,
               GridCell<Key>* counts) {
  Count(keys, cells, clustered, counts);
}
template <class Key>
void CountKeys(std::span<const Key> keys, BlockCells<Key> cells, bool clustered,
               GridCell<Key>* counts) {
  Count(keys, cells, clustered, counts);
}

template <class Key>
void CountKeys(std::span<const Key> keys, LogCells<Key> cells, bool clustered,
               GridCell<Key>* counts) {
  Count(keys, cells, clustered, counts);
}

template <class Key>
void CopyWanted(std::span<const Key> keys, EvenCells<Key> cells, const std::uint8_t* wanted,
                Key* out) {
  Copy(keys, cells, wanted, out);
}
template <class Key>
void CopyWanted(std::span<const Key> keys, BlockCells<Key> cells, const std::uint8_t* wanted,
                Key* out) {
  Copy(keys, cells, wanted, out);
}

template <class Key>
void CopyWanted(std::span<const Key> keys, LogCells<Key> cells, const std::uint8_t* wanted,
                Key* out) {
  Copy(keys, cells, wanted, out);
}

template <class Key>
std::size_t PartitionRange(std::span<Key> keys, Key low, Key high) {
  const Key width = static_cast<Key>(high - low);
  Key* to = keys.data();
  for (Key& at : keys) {
    const Key key = at;
    at = *to;
    *to = key;
    to += static_cast<Key>(key - low) <= width ? 1 : 0;
  }
  return static_cast<std::size_t>(to - keys.data());
}

template void CountKeys(std::span<const std::uint32_t>, EvenCells<std::uint32_t>, bool,
                        GridCell<std::uint32_t>*);
template void CountKeys(std::span<const std::uint64_t>, EvenCells<std::uint64_t>, bool,
                        GridCell<std::uint64_t>*);
template void CountKeys(std::span<const std::uint32_t>, BlockCells<std::uint32_t>, bool,
                        GridCell<std::uint32_t>*);
template void CountKeys(std::span<const std::uint64_t>, BlockCells<std::uint64_t>, bool,
                        GridCell<std::uint64_t>*);
template void CountKeys(std::span<const std::uint32_t>, LogCells<std::uint32_t>, bool,
                        GridCell<std::uint32_t>*);
template void CountKeys(std::span<const std::uint64_t>, LogCells<std::uint64_t>, bool,
                        GridCell<std::uint64_t>*);
template void CopyWanted(std::span<const std::uint32_t>, LogCells<std::uint32_t>,
                         const std::uint8_t*, std::uint32_t*);
template void CopyWanted(std::span<const std::uint64_t>, LogCells<std::uint64_t>,
                         const std::uint8_t*, std::uint64_t*);
template void CopyWanted(std::span<const std::uint32_t>, EvenCells<std::uint32_t>,
                         const std::uint8_t*, std::uint32_t*);
template void CopyWanted(std::span<const std::uint64_t>, EvenCells<std::uint64_t>,
                         const std::uint8_t*, std::uint64_t*);
template void CopyWanted(std::span<const std::uint32_t>, BlockCells<std::uint32_t>,
                         const std::uint8_t*, std::uint32_t*);
template void CopyWanted(std::span<const std::uint64_t>, BlockCells<std::uint64_t>,
                         const std::uint8_t*, std::uint64_t*);
template std::size_t PartitionRange(std::span<std::uint32_t>, std::uint32_t, std::uint32_t);
template std::size_t PartitionRange(std::span<std::uint64_t>, std::uint64_t, std::uint64_t);

}  // namespace tidemark::internal
