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
                       std::optional<std::string> column, std::size_t buffer_bytes,
                       std::optional<std::string> payload_column)
    : source_(source),
      type_(type),
      column_(std::move(column)),
      payload_column_(std::move(payload_column)),
      lines_(source, column_.has_value(), buffer_bytes) {
  if (!column_) {
    if (payload_column_) throw InputError("a column of weights or y needs --column for the values");
    return;
  }
  index_ = NumberOf(*column_);
  if (payload_column_) payload_index_ = NumberOf(*payload_column_);
}

// nullopt for a column that is given by its name.
std::optional<std::size_t> TextValues::NumberOf(const std::string& column) {
  std::uint32_t number = 0;
  if (!client::ParseText(column, &number)) return std::nullopt;
  if (number == 0) throw InputError("columns are counted from 1");
  return number - 1;
}

std::size_t TextValues::Resolve(std::string_view header, const std::string& column) const {
  if (const auto index = FindCsvField(header, column)) return *index;
  throw InputError(source_->name() + ":" + std::to_string(line_number()) + ": no column \"" +
                   column + "\" in the header " + Printable(header.substr(0, kShownBytes)));
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
  if (!index_ || (payload_column_ && !payload_index_)) {
    if (!index_) index_ = Resolve(record, *column_);
    if (payload_column_ && !payload_index_) payload_index_ = Resolve(record, *payload_column_);
    return false;
  }
  if (payload_index_) {
    payload_ = Trim(CsvField(record, *payload_index_, &payload_scratch_).value_or(""));
  }
  const auto field = CsvField(record, *index_, &scratch_);
  column_missing_ = !field;
  *text = field.value_or(std::string_view());
  if (type_ != client::ValueType::kString) *text = Trim(*text);
  const bool header =
      field && (!client::ParseValue(type_, *text) ||
                (payload_index_ && !client::ParseValue(client::ValueType::kFloat64, payload_)));
  return !(first && header);
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
  if (client::Ipv4 short_address;
      type_ == client::ValueType::kIpv6 && client::ParseText(text, &short_address)) {
    message += " (as one, it is written ::ffff:" + std::string(text) + ")";
  }
  if (!column_ && text.find(',') != std::string_view::npos) {
    message += " (for CSV give --column)";
  }
  return message;
}

std::string TextValues::PayloadProblem(client::PayloadType type) const {
  const bool weight = type == client::PayloadType::kWeight;
  return source_->name() + ":" + std::to_string(line_number()) + ": \"" +
         Printable(payload_.substr(0, kShownBytes)) + "\" in column " + *payload_column_ +
         (weight ? " is no weight (a whole number, 0 to 2^64 - 1)" : " is no y (a float64)");
}

}  // namespace tidemark::tool
