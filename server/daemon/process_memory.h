// What this process holds, as the kernel counts it.
#ifndef TIDEMARK_SERVER_DAEMON_PROCESS_MEMORY_H_
#define TIDEMARK_SERVER_DAEMON_PROCESS_MEMORY_H_

#include <cstdint>

namespace tidemark::server {

/// Resident bytes: what a container's limit counts, too. 0 where /proc does not tell. Thread: any.
std::uint64_t ResidentBytes();

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_PROCESS_MEMORY_H_
