// Whole numbers in as few bytes as they need, for serialized summaries: 7 bits a byte, the lowest
// first, the top bit set in all bytes but the last. Each number has one form only.
#ifndef TIDEMARK_SUMMARIES_VARINT_H_
#define TIDEMARK_SUMMARIES_VARINT_H_

#include <cstdint>

#include "summaries/byte_io.h"
#include "summaries/fraction.h"

namespace tidemark {

inline void PutVarint(ByteWriter& writer, Uint128 value) {
  while (value >= 0x80) {
    writer.Put(static_cast<std::uint8_t>(static_cast<std::uint8_t>(value & 0x7F) | 0x80));
    value >>= 7;
  }
  writer.Put(static_cast<std::uint8_t>(value));
}

/// Errors: throws std::invalid_argument for more than 128 bits, or more bytes than needed.
inline Uint128 GetVarint(ByteReader& reader) {
  Uint128 value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = reader.Get<std::uint8_t>();
    const Uint128 bits = byte & 0x7F;
    if (shift >= 128 || (bits << shift) >> shift != bits) {
      reader.Fail("has a number of more than 128 bits");
    }
    value |= bits << shift;
    if ((byte & 0x80) == 0) {
      if (byte == 0 && shift > 0) reader.Fail("has a number with a needless byte");
      return value;
    }
  }
}

}  // namespace tidemark

#endif  // TIDEMARK_SUMMARIES_VARINT_H_
