// The rate of the disk itself, for what writes to it to be measured against.
#ifndef TIDEMARK_TESTS_BENCH_RAW_WRITING_H_
#define TIDEMARK_TESTS_BENCH_RAW_WRITING_H_

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/temporary_folder.h"

namespace tidemark::bench {

/// Bytes a second of sequential writing past the page cache to a new file below `folder`, 1 MiB at
/// a time, synced in the end; 0 where the file system does not offer it. Errors: throws
/// std::runtime_error if a write fails.
inline double RawWritingRate(const std::string& folder, std::uint64_t bytes) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  const test::TemporaryFolder below(folder);
  const int fd = open((below.path() + "/raw").c_str(), O_WRONLY | O_CREAT | O_DIRECT, 0600);
  if (fd < 0) return 0;
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock),
                                                          &std::free);
  std::memset(block.get(), 0x5a, kBlock);
  const auto start = std::chrono::steady_clock::now();
  bool written = true;
  for (std::uint64_t done = 0; done < bytes && written; done += kBlock) {
    written = write(fd, block.get(), kBlock) == static_cast<ssize_t>(kBlock);
  }
  fdatasync(fd);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  close(fd);
  if (!written) throw std::runtime_error("a raw write failed");
  return static_cast<double>(bytes) / took.count();
}

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_RAW_WRITING_H_
