// The frame decoders: no bytes crash them; the frames found do not depend on how the bytes are cut;
// what was decoded encodes to the same bytes; values and payloads of a batch are all of its bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "wire/frame.h"

namespace {

using tidemark::wire::ClientFrame;
using tidemark::wire::ClientFrameDecoder;
using tidemark::wire::DecodeResult;
using tidemark::wire::ServerFrame;
using tidemark::wire::ServerFrameDecoder;
using tidemark::wire::WireType;

constexpr std::size_t kFrameBytesMax = 1024;

void Require(bool property) {
  if (!property) std::abort();
}

void CheckPairs(const ClientFrame& frame) {
  const auto element = tidemark::wire::ParseWireElement(frame.value_type);
  if (!element || element->payload == tidemark::wire::WirePayload::kNone ||
      element->value == WireType::kDefault) {  // as the stream has them
    return;
  }
  tidemark::wire::PairParts parts;
  std::string error;
  if (!tidemark::wire::SplitPairs(frame.payload, element->value, parts, error)) {
    Require(!error.empty() && parts.values.empty() && parts.payloads.empty());
    return;
  }
  Require(parts.payloads.size() % tidemark::wire::kPayloadBytes == 0);
  const std::size_t count = parts.payloads.size() / tidemark::wire::kPayloadBytes;
  const std::size_t each = tidemark::wire::WireTypeBytes(static_cast<std::uint8_t>(element->value));
  if (each > 0) Require(parts.values.size() == count * each);
  const std::size_t before = each > 0 || frame.payload.empty() ? 0 : sizeof(std::uint64_t);
  Require(before + parts.payloads.size() + parts.values.size() == frame.payload.size());
}

std::string Encode(const ClientFrame& frame) {
  std::string out;
  if (frame.type == tidemark::wire::FrameType::kOpen) {
    tidemark::wire::AppendOpen(out, frame.handle, static_cast<WireType>(frame.value_type),
                               frame.name());
  } else if (frame.type == tidemark::wire::FrameType::kProducer) {
    tidemark::wire::AppendProducer(out, frame.producer());
    out[5] = static_cast<char>(frame.value_type);  // ignored
  } else {
    CheckPairs(frame);
    tidemark::wire::AppendBatchHeader(out, frame.handle, frame.batch_id,
                                      static_cast<WireType>(frame.value_type), frame.payload.size(),
                                      frame.type);
    out += frame.name();
    std::vector<std::string_view> items;
    std::string error;
    std::string again;
    if (tidemark::wire::DecodeStrings(frame.payload, items, error)) {
      for (const auto item : items) tidemark::wire::AppendString(again, item);
      Require(again == frame.name());
    } else {
      Require(items.empty() && !error.empty());
    }
  }
  return out;
}

// The reserved words of server frames, which decoders ignore, may differ: only the decoding of the
// encoding must be the same.
std::string Encode(const ServerFrame& frame) {
  std::string out;
  switch (frame.type) {
    case tidemark::wire::FrameType::kOpened:
      tidemark::wire::AppendOpened(out, frame.handle, static_cast<WireType>(frame.value_type));
      break;
    case tidemark::wire::FrameType::kAck:
      tidemark::wire::AppendAck(out, frame.batch_id, frame.accepted, frame.refused);
      break;
    default:
      tidemark::wire::AppendError(out, frame.code, frame.flags, frame.handle, frame.batch_id,
                                  frame.message);
  }
  return out;
}

struct Result {
  std::string encoded;
  std::size_t frames = 0;
  bool failed = false;
  std::uint64_t error_offset = 0;
};

template <typename Decoder, typename Frame>
Result Decode(std::span<const std::byte> bytes, std::size_t piece) {
  Decoder decoder(kFrameBytesMax);
  Result result;
  std::size_t begin = 0;
  std::size_t end = std::min(piece, bytes.size());
  for (;;) {
    Frame frame;
    std::size_t consumed = 0;
    std::size_t needed = 0;
    const DecodeResult decoded =
        decoder.Next(bytes.subspan(begin, end - begin), frame, consumed, needed);
    Require(consumed <= end - begin);
    begin += consumed;
    if (decoded == DecodeResult::kFrame) {
      ++result.frames;
      result.encoded += Encode(frame);
    } else if (decoded == DecodeResult::kError) {
      Require(!decoder.error().message.empty() && decoder.error().offset < bytes.size() + 1);
      result.failed = true;
      result.error_offset = decoder.error().offset;
      return result;
    } else {
      Require(needed > end - begin && needed <= kFrameBytesMax);
      if (end == bytes.size()) return result;
      end += std::min(piece, bytes.size() - end);
    }
  }
}

template <typename Decoder, typename Frame>
Result Check(std::span<const std::byte> bytes) {
  const Result whole = Decode<Decoder, Frame>(bytes, bytes.size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}}) {
    const Result cut = Decode<Decoder, Frame>(bytes, piece);
    Require(cut.encoded == whole.encoded && cut.frames == whole.frames &&
            cut.failed == whole.failed && cut.error_offset == whole.error_offset);
  }
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result client = Check<ClientFrameDecoder, ClientFrame>(bytes);
  // Client frames have no bytes that are not in the decoded frame.
  if (client.frames > 0) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Require(text.substr(tidemark::wire::kPreambleBytes).starts_with(client.encoded));
  }
  Check<ServerFrameDecoder, ServerFrame>(bytes);
  return 0;
}
