// What a framed TCP client sends first, and what it is told last.
#ifndef TIDEMARK_TESTS_SERVER_INGEST_SERVER_FRAMES_H_
#define TIDEMARK_TESTS_SERVER_INGEST_SERVER_FRAMES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "wire/frame.h"
#include "wire/token.h"

namespace tidemark::server {

/// The preamble, behind a token if there is one.
inline std::string Hello(std::string_view token = {}) {
  std::string out;
  if (!token.empty()) wire::AppendToken(out, token);
  wire::AppendPreamble(out);
  return out;
}

/// Code and text of the only frame, an ERROR.
inline std::string ErrorIn(const std::string& bytes) {
  wire::ServerFrameDecoder decoder;
  wire::ServerFrame frame;
  std::size_t consumed = 0;
  std::size_t needed = 0;
  const auto all = std::as_bytes(std::span(bytes));
  if (decoder.Next(all, frame, consumed, needed) != wire::DecodeResult::kFrame ||
      frame.type != wire::FrameType::kError || consumed != bytes.size()) {
    return "no ERROR, or more";
  }
  return std::to_string(frame.code) + " " + std::string(frame.message);
}

}  // namespace tidemark::server

#endif  // TIDEMARK_TESTS_SERVER_INGEST_SERVER_FRAMES_H_
