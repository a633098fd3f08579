// Crowds beside a client who asks: thousands of connections that are idle, that send a byte now and
// then, that never end their handshake or never read; and what they cost the daemon.
//
//   crowd_bench                  every scene with its whole crowd; about half an hour
//   crowd_bench idle-tcp deaf    these only
//   crowd_bench --smoke          every scene with a small crowd, for a moment
//
// Each round of a scene asks of the same daemon, 500 queries a second at fixed times: with nobody
// else there, while the crowd comes, beside it, and, if the daemon ends it, until it has ended all.
// Prints Markdown: medians over the rounds, least and greatest, ratios; at the end all scenes
// together, and which are beyond the aim: beside the crowd and while it ends. Of its coming, ten
// thousand connections as fast as they can be made, the ratio is told. Exit status 1: the daemon
// did not answer, end or count what it should, a member costs more memory than it may, or memory
// grew by more than it may while a crowd was there; and with --require also if something was beyond
// the aim.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "tests/bench/crowd_bench_crowd.h"
#include "tests/bench/crowd_bench_report.h"
#include "tests/bench/crowd_bench_scenes.h"
#include "tests/bench/service_bench_asker.h"
#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_report.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace tidemark::bench {
namespace {

using test::kPatience;
constexpr std::size_t kSmokeMembers = 50;
constexpr int kSmokeTimeout = 2;  // seconds, as below
// Seconds until somebody looks whether what is waited for has come.
constexpr double kAskedAtOnce = 0.25;
// For a crowd to come before the first of it are ended, as long as the daemon's default.
constexpr int kComingSeconds = 10;
// That a daemon has now and then beside those of a crowd.
constexpr std::size_t kOtherDescriptors = 8;
// For 10,000 handshakes of gRPC to begin.
constexpr int kPaceSeconds = 20;

struct Options {
  std::string tidemarkd;
  int rounds = 5;
  double seconds = 4;
  std::size_t members = 0;  // at most; 0: the scene's own
  bool smoke = false;
  bool require = false;
};

std::size_t MembersOf(const Scene& scene, const Options& options) {
  return options.members > 0 ? std::min(options.members, scene.members) : scene.members;
}

using Condition = std::function<bool()>;

class Asking {
 public:
  Asking(client::Client& client, const Options& options)
      : client_(client),
        options_(options),
        asker_(MayGoFirst() ? Asker::kFirst : Asker::kOrdinary) {}

  std::vector<double> For(double seconds) const {
    std::vector<double> calls;
    Ask(seconds, calls);
    return calls;
  }
  // In vain: throws.
  std::vector<double> Until(const std::string& what, const Condition& done) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::vector<double> calls;
    while (true) {
      Ask(std::min(kAskedAtOnce, options_.seconds), calls);
      if (done()) return calls;
      if (std::chrono::steady_clock::now() > end) throw std::runtime_error("in vain: " + what);
    }
  }

 private:
  void Ask(double seconds, std::vector<double>& calls) const {
    for (const Sample& sample : AskPaced(client_, kCrowdStream, seconds, asker_)) {
      calls.push_back(sample.overdue_us);  // of a stall everything that was due in it
    }
  }

  client::Client& client_;
  const Options& options_;
  const Asker asker_;
};

bool Comes(const Condition& done) { return test::WaitUntil(done, kPatience); }

void Wait(const std::string& what, const Condition& done) {
  if (!Comes(done)) throw std::runtime_error("in vain: " + what);
}

void Add(Section& section, const std::string& when, const std::vector<double>& calls) {
  section.Add(when + ", p50", "µs", Quantile(calls, 0.5));
  section.Add(when + ", p99", "µs", Quantile(calls, 0.99));
}

void Expect(Outcome& outcome, const std::string& what, double got, double most) {
  if (got <= most) return;
  outcome.faults.push_back(what + " is " + std::to_string(std::llround(got)) +
                           ", expected at most " + std::to_string(std::llround(most)));
}

