// The service from outside: a tidemarkd process on this machine, senders and askers in this one.
//
//   service_bench                       every section; about six minutes
//   service_bench throughput latency    these only (throughput, udp, latency, memory,
//                                       durability)
//   service_bench --smoke               every section for a moment: does it run, is nothing lost
//   service_bench --json FILE           raw rounds too
//   service_bench --flag=--sort-workers=1    for the daemon; may be given again
//
// Prints Markdown: medians over the rounds, least and greatest. What is compared is measured one
// after the other within each round, because the same binary's rate differs up to twofold from one
// run to the next on a shared machine. Exit status 1: something failed or was lost where nothing
// may be; never because something was slow.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>

#include "tests/bench/service_bench_sections.h"

namespace {

using tidemark::bench::Options;
using tidemark::bench::Section;

struct Named {
  const char* name;
  Section (*run)(const Options&);
  // Latency needs enough queries for a p99 in each round.
  double seconds;
};
constexpr Named kSections[] = {
    {"throughput", tidemark::bench::Throughput, 1.0}, {"udp", tidemark::bench::StatsdUdp, 3.0},
    {"latency", tidemark::bench::Latency, 4.0},       {"memory", tidemark::bench::Memory, 0},
    {"durability", tidemark::bench::Durability, 2.0},
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures a tidemarkd process: values in, latency, memory");
  Options options;
  options.tidemarkd =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tidemarkd").string();
  std::vector<std::string> chosen;
  std::string json;
  double seconds = 0;
  app.add_option("section", chosen,
                 "throughput, udp, latency, memory, durability; all if none is given")
      ->check(CLI::IsMember({"throughput", "udp", "latency", "memory", "durability"}));
  app.add_option("--folder", options.folder,
                 "of durability: on the disk that is asked about (default: the temporary folder)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--tidemarkd", options.tidemarkd, "the program to measure")
      ->check(CLI::ExistingFile);
  app.add_option("--flag", options.daemon_flags, "a flag for it")->expected(1)->take_all();
  app.add_option("--rounds", options.rounds, "rounds of each section")->check(CLI::PositiveNumber);
  app.add_option("--seconds", seconds, "length of one measurement; 0: each section's own")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--smoke", options.smoke, "one round, fractions of a second");
  app.add_option("--only", options.only, "of throughput: only figures whose name holds this text");
  app.add_option("--json", json, "file for the raw rounds");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.rounds = 1;
    seconds = 0.1;
  }

  try {
    std::printf("# service_bench\n\n");
    for (const std::string& line : tidemark::bench::DescribeMachine()) {
      std::printf("- %s\n", line.c_str());
    }
    std::vector<Section> sections;
    for (const Named& one : kSections) {
      if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), one.name) == chosen.end()) {
        continue;
      }
      Options of = options;
      of.seconds = seconds > 0 ? seconds : one.seconds;
      sections.push_back(one.run(of));
      sections.back().Print();
    }
    if (!json.empty()) tidemark::bench::WriteJson(json, sections);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "service_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
