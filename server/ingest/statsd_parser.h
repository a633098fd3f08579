// One line of StatsD or DogStatsD text, taken apart. Nothing is copied or allocated.
//
//   line      name ':' group (':' group)* fields          several groups: Telegraf's foo:1|c:200|ms
//   group     value (':' value)* '|' type ('|@' rate)?    several values: DogStatsD 1.1
//   type      c g ms h d s
//   fields    '|' field, in any order: '#' tag (',' tag)*, '@' rate of the last group, or another,
//             which is ignored: 'c:' container (1.2, 1.4), 'T' timestamp (1.3), 'e:' external data
//             (1.5), 'card:' cardinality (1.6), and whatever a newer sender adds
//   event     _e{title bytes,text bytes}:title|text...
//   check     _sc|name|status...
//
// In a line with several groups the fields follow the last one; all but the rate hold for all. The
// value of a set (s) is any text up to '|', colons included. Source: the StatsD and DogStatsD (1.0
// to 1.6) descriptions; that agent, too, takes fields in any order and skips those it does not
// know; statsd in Telegraf for several groups.
#ifndef TIDEMARK_SERVER_INGEST_STATSD_PARSER_H_
#define TIDEMARK_SERVER_INGEST_STATSD_PARSER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/ingest/decimal.h"

namespace tidemark::server {

enum class StatsdKind : std::uint8_t {
  kCounter,
  kGauge,
  kTimer,
  kHistogram,
  kDistribution,
  kSet,
  kEvent,
  kServiceCheck,
};
inline constexpr std::size_t kStatsdKinds = 8;
/// "counter", ...: the `kind` label.
std::string_view StatsdKindName(StatsdKind kind);

/// Why a line is none.
enum class StatsdError : std::uint8_t {
  kNone,
  kNoColon,
  kEmptyName,
  kNoType,
  kUnknownType,
  kNotANumber,
  kBadRate,
  kRepeatedField,
  kTooManyGroups,
  kBadEvent,
  kBadServiceCheck,
};
/// What was wrong and what was expected.
std::string_view StatsdErrorText(StatsdError error);

/// Fields that change nothing about what is taken in.
enum class StatsdField : std::uint8_t { kContainer, kTimestamp, kExternal, kCardinality, kOther };
inline constexpr std::size_t kStatsdFields = 5;
/// "container", ...: the `field` label.
std::string_view StatsdFieldName(StatsdField field);

struct StatsdGroup {
  StatsdKind kind;
  bool single;              ///< one value, which is `first`
  bool has_rate;            ///< a rate was given
  double first;             ///< 0 for sets
  double rate;              ///< of sampling: in (0, 1], 1 if not given
  std::string_view values;  ///< as written, with the colons between them
};

/// Views point into the line. Members are set by ParseStatsdLine only.
struct StatsdLine {
  /// More groups in a line than anyone sends.
  static constexpr std::size_t kGroupsMax = 16;

  std::string_view name;
  std::string_view tags;                                       ///< after '#', as written
  std::uint32_t fields_ignored;                                ///< of any kind
  std::array<std::uint32_t, kStatsdFields> fields_ignored_of;  ///< set if fields_ignored > 0
  std::uint32_t groups;                                        ///< 0 for an event or a check
  StatsdKind kind;  ///< of the first group, or kEvent, or kServiceCheck
  std::array<StatsdGroup, kGroupsMax> group;
};

/// `line` without its end; not empty. On success every value in `out` that should be a number is
/// one. Not checked: the characters of name and tags, see StatsdIdentity.
StatsdError ParseStatsdLine(std::string_view line, StatsdLine& out);

/// Calls f(value, text) for each number of a group that is no set.
template <typename F>
void ForEachNumber(const StatsdGroup& group, F&& f) {
  if (group.single) {
    f(group.first, group.values);
    return;
  }
  const char* p = group.values.data();
  const char* const end = p + group.values.size();
  for (;;) {
    double value = 0;
    const char* const stop = ParseDecimal(p, end, value);
    f(value, std::string_view(p, static_cast<std::size_t>(stop - p)));
    if (stop == end) return;
    p = stop + 1;  // the colon
  }
}

/// The name of the stream that name and tags stand for: `name`, or `name{key="value",...}` with the
/// tags sorted by key and value, doubles left out. A tag without a value is key="". Quotes and
/// backslashes in values get a backslash.
///
/// Appends to `out` and returns true; false if the name is empty or holds a control character, a
/// space, or one of { } " | , or a tag's key is empty or holds one of those or '='. UTF-8 is
/// checked by the sink.
bool StatsdIdentity(std::string_view name, std::string_view tags, std::string& out);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_INGEST_STATSD_PARSER_H_
