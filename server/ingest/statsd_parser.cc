#include "server/ingest/statsd_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace tidemark::server {
namespace {

const char* Find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, static_cast<std::size_t>(end - begin)));
}

std::string_view View(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// The type at p; moves p behind it.
bool ParseType(const char*& p, const char* end, StatsdKind& kind) {
  if (p == end) return false;
  switch (*p) {
    case 'm':
      if (end - p < 2 || p[1] != 's') return false;
      ++p;
      kind = StatsdKind::kTimer;
      break;
    case 'c':
      kind = StatsdKind::kCounter;
      break;
    case 'g':
      kind = StatsdKind::kGauge;
      break;
    case 'h':
      kind = StatsdKind::kHistogram;
      break;
    case 'd':
      kind = StatsdKind::kDistribution;
      break;
    case 's':
      kind = StatsdKind::kSet;
      break;
    default:
      return false;
  }
  ++p;
  return p == end || *p == '|' || *p == ':';
}

bool RateOk(double rate) { return rate > 0 && rate <= 1; }

// value (':' value)* '|' type ('|@' rate)?; moves p behind it.
StatsdError ParseGroup(const char*& p, const char* end, StatsdGroup& group) {
  const char* const begin = p;
  double first = 0;
  const char* bar = ParseDecimal(p, end, first);
  bool numbers = bar != nullptr && bar != end;
  bool single = true;
  while (numbers && *bar == ':') {
    double next = 0;
    bar = ParseDecimal(bar + 1, end, next);
    numbers = bar != nullptr && bar != end;
    single = false;
  }
  if (numbers && *bar != '|') numbers = false;
  if (!numbers) {
    bar = Find(begin, end, '|');
    if (bar == nullptr) return StatsdError::kNoType;
  }
  p = bar + 1;
  if (!ParseType(p, end, group.kind)) return StatsdError::kUnknownType;
  const bool set = group.kind == StatsdKind::kSet;
  if (!numbers && !set) return StatsdError::kNotANumber;
  group.values = View(begin, bar);
  group.single = single || set;
  group.first = set ? 0 : first;
  group.rate = 1;
  group.has_rate = false;
  if (end - p >= 2 && p[0] == '|' && p[1] == '@') {
    p = ParseDecimal(p + 2, end, group.rate);
    if (p == nullptr || !RateOk(group.rate)) return StatsdError::kBadRate;
    if (p != end && *p != '|' && *p != ':') return StatsdError::kBadRate;
    group.has_rate = true;
  }
  return StatsdError::kNone;
}

StatsdField FieldOf(std::string_view field) {
  if (field.starts_with("c:")) return StatsdField::kContainer;
  if (field.starts_with("e:")) return StatsdField::kExternal;
  if (field.starts_with("card:")) return StatsdField::kCardinality;
  if (field.size() > 1 && field[0] == 'T' &&
      field.find_first_not_of("0123456789", 1) == std::string_view::npos) {
    return StatsdField::kTimestamp;
  }
  return StatsdField::kOther;
}

// The fields after the last group. Two of a kind that matters are refused, as either could be
// meant.
StatsdError ParseFields(const char* p, const char* end, StatsdLine& out) {
  StatsdGroup& last = out.group[out.groups - 1];
  bool tags_seen = false;
  out.fields_ignored_of = {};
  while (p != end) {
    // *p is '|': groups and fields end there.
    const char* const begin = p + 1;
    p = Find(begin, end, '|');
    if (p == nullptr) p = end;
    const std::string_view field = View(begin, p);
    if (field.starts_with('#')) {
      if (std::exchange(tags_seen, true)) return StatsdError::kRepeatedField;
      out.tags = field.substr(1);
    } else if (field.starts_with('@')) {
      if (std::exchange(last.has_rate, true)) return StatsdError::kRepeatedField;
      if (ParseDecimal(begin + 1, p, last.rate) != p || !RateOk(last.rate)) {
        return StatsdError::kBadRate;
      }
    } else {
      ++out.fields_ignored;
      ++out.fields_ignored_of[static_cast<std::size_t>(FieldOf(field))];
    }
  }
  return StatsdError::kNone;
}

// _e{title bytes,text bytes}:title|text...
bool EventOk(std::string_view line) {
  const char* const end = line.data() + line.size();
  std::size_t title = 0;
  std::size_t text = 0;
  const auto [comma, error] = std::from_chars(line.data() + 3, end, title);
  if (error != std::errc() || comma == end || *comma != ',') return false;
  const auto [brace, error2] = std::from_chars(comma + 1, end, text);
  if (error2 != std::errc() || end - brace < 2 || brace[0] != '}' || brace[1] != ':') return false;
  const char* const body = brace + 2;
  const auto left = static_cast<std::size_t>(end - body);
  if (title == 0 || title >= left || body[title] != '|') return false;
  const std::size_t after = left - title - 1;
  return text <= after && (text == after || body[title + 1 + text] == '|');
}

// _sc|name|status...
bool ServiceCheckOk(std::string_view line) {
  const std::size_t bar = line.find('|', 4);
  if (bar == std::string_view::npos || bar == 4 || bar + 1 >= line.size()) return false;
  const char status = line[bar + 1];
  return status >= '0' && status <= '3' && (bar + 2 == line.size() || line[bar + 2] == '|');
}

bool KeyOk(std::string_view text, std::string_view forbidden) {
  if (text.empty()) return false;
  return std::none_of(text.begin(), text.end(), [forbidden](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 127 || forbidden.find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string_view StatsdKindName(StatsdKind kind) {
  static constexpr std::array<std::string_view, kStatsdKinds> kNames = {
      "counter", "gauge", "timer", "histogram", "distribution", "set", "event", "service_check"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view StatsdFieldName(StatsdField field) {
  static constexpr std::array<std::string_view, kStatsdFields> kNames = {
      "container", "timestamp", "external", "cardinality", "other"};
  return kNames[static_cast<std::size_t>(field)];
}

std::string_view StatsdErrorText(StatsdError error) {
  switch (error) {
    case StatsdError::kNone:
      return "no error";
    case StatsdError::kNoColon:
      return "no ':' after the name; expected name:value|type";
    case StatsdError::kEmptyName:
      return "the name is empty; expected name:value|type";
    case StatsdError::kNoType:
      return "no '|' after the value; expected name:value|type";
    case StatsdError::kUnknownType:
      return "unknown type; expected c, g, ms, h, d or s";
    case StatsdError::kNotANumber:
      return "the value is no number";
    case StatsdError::kBadRate:
      return "bad sampling rate; expected @ and a number above 0, at most 1";
    case StatsdError::kRepeatedField:
      return "a field comes twice; expected #tags and @rate once each";
    case StatsdError::kTooManyGroups:
      return "more than 16 values with types in one line";
    case StatsdError::kBadEvent:
      return "bad event; expected _e{title bytes,text bytes}:title|text";
    case StatsdError::kBadServiceCheck:
      return "bad service check; expected _sc|name|status with status 0 to 3";
  }
  return "unknown error";
}

StatsdError ParseStatsdLine(std::string_view line, StatsdLine& out) {
  const char* p = line.data();
  const char* const end = p + line.size();
  out.tags = {};
  out.fields_ignored = 0;
  out.groups = 0;
  if (line.size() > 3 && p[0] == '_') {
    if (p[1] == 'e' && p[2] == '{') {
      out.kind = StatsdKind::kEvent;
      return EventOk(line) ? StatsdError::kNone : StatsdError::kBadEvent;
    }
    if (p[1] == 's' && p[2] == 'c' && p[3] == '|') {
      out.kind = StatsdKind::kServiceCheck;
      return ServiceCheckOk(line) ? StatsdError::kNone : StatsdError::kBadServiceCheck;
    }
  }
  const char* const colon = Find(p, end, ':');
  if (colon == nullptr) return StatsdError::kNoColon;
  if (colon == p) return StatsdError::kEmptyName;
  out.name = View(p, colon);
  p = colon;
  do {
    ++p;
    if (out.groups == StatsdLine::kGroupsMax) return StatsdError::kTooManyGroups;
    if (const StatsdError error = ParseGroup(p, end, out.group[out.groups]);
        error != StatsdError::kNone) {
      return error;
    }
    ++out.groups;
  } while (p != end && *p == ':');
  out.kind = out.group[0].kind;
  return p == end ? StatsdError::kNone : ParseFields(p, end, out);
}

bool StatsdIdentity(std::string_view name, std::string_view tags, std::string& out) {
  constexpr std::string_view kForbidden = "{}\"|,";
  constexpr std::string_view kForbiddenInKeys = "{}\"|,=";
  if (!KeyOk(name, kForbidden)) return false;
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!tags.empty()) {
    const std::size_t comma = std::min(tags.find(','), tags.size());
    const std::string_view tag = tags.substr(0, comma);
    tags.remove_prefix(std::min(comma + 1, tags.size()));
    if (tag.empty()) continue;
    const std::size_t colon = std::min(tag.find(':'), tag.size());
    const std::string_view key = tag.substr(0, colon);
    if (!KeyOk(key, kForbiddenInKeys)) return false;
    pairs.emplace_back(key, tag.substr(std::min(colon + 1, tag.size())));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  out += name;
  if (pairs.empty()) return true;
  char separator = '{';
  for (const auto& [key, value] : pairs) {
    out += separator;
    separator = ',';
    out += key;
    out += "=\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  out += '}';
  return true;
}

}  // namespace tidemark::server
