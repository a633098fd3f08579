// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78): the checksum at the end of every
// serialized summary. "123456789" gives 0xE3069283.
#ifndef TIDEMARK_SUMMARIES_CRC32C_H_
#define TIDEMARK_SUMMARIES_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace tidemark {

std::uint32_t Crc32c(std::string_view bytes);

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_CRC32C_H_
