// What was measured of the sorters at an earlier start, in a file of the data folder, so that a
// start on an unchanged machine measures nothing.
//
// sorter_rates.json, JSON:
//   format    1
//   checksum  XXH3-64 of `rates` as nlohmann's dump() writes it, 16 hexadecimal digits
//   rates     version of Tidemark; time (microseconds since 1970); the machine (CPU, its
//   algorithms,
//             GL sorters with their devices and drivers, budget); a row for each measurement
// It is replaced as a whole: written beside its name, synced, renamed. Any other content is refused
// with one line and measured anew; whether the rates are of this machine is for the factory to see
// (gpu/sort/measured_rates.h).
#ifndef TIDEMARK_SERVER_SORT_SORTER_RATES_H_
#define TIDEMARK_SERVER_SORT_SORTER_RATES_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "gpu/sort/measured_rates.h"
#include "server/store/file_system.h"

namespace tidemark::server {

struct KeptRates {
  std::optional<sort::MeasuredRates> rates;
  /// Why a file that is there is not used; empty where there is none.
  std::string refused;
};

/// The file's text, and back. `version` is Tidemark's: another one may have other algorithms under
/// the same names.
std::string FormatSorterRates(const sort::MeasuredRates& rates, std::string_view version);
KeptRates ParseSorterRates(std::string_view text, std::string_view version);

/// Of a folder that exists. Never fails the start: what is wrong is in `refused`, with the path.
KeptRates ReadSorterRates(store::FileSystem& files, const std::string& folder,
                          std::string_view version);
/// Errors: the file system's; the file is then the old one, or, after a crash, either. Thread: one;
/// of two processes in one folder one may fail, and the file is whole or refused by its checksum.
absl::Status WriteSorterRates(store::FileSystem& files, const std::string& folder,
                              const sort::MeasuredRates& rates, std::string_view version);

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_SORT_SORTER_RATES_H_
