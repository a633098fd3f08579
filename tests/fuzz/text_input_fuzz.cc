// What `tidemark push` reads: lines, CSV records, their fields, and the values in them. No bytes
// crash the reader; lines, records and fields are those of a grammar written down here a second
// time; the values found do not depend on how much is read at a time; a value's text form reads
// back as the same value.
//
// The first byte chooses the type and the column, the rest is the input.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/tool/arguments.h"
#include "client/tool/text_values.h"

namespace {

using namespace tidemark::tool;
using tidemark::client::ValueType;

// Sizes of the reader's first buffer: the smallest makes it read byte by byte and grow, the largest
// holds any input.
constexpr std::size_t kBuffers[] = {1, 7, 16384};

void Require(bool property) {
  if (!property) std::abort();
}

// A file in memory that holds `text`, at its beginning.
int FileOf(std::string_view text) {
  static const int file = memfd_create("input", MFD_CLOEXEC);
  Require(file >= 0 && ftruncate(file, 0) == 0);
  Require(pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  Require(lseek(file, 0, SEEK_SET) == 0);
  return file;
}

struct Line {
  std::string text;
  std::uint64_t number = 0;
  friend bool operator==(const Line&, const Line&) = default;
};
struct Lines {
  std::vector<Line> lines;
  bool failed = false;  // in a quoted field that is never closed
  friend bool operator==(const Lines&, const Lines&) = default;
};

Lines Read(std::string_view text, bool csv, std::size_t buffer_bytes) {
  Lines out;
  try {
    ByteSource source("-", FileOf(text), -1);
    LineReader reader(&source, csv, buffer_bytes);
    std::string_view line;
    while (reader.Next(&line)) out.lines.push_back({std::string(line), reader.line_number()});
  } catch (const InputError&) {
    out.failed = true;
  }
  return out;
}

// The grammar: a record is a line, but that the line ends inside a quoted field belong to it. A
// field is quoted if its first character is a quote; a doubled quote inside stands for one, a
// single one closes it. Elsewhere a quote is a character like any other.
Lines ReferenceLines(std::string_view text, bool csv) {
  std::vector<Line> lines;
  Line current;
  std::uint64_t number = 1;
  current.number = number;
  bool field_start = true, quoted = false, any = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    any = true;
    if (c == '\n') ++number;
    if (c == '\n' && !quoted) {
      if (current.text.ends_with('\r')) current.text.pop_back();
      lines.push_back(current);
      current = {"", number};
      field_start = true;
      any = false;
      continue;
    }
    current.text += c;
    if (!csv) continue;
    if (quoted) {
      if (c != '"') continue;
      if (i + 1 < text.size() && text[i + 1] == '"') {
        current.text += text[++i];
      } else {
        quoted = false;
      }
      continue;
    }
    quoted = field_start && c == '"';
    field_start = c == ',';
  }
  if (quoted) return {lines, true};
  if (any) {
    if (current.text.ends_with('\r')) current.text.pop_back();
    lines.push_back(current);
  }
  return {lines, false};
}

std::vector<std::string> ReferenceFields(std::string_view record) {
  std::vector<std::string> fields;
  std::size_t i = 0;
  while (true) {
    const std::size_t begin = i;
    std::string inner;
    bool closed = false;
    if (i < record.size() && record[i] == '"') {
      for (++i; i < record.size() && !closed; ++i) {
        if (record[i] != '"') {
          inner += record[i];
        } else if (i + 1 < record.size() && record[i + 1] == '"') {
          inner += record[++i];
        } else {
          closed = true;
        }
      }
    }
    const std::size_t after = i;
    while (i < record.size() && record[i] != ',') ++i;
    // Text behind the closing quote: no quoted field after all.
    const bool plain = Trim(record.substr(after, i - after)).empty();
    fields.push_back(closed && plain ? inner : std::string(record.substr(begin, i - begin)));
    if (i == record.size()) return fields;
    ++i;
  }
}

void CheckLines(std::string_view text) {
  for (const bool csv : {false, true}) {
    const Lines expected = ReferenceLines(text, csv);
    for (const std::size_t bytes : kBuffers) Require(Read(text, csv, bytes) == expected);
    if (!csv) continue;
    std::string scratch;
    for (const Line& record : expected.lines) {
      const std::vector<std::string> fields = ReferenceFields(record.text);
      for (std::size_t i = 0; i < fields.size(); ++i) {
        Require(CsvField(record.text, i, &scratch) == fields[i]);
      }
      Require(!CsvField(record.text, fields.size(), &scratch));
      const auto name = FindCsvField(record.text, "value");
      const auto found = std::find_if(fields.begin(), fields.end(), [](const std::string& field) {
        return Trim(field) == "value";
      });
      Require(name.has_value() == (found != fields.end()));
      if (name) Require(*name == static_cast<std::size_t>(found - fields.begin()));
    }
  }
}

struct Values {
  std::vector<std::string> texts;
  std::vector<std::string> problems;
  std::string error;
  friend bool operator==(const Values&, const Values&) = default;
};

Values ReadValues(std::string_view text, ValueType type, const std::optional<std::string>& column,
                  std::size_t buffer_bytes) {
  Values values;
  try {
    ByteSource source("-", FileOf(text), -1);
    TextValues reader(&source, type, column, buffer_bytes);
    std::string_view value;
    while (reader.Next(&value)) {
      const auto parsed = tidemark::client::ParseValue(type, value);
      if (!parsed || reader.column_missing()) {
        values.problems.push_back(reader.Problem(value));
        for (const char c : values.problems.back()) Require(c >= 32 || c < 0);
        continue;
      }
      Require(parsed->type() == type);
      values.texts.emplace_back(value);
      const std::string again = tidemark::client::FormatValue(*parsed);
      const auto back = tidemark::client::ParseValue(type, again);
      Require(back && (*back == *parsed || again == "nan" || again == "-nan"));
    }
  } catch (const InputError& error) {
    values.error = error.what();
    Require(!values.error.empty());
  }
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto choice = static_cast<unsigned char>(text[0]);
  text.remove_prefix(1);
  CheckLines(text);
  const auto type = static_cast<ValueType>(1 + choice % 7);
  const std::optional<std::string> columns[] = {std::nullopt, "1", "2", "value"};
  const auto& column = columns[choice / 7 % 4];
  const Values whole = ReadValues(text, type, column, kBuffers[2]);
  Require(ReadValues(text, type, column, kBuffers[0]) == whole);
  return 0;
}
