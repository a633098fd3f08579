#include "client/tool/text_values.h"

#include <utility>

#include "client/tool/arguments.h"
#include "client/tool/terminal.h"

namespace tidemark::tool {
namespace {

// As much of a bad text as a message shows.
constexpr std::size_t kShownBytes = 60;

}  // namespace

TextValues::TextValues(ByteSource* source, client::ValueType type,
                       std::optional<std::string> column, std::size_t buffer_bytes)
    : source_(source),
      type_(type),
      column_(std::move(column)),
      lines_(source, column_.has_value(), buffer_bytes) {
  std::uint32_t number = 0;
  if (!column_ || !client::ParseText(*column_, &number)) return;
  if (number == 0) throw InputError("columns are counted from 1");
  index_ = number - 1;
}

bool TextValues::Next(std::string_view* text) {
  std::string_view line;
  while (lines_.Next(&line)) {
    if (column_) {
      if (Trim(line).empty()) continue;
      if (NextField(line, text)) return true;
      continue;
    }
    if (type_ == client::ValueType::kString) {
      if (line.empty()) continue;
      *text = line;
      return true;
    }
    line = Trim(line);
    if (line.empty() || line[0] == '#') continue;
    *text = line;
    return true;
  }
  return false;
}

bool TextValues::NextField(std::string_view record, std::string_view* text) {
  const bool first = std::exchange(first_record_, false);
  if (!index_) {
    index_ = FindCsvField(record, *column_);
    if (!index_) {
      throw InputError(source_->name() + ":" + std::to_string(line_number()) + ": no column \"" +
                       *column_ + "\" in the header " + Printable(record.substr(0, kShownBytes)));
    }
    return false;
  }
  const auto field = CsvField(record, *index_, &scratch_);
  column_missing_ = !field;
  *text = field.value_or(std::string_view());
  if (type_ != client::ValueType::kString) *text = Trim(*text);
  return !(first && field && !client::ParseValue(type_, *text));
}

std::string TextValues::Problem(std::string_view text) const {
  const std::string place = source_->name() + ":" + std::to_string(line_number()) + ": ";
  if (column_missing_) return place + "has no column " + std::to_string(*index_ + 1);
  std::string message = place;
  message += '"';
  message += Printable(text.substr(0, kShownBytes));
  message += text.size() > kShownBytes ? "...\" is not " : "\" is not ";
  if (type_ == client::ValueType::kString) return message + "UTF-8";
  const std::string_view name = client::TypeName(type_);
  message += name[0] == 'i' ? "an " : "a ";
  message += name;
  if (!column_ && text.find(',') != std::string_view::npos) {
    message += " (for CSV give --column)";
  }
  return message;
}

}  // namespace tidemark::tool
