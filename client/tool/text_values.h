// Which text of the input is the next value: lines, or one column of a CSV file.
#ifndef TIDEMARK_CLIENT_TOOL_TEXT_VALUES_H_
#define TIDEMARK_CLIENT_TOOL_TEXT_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/tool/input.h"
#include "client/value.h"

namespace tidemark::tool {

/// Without a column: one value a line. Numbers and addresses: space around them, blank lines and
/// lines that begin with '#' are skipped. Strings: each line is an item as it stands; blank lines
/// are skipped.
/// With a column: its number from 1, or its name in the first record. Where a number is given, the
/// first record is skipped as a header if that field of it is no value of the type; for strings,
/// of which every field is one, the first record counts. Blank lines are skipped.
/// A second column, of the weight or y beside each value, is found in the same way; what is no
/// number there makes the first record a header, too.
class TextValues {
 public:
  /// InputError for column 0, and for a payload's column without one for the values.
  TextValues(ByteSource* source, client::ValueType type, std::optional<std::string> column,
             std::size_t buffer_bytes = LineReader::kBufferBytes,
             std::optional<std::string> payload_column = std::nullopt);

  /// The text of the next value, valid until the next call. False at the end. A record without
  /// such a column gives an empty text, which is no value of any type but string: see problem().
  /// InputError if a named column is not in the header.
  bool Next(std::string_view* text);
  /// The text of what stands beside it; empty without a column for it, or where it is missing.
  std::string_view payload() const { return payload_; }
  std::uint64_t line_number() const { return lines_.line_number(); }
  /// "FILE:LINE: "abc" is not a float64": what is wrong with the text given last.
  std::string Problem(std::string_view text) const;
  /// The same for payload(), which should have been of this type.
  std::string PayloadProblem(client::PayloadType type) const;
  /// True where even a string is missing: the record has too few columns.
  bool column_missing() const { return column_missing_; }

 private:
  static std::optional<std::size_t> NumberOf(const std::string& column);
  std::size_t Resolve(std::string_view header, const std::string& column) const;
  bool NextField(std::string_view record, std::string_view* text);

  ByteSource* source_;
  client::ValueType type_;
  std::optional<std::string> column_;
  std::optional<std::string> payload_column_;
  LineReader lines_;
  std::optional<std::size_t> index_;  // of the column, once known
  std::optional<std::size_t> payload_index_;
  std::string_view payload_;
  std::string payload_scratch_;
  bool first_record_ = true;
  bool column_missing_ = false;
  std::string scratch_;
};

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_TEXT_VALUES_H_
