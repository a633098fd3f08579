// Crowds beside a client who asks: thousands of connections that are idle, that send a byte now and
// then, that never end their handshake or never read; and what they cost the daemon.
//
//   crowd_bench                  every scene with its whole crowd; about fifteen minutes
//   crowd_bench idle-tcp deaf    these only
//   crowd_bench --smoke          every scene with a small crowd, for a moment
//
// Each round of a scene asks first with nobody else there and then beside the crowd, of the same
// daemon: 500 queries a second at fixed times. Prints Markdown: medians over the rounds, least and
// greatest, the ratio of the 99th percentiles within each round. Exit status 1: the daemon did not
// count or end what it should, a member costs more memory than it may, or memory grew while a crowd
// sent nothing new; never because something was slow.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/bench/crowd_bench_crowd.h"
#include "tests/bench/crowd_bench_scenes.h"
#include "tests/bench/service_bench_asker.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_report.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"

namespace tidemark::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr std::size_t kSmokeMembers = 50;
// What a daemon's memory may do by itself meanwhile: buffers of threads, pages of its allocator.
constexpr double kSlackBytes = 12e6;

struct Options {
  std::string tidemarkd;
  int rounds = 5;
  double seconds = 4;
  std::size_t members = 0;  // at most; 0: the scene's own
  bool smoke = false;
};

struct Figures {
  double p50 = 0;
  double p99 = 0;
};
Figures Ask(client::Client& client, const Options& options, Asker asker) {
  std::vector<double> calls;
  for (const Sample& sample : AskPaced(client, kCrowdStream, options.seconds, asker)) {
    calls.push_back(sample.call_us);
  }
  return {Quantile(calls, 0.5), Quantile(calls, 0.99)};
}

void Wait(const std::string& what, const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("in vain: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Expect(const Scene& scene, const std::string& what, double got, double most) {
  if (got <= most) return;
  throw std::runtime_error(scene.name + ": " + what + " is " + std::to_string(got) +
                           ", expected at most " + std::to_string(most));
}

Section Run(const Scene& scene, const Options& options, const std::string& folder) {
  const std::size_t members =
      options.members > 0 ? std::min(options.members, scene.members) : scene.members;
  Section section(scene.name + ": " + std::to_string(members) + " " + scene.what);
  const Daemon daemon(options.tidemarkd, scene.flags);
  client::ClientOptions to{.server = daemon.grpc_address()};
  if (scene.tls_asker) to.tls_ca = folder + "/ca.pem";
  client::Client client(to);
  {
    client::Pusher pusher = client.Push(kCrowdStream);
    pusher.Write(std::vector<double>(1000, 1.0));
    pusher.Finish();
  }
  const Asker asker = MayGoFirst() ? Asker::kFirst : Asker::kOrdinary;
  AskPaced(client, kCrowdStream, 0.2, asker);  // connects, warms up
  const double alone = daemon.ResidentBytes();

  for (int round = 0; round < options.rounds; ++round) {
    const Figures quiet = Ask(client, options, asker);
    Crowd crowd((daemon.*scene.port)(), members, scene.script);
    const Sight sight{daemon, crowd};
    if (!crowd.WaitUntilSettled(kPatience)) {
      throw std::runtime_error(scene.name + ": " + std::to_string(crowd.settled()) +
                               " were answered, " + std::to_string(crowd.ended()) + " ended");
    }
    if (scene.seen)
      Wait(scene.name + ": the crowd as it should be seen", [&] { return scene.seen(sight); });
    const double before = daemon.ResidentBytes();
    const Figures beside = Ask(client, options, asker);
    const double after = daemon.ResidentBytes();
    if (scene.ends_them && round + 1 == options.rounds) {
      Wait(scene.name + ": the end of all", [&] { return crowd.ended() == members; });
      if (scene.ended) Wait(scene.name + ": its count", [&] { return scene.ended(sight); });
    }

    section.Add("alone, p50", "µs", quiet.p50);
    section.Add("alone, p99", "µs", quiet.p99);
    section.Add("beside the crowd, p50", "µs", beside.p50);
    section.Add("beside the crowd, p99", "µs", beside.p99);
    section.Add("resident memory with the crowd", "MB", std::max(before, after) / 1e6);
    const double each = (std::max(before, after) - alone) / static_cast<double>(members);
    section.Add("resident memory for each member", "kB", each / 1e3);
    section.Add("growth while it is there", "MB", (after - before) / 1e6);
    Expect(scene, "memory for each member, bytes", each,
           scene.bytes_max + kSlackBytes / static_cast<double>(members));
    // What ends by itself may still be beginning: handshakes take their time.
    if (!scene.ends_them && scene.script.flood.empty()) {
      Expect(scene, "growth while it does nothing, bytes", after - before, kSlackBytes);
    }
  }
  section.AddRatio("p50: beside / alone", "beside the crowd, p50", "alone, p50", "");
  section.AddRatio("p99: beside / alone", "beside the crowd, p99", "alone, p99", "at most 2");
  return section;
}

int Main(int argc, char** argv) {
  CLI::App app("Measures a tidemarkd process beside crowds of clients");
  Options options;
  options.tidemarkd =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tidemarkd").string();
  std::vector<std::string> chosen;
  app.add_option("scene", chosen, "names of scenes; all if none is given");
  app.add_option("--tidemarkd", options.tidemarkd, "the program to measure")
      ->check(CLI::ExistingFile);
  app.add_option("--rounds", options.rounds, "rounds of each scene")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "of asking, each time")->check(CLI::PositiveNumber);
  app.add_option("--members", options.members, "of a crowd at most; 0: each scene's own");
  app.add_flag("--smoke", options.smoke, "one round, small crowds, fractions of a second");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.rounds = 1;
    options.seconds = 0.1;
    options.members = kSmokeMembers;
  }

  try {
    const test::TemporaryFolder folder;
    const auto authority = test::TestCertificate::Authority("crowd_bench");
    const auto server = authority.Sign(
        {.common_name = "localhost", .alternative_names = "DNS:localhost,IP:127.0.0.1"});
    folder.Write("ca.pem", authority.certificate());
    folder.Write("server.pem", server.certificate());
    std::filesystem::permissions(folder.Write("server.key", server.key()),
                                 std::filesystem::perms::owner_read);
    const std::size_t descriptors = RaiseDescriptorLimit();
    std::printf("# crowd_bench\n\n");
    for (const std::string& line : DescribeMachine()) std::printf("- %s\n", line.c_str());
    std::printf("- %zu descriptors for each process\n", descriptors);
    std::size_t ran = 0;
    std::size_t faults = 0;
    for (const Scene& scene :
         Scenes(folder.path(), options.smoke ? 1 : static_cast<int>(2 * options.seconds))) {
      if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), scene.name) == chosen.end()) {
        continue;
      }
      ++ran;
      try {
        Run(scene, options, folder.path()).Print();
      } catch (const std::exception& error) {
        std::printf("\n**%s**\n", error.what());
        ++faults;
      }
      std::fflush(stdout);
    }
    if (ran == 0) throw std::runtime_error("no such scene: " + chosen.front());
    return faults == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "crowd_bench: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