void Run(const Scene& scene, const Options& options, const std::string& folder, Outcome& outcome) {
  const std::size_t members = MembersOf(scene, options);
  const auto all = static_cast<double>(members);
  Section& section = outcome.section;
  const Daemon daemon(options.tidemarkd, scene.flags);
  client::ClientOptions to{.server = daemon.grpc_address(), .deadline = kPatience};
  if (scene.tls_asker) to.tls_ca = folder + "/ca.pem";
  client::Client client(to);
  {
    client::Pusher pusher = client.Push(kCrowdStream);
    pusher.Write(std::vector<double>(1000, 1.0));
    pusher.Finish();
  }
  const Asking asking(client, options);
  asking.For(0.2);  // connects, warms up
  const double alone = daemon.ResidentBytes();
  const std::size_t usual = daemon.Descriptors();

  for (int round = 1; round <= options.rounds; ++round) {
    Wait("the end of the crowd before",
         [&] { return daemon.Descriptors() <= usual + kOtherDescriptors; });
    Add(section, kAlone, asking.For(options.seconds));
    Crowd crowd((daemon.*scene.port)(), members, scene.script);
    const Sight sight{daemon, crowd, scene.tls_metrics ? folder + "/ca.pem" : ""};
    Add(section, kComing, asking.Until("the crowd's answers", [&] { return crowd.IsThere(); }));
    if (!scene.refuses_some) {
      Wait("the crowd accepted", [&] {
        return daemon.Descriptors() + crowd.ended() + kOtherDescriptors >= usual + members;
      });
    }
    if (scene.seen) Wait("the crowd as it should be seen", [&] { return scene.seen(sight); });
    const double before = daemon.ResidentBytes();
    Add(section, kBeside, asking.For(options.seconds));
    const double after = daemon.ResidentBytes();
    section.Add("members there all the while", "", all - static_cast<double>(crowd.ended()));

    section.Add("resident memory with the crowd", "MB", std::max(before, after) / 1e6);
    const double each = (std::max(before, after) - alone) / all;
    section.Add("resident memory for each member", "kB", each / 1e3);
    section.Add("growth while it is there", "MB", (after - before) / 1e6);
    Expect(outcome, "memory for each member, bytes", each,
           scene.bytes_max + scene.bytes_besides / all);
    Expect(outcome, "growth while it is there, bytes", after - before,
           scene.growth_max * all + scene.bytes_besides);
    // In the test run a crowd is given a second, which a busy machine takes.
    if (!scene.refuses_some && !(scene.ends_them && options.smoke)) {
      Expect(outcome, "members that the daemon has ended", static_cast<double>(crowd.ended()), 0);
    }
    if (scene.ends_them) {
      const Condition over = [&] { return crowd.ended() == members; };
      if (options.smoke) {
        Wait("the end of all", over);
      } else {
        asking.Until("the first end", [&] { return crowd.ended() > 0; });
        Add(section, kEnding, asking.Until("the end of all", over));
      }
      for (const std::string& sample : scene.counted) {
        double counted = 0;
        if (!Comes([&] { return (counted = sight.Metric(sample)) == all * round; })) {
          outcome.faults.push_back(sample + " is " + std::to_string(std::llround(counted)) +
                                   ", expected " + std::to_string(std::llround(all * round)));
        }
      }
    }
    if (scene.script.answer_bytes > 0 && !scene.refuses_some) {
      // A busy machine may leave some without any answer until they are ended.
      section.Add("members that were answered", "", static_cast<double>(crowd.settled()));
      if (crowd.settled() == 0) outcome.faults.push_back("no member was answered");
      Expect(outcome, "members with another answer", static_cast<double>(crowd.misanswered()), 0);
    }
  }
  AddRatios(section);
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
  CLI::Option* const smoke =
      app.add_flag("--smoke", options.smoke, "one round, small crowds, fractions of a second");
  app.add_flag("--require", options.require, "fail if a ratio is beyond the aim")->excludes(smoke);
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
    std::vector<Outcome> outcomes;
    const int timeout_s = options.smoke
                              ? kSmokeTimeout
                              : kComingSeconds + static_cast<int>(std::ceil(options.seconds));
    const int pace_s = options.smoke ? 0 : kPaceSeconds;
    for (const Scene& scene : Scenes(folder.path(), timeout_s, pace_s)) {
      if (!chosen.empty() && std::find(chosen.begin(), chosen.end(), scene.name) == chosen.end()) {
        continue;
      }
      Outcome& outcome = outcomes.emplace_back(Outcome{
          scene.name, Section(scene.name + ": " + std::to_string(MembersOf(scene, options)) + " " +
                              scene.what)});
      try {
        Run(scene, options, folder.path(), outcome);
      } catch (const std::exception& error) {
        outcome.faults.push_back(error.what());
      }
      outcome.section.Print();
    }
    if (outcomes.empty()) throw std::runtime_error("no such scene: " + chosen.front());
    PrintSummary(outcomes, !options.smoke);
    return std::any_of(outcomes.begin(), outcomes.end(),
                       [&](const Outcome& outcome) {
                         return !outcome.faults.empty() ||
                                (options.require && !Slow(outcome).empty());
                       })
               ? 1
               : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "crowd_bench: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
