#include "server/sort/sorter_rates.h"

#include <xxhash.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/statusor.h"

namespace tidemark::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kName = "/sorter_rates.json";
// A few hundred rows of a hundred bytes; more is another file under this name.
constexpr std::size_t kBytesMax = std::size_t{1} << 20;

// Texts of drivers need not be UTF-8.
std::string Text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// The file's object, the rates, their rows, a row.
constexpr int kDepthMax = 4;
struct TooDeep {};

// Throws nlohmann's exceptions, as for another type, where it is no integer.
template <class Integer>
void GetInteger(const Json& json, const char* name, Integer& to) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) throw Json::type_error::create(302, name, &value);
  value.get_to(to);
}

std::string Checksum(const Json& rates) {
  const std::string text = Text(rates, -1);
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits.data();
}

Json ToJson(const sort::MeasuredRates& rates, std::string_view version) {
  Json rows = Json::array();
  for (const sort::SorterMeasurement& row : rates.rows) {
    rows.push_back({{"sorter", row.sorter},
                    {"algorithm", row.algorithm},
                    {"key_bits", row.key_bits},
                    {"window", row.window},
                    {"keys_per_second", row.keys_per_second}});
  }
  return {{"version", version},
          {"time_us", rates.at_us},
          {"cpu", rates.on.cpu},
          {"algorithms", rates.on.algorithms},
          {"gl_sorters", rates.on.gl_sorters},
          {"budget_ms", rates.on.budget_ms},
          {"rows", std::move(rows)}};
}

// Throws nlohmann's exceptions for what is missing or of another type.
sort::MeasuredRates FromJson(const Json& json) {
  sort::MeasuredRates rates;
  GetInteger(json, "time_us", rates.at_us);
  json.at("cpu").get_to(rates.on.cpu);
  json.at("algorithms").get_to(rates.on.algorithms);
  json.at("gl_sorters").get_to(rates.on.gl_sorters);
  GetInteger(json, "budget_ms", rates.on.budget_ms);
  for (const Json& row : json.at("rows")) {
    sort::SorterMeasurement& measured = rates.rows.emplace_back();
    row.at("sorter").get_to(measured.sorter);
    row.at("algorithm").get_to(measured.algorithm);
    GetInteger(row, "key_bits", measured.key_bits);
    GetInteger(row, "window", measured.window);
    row.at("keys_per_second").get_to(measured.keys_per_second);
  }
  return rates;
}

}  // namespace

std::string FormatSorterRates(const sort::MeasuredRates& rates, std::string_view version) {
  // As it is read back: a text that is not UTF-8 has changed by then.
  const Json body = Json::parse(Text(ToJson(rates, version), -1));
  const Json file = {{"format", kFormat}, {"checksum", Checksum(body)}, {"rates", body}};
  return Text(file, 1) + "\n";
}

KeptRates ParseSorterRates(std::string_view text, std::string_view version) {
  try {
    // Deeper than any file of rates: writing it again, for the checksum, would take a stack as
    // deep.
    const Json file = Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
      if (depth > kDepthMax) throw TooDeep();
      return true;
    });
    if (const int format = file.at("format").get<int>(); format != kFormat) {
      return {{}, "format " + std::to_string(format) + ", expected " + std::to_string(kFormat)};
    }
    const Json& body = file.at("rates");
    if (file.at("checksum").get<std::string>() != Checksum(body)) {
      return {{}, "it was changed: its checksum is of other rates"};
    }
    if (const auto of = body.at("version").get<std::string>(); of != version) {
      return {{}, "of Tidemark " + of + ", this is " + std::string(version)};
    }
    return {FromJson(body), ""};
  } catch (const TooDeep&) {
    return {{}, "it never was a file of rates"};
  } catch (const Json::exception&) {
    return {{}, "it is cut off, or never was a file of rates"};
  }
}

KeptRates ReadSorterRates(store::FileSystem& files, const std::string& folder,
                          std::string_view version) {
  const std::string path = folder + std::string(kName);
  const absl::StatusOr<std::string> text = files.Read(path, 0, kBytesMax + 1);
  if (absl::IsNotFound(text.status())) return {};
  KeptRates kept;
  if (!text.ok()) {
    return {{}, std::string(text.status().message())};
  } else if (text->size() > kBytesMax) {
    kept.refused = "it has more than " + std::to_string(kBytesMax) + " bytes";
  } else {
    kept = ParseSorterRates(*text, version);
  }
  if (!kept.refused.empty()) kept.refused = path + ": " + kept.refused;
  return kept;
}

absl::Status WriteSorterRates(store::FileSystem& files, const std::string& folder,
                              const sort::MeasuredRates& rates, std::string_view version) {
  const std::string path = folder + std::string(kName);
  const std::string temporary = path + ".tmp";
  files.Remove(temporary).IgnoreError();  // of a start that was interrupted, if there was one
  absl::StatusOr<std::unique_ptr<store::WritableFile>> file = files.Create(temporary);
  if (!file.ok()) return file.status();
  absl::Status status = (*file)->Write(0, FormatSorterRates(rates, version));
  if (status.ok()) status = (*file)->Sync();
  file->reset();
  if (status.ok()) status = files.Rename(temporary, path);
  if (!status.ok()) {
    files.Remove(temporary).IgnoreError();
    return status;
  }
  return files.SyncFolder(folder);
}

}  // namespace tidemark::server
