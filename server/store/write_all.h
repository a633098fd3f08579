// A write of many bytes by a call that may take fewer.
#ifndef TIDEMARK_SERVER_STORE_WRITE_ALL_H_
#define TIDEMARK_SERVER_STORE_WRITE_ALL_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark::store {

/// Calls write(bytes, offset), which returns as pwrite does, until all is written or it fails with
/// another errno than EINTR. 0, or the errno. A write that takes nothing counts as EIO.
template <class WriteSome>
int WriteAll(std::string_view bytes, std::uint64_t offset, WriteSome write) {
  while (!bytes.empty()) {
    const auto taken = write(bytes, offset);
    if (taken < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    if (taken == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(taken));
    offset += static_cast<std::uint64_t>(taken);
  }
  return 0;
}

}  // namespace tidemark::store

#endif  // TIDEMARK_SERVER_STORE_WRITE_ALL_H_
