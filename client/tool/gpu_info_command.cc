#include "client/tool/gpu_info_command.h"

#include <algorithm>
#include <string>
#include <vector>

#include "client/tool/json.h"
#include "client/tool/text.h"
#include "gpu/sort/gl_devices.h"
#include "gpu/sort/sorter_factory.h"

namespace tidemark::tool {
namespace {

using sort::GlDevice;
using sort::GlDevices;
using sort::GlFeature;
using sort::GlSorterTrial;
using sort::SorterMeasurement;
using sort::SorterReport;

// What is known of the machine.
struct GpuInfo {
  GlDevices gl;
  std::vector<GlSorterTrial> sorters;
  SorterReport report;
};

const char* KindOf(const GlDevice& device) { return device.software ? "software" : "hardware"; }

std::string Kibibytes(std::size_t bytes) { return std::to_string(bytes / 1024) + " KiB"; }

std::string WhyChosen(const GlDevices& gl) {
  if (gl.chosen < 0) return "none can be used";
  const GlDevice& device = gl.devices[static_cast<std::size_t>(gl.chosen)];
  return device.name + (device.software
                            ? ": no hardware device opens, and a GL sorter that is asked "
                              "for by name takes software then; auto does not"
                            : ": the first hardware device that opens");
}

std::string DeviceText(const GlDevice& device) {
  Table table({device.name, KindOf(device)}, {false, false});
  if (!device.drm_file.empty()) table.Add({"file", device.drm_file});
  if (!device.error.empty()) {
    table.Add({"does not open", device.error});
    return table.ToString();
  }
  table.Add({"vendor", device.vendor});
  table.Add({"renderer", device.renderer});
  table.Add({"OpenGL", device.version + ", GLSL " + device.shading_language});
  table.Add({"tells of a reset", device.reports_reset ? "yes" : "no"});
  table.Add({"textures up to", std::to_string(device.texture_size_max) + " texels an edge, " +
                                   std::to_string(device.draw_buffers_max) + " render targets"});
  if (device.compute) {
    table.Add({"compute", Kibibytes(device.shared_bytes) + " shared memory, " +
                              std::to_string(device.invocations_max) + " invocations, " +
                              std::to_string(device.groups_max) + " groups, buffers of " +
                              Kibibytes(device.storage_block_bytes)});
  }
  for (const GlFeature& feature : device.features) {
    table.Add(
        {feature.name, std::string(feature.present ? "yes" : "no") + " (" + feature.use + ")"});
  }
  return table.ToString();
}

// Of the sorter's algorithms at that width and window.
bool IsBestOfSorter(const SorterMeasurement& row, const std::vector<SorterMeasurement>& rows) {
  return std::none_of(rows.begin(), rows.end(), [&](const SorterMeasurement& other) {
    return other.sorter == row.sorter && other.key_bits == row.key_bits &&
           other.window == row.window && other.keys_per_second > row.keys_per_second;
  });
}

std::string ToText(const GpuInfo& info) {
  std::string out;
  for (const GlDevice& device : info.gl.devices) out += DeviceText(device) + "\n";
  if (info.gl.devices.empty()) {
    out += "no device: " + (info.gl.error.empty() ? "EGL lists none" : info.gl.error) + "\n\n";
  }
  out += "used: " + WhyChosen(info.gl) + "\n\n";
  Table sorters({"sorter", "runs", "windows up to", ""}, {false, false, true, false});
  sorters.Add({"cpu", "yes", "", "measured by auto"});
  for (const GlSorterTrial& trial : info.sorters) {
    const bool runs = trial.window_max > 0;
    sorters.Add({trial.name, runs ? "yes" : "no", runs ? std::to_string(trial.window_max) : "",
                 !runs            ? trial.error
                 : trial.for_auto ? "measured by auto, on hardware"
                                  : "by name alone"});
  }
  out += sorters.ToString() + "\n";
  Table measured({"key bits", "window", "sorter", "algorithm", "keys/s", ""},
                 {true, true, false, false, true, false});
  for (const SorterMeasurement& row : info.report.measurements) {
    if (!IsBestOfSorter(row, info.report.measurements)) continue;  // JSON has the others
    measured.Add({std::to_string(row.key_bits), std::to_string(row.window), row.sorter,
                  row.algorithm, ShowRate(row.keys_per_second), row.chosen ? "chosen" : ""});
  }
  return out + measured.ToString() + "\nauto takes " + info.report.reason + "\n";
}

Json DeviceJson(const GlDevice& device) {
  Json features = Json::array();
  for (const GlFeature& feature : device.features) {
    features.push_back(
        {{"name", feature.name}, {"present", feature.present}, {"use", feature.use}});
  }
  return {{"name", device.name},
          {"kind", KindOf(device)},
          {"drm_file", device.drm_file},
          {"error", device.error},
          {"vendor", device.vendor},
          {"renderer", device.renderer},
          {"version", device.version},
          {"shading_language", device.shading_language},
          {"reports_reset", device.reports_reset},
          {"texture_size_max", device.texture_size_max},
          {"draw_buffers_max", device.draw_buffers_max},
          {"compute", device.compute},
          {"shared_bytes", device.shared_bytes},
          {"invocations_max", device.invocations_max},
          {"groups_max", device.groups_max},
          {"storage_block_bytes", device.storage_block_bytes},
          {"features", std::move(features)}};
}

Json ToJson(const GpuInfo& info) {
  Json devices = Json::array();
  for (const GlDevice& device : info.gl.devices) devices.push_back(DeviceJson(device));
  Json sorters = Json::array();
  sorters.push_back({{"name", "cpu"}, {"runs", true}, {"auto", true}});
  for (const GlSorterTrial& trial : info.sorters) {
    sorters.push_back({{"name", trial.name},
                       {"runs", trial.window_max > 0},
                       {"auto", trial.for_auto},
                       {"window_max", trial.window_max},
                       {"error", trial.error}});
  }
  Json measurements = Json::array();
  for (const SorterMeasurement& row : info.report.measurements) {
    measurements.push_back({{"key_bits", row.key_bits},
                            {"window", row.window},
                            {"sorter", row.sorter},
                            {"algorithm", row.algorithm},
                            {"keys_per_second", row.keys_per_second},
                            {"chosen", row.chosen}});
  }
  return {{"devices", std::move(devices)},
          {"error", info.gl.error},
          {"chosen", info.gl.chosen < 0 ? Json() : Json(info.gl.chosen)},
          {"why", WhyChosen(info.gl)},
          {"sorters", std::move(sorters)},
          {"measurements", std::move(measurements)},
          {"reason", info.report.reason}};
}

}  // namespace

int RunGpuInfo(bool software, bool json, const Environment& environment) {
  GpuInfo info;
  info.gl = sort::DescribeGlDevices();
  info.sorters = sort::TryGlSorters();
  sort::SorterOptions options;
  options.allow_software_gl = software;
  info.report = sort::MakeSorter(options).report;
  environment.out << (json ? Dump(ToJson(info)) + "\n" : ToText(info));
  return kDone;
}

}  // namespace tidemark::tool
