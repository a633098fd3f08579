#include "server/window/text_rules.h"

#include <cstdint>
#include <cstring>

#include "server/window/concat.h"
#include "server/window/refusal.h"

namespace tidemark::server {
namespace {

// Length of the well-formed UTF-8 sequence that begins at `text[at]`, or 0. The ranges are those of
// the Unicode standard's table 3-7, which leave no overlong form and no surrogate.
std::size_t SequenceLength(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  const auto within = [&](std::size_t i, std::uint8_t low, std::uint8_t high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t lead = byte(at);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return within(at + 1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const std::uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return within(at + 1, low, high) && within(at + 2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const std::uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return within(at + 1, low, high) && within(at + 2, 0x80, 0xBF) && within(at + 3, 0x80, 0xBF)
               ? 4
               : 0;
  }
  return 0;
}

}  // namespace

std::size_t FindInvalidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time.
    while (at + 8 <= text.size()) {
      std::uint64_t word;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080'8080'8080'8080ull) != 0) break;
      at += 8;
    }
    if (at == text.size()) break;
    const std::size_t length = SequenceLength(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string Printable(std::string_view text) {
  constexpr std::size_t kShown = 64;
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  if (text.size() > kShown) out += "...";
  return out;
}

absl::Status CheckStreamName(std::string_view name, std::size_t max_bytes) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        Concat("the stream's name is empty; expected 1 to ", max_bytes, " bytes of UTF-8"));
  }
  if (name.size() > max_bytes) {
    return absl::InvalidArgumentError(Concat("stream name \"", Printable(name), "\" has ",
                                             name.size(), " bytes; expected at most ", max_bytes));
  }
  if (const std::size_t at = FindInvalidUtf8(name); at != std::string_view::npos) {
    return absl::InvalidArgumentError(
        Concat("stream name \"", Printable(name), "\" is not UTF-8: bad byte at offset ", at));
  }
  for (std::size_t at = 0; at < name.size(); ++at) {
    const auto byte = static_cast<std::uint8_t>(name[at]);
    if (byte < 0x20 || byte == 0x7F) {
      return absl::InvalidArgumentError(
          Concat("stream name \"", Printable(name), "\" has a control character at offset ", at));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckItem(std::string_view item, std::size_t max_bytes) {
  if (item.size() > max_bytes) {
    return WithRefusal(
        absl::InvalidArgumentError(Concat("item \"", Printable(item), "\" has ", item.size(),
                                          " bytes; expected at most ", max_bytes)),
        Refusal::kItemTooLarge);
  }
  if (const std::size_t at = FindInvalidUtf8(item); at != std::string_view::npos) {
    return WithRefusal(absl::InvalidArgumentError(Concat(
                           "item \"", Printable(item), "\" is not UTF-8: bad byte at offset ", at)),
                       Refusal::kBadUtf8);
  }
  return absl::OkStatus();
}

}  // namespace tidemark::server
