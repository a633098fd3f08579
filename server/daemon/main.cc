// tidemarkd: reads the settings, runs the daemon until SIGTERM or SIGINT.
//
// Exit status: 0 done, 1 the daemon could not start or not save what it took in, 2 the settings are
// wrong.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "server/config/config.h"
#include "server/config/settings.h"
#include "server/daemon/access_settings.h"
#include "server/daemon/daemon.h"
#include "server/daemon/service_manager.h"
#include "server/telemetry/log.h"
#include "server/threads/thread_role.h"

namespace tidemark::server {
namespace {

timespec Until(std::chrono::steady_clock::time_point then,
               std::chrono::steady_clock::time_point now) {
  const auto left = std::max(std::chrono::nanoseconds(0),
                             std::chrono::duration_cast<std::chrono::nanoseconds>(then - now));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  return {.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
}

// Tells the watchdog, unless something has not moved since it was told before; `stalled`: whether
// that is so, logged when it changes.
void TellAlive(Daemon& daemon, const ServiceManager& manager, bool& stalled) {
  const std::string what = daemon.Stalled();
  if (what.empty()) {
    manager.Alive();
    if (stalled) Log(LogLevel::kInfo, "it goes on; the watchdog is told again");
  } else if (!stalled) {
    Log(LogLevel::kError, "the watchdog is not told", {{"reason", what}});
  }
  stalled = !what.empty();
}

// As many descriptors as the system lets the process have: the usual 1,024 are for programs that
// use select(), and fewer than the limits of connections.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Ends the process at once, by the signal itself, so that whoever waits for it sees which. The
// kernel keeps the default action of a signal from the first process of a container.
void EndBySignal(int number) {
  raise(number);
  constexpr int kShellStatus = 128;
  _exit(kShellStatus + number);
}

void LetSignalsEnd() {
  struct sigaction action {};
  action.sa_handler = EndBySignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int number : {SIGTERM, SIGINT, SIGALRM}) sigaction(number, &action, nullptr);
}

int Main(int argc, char** argv) {
  const EnvLookup env = [](const char* name) -> const char* { return std::getenv(name); };
  const absl::StatusOr<ParsedArgs> args = ParseCommandLine(argc, argv, env);
  if (!args.ok()) {
    std::cerr << args.status().message() << "\n";
    return 2;
  }
  if (args->action == ParsedArgs::Action::kRun || args->check_config) {
    if (const std::string fault = CheckDataFolder(args->config); !fault.empty()) {
      std::cerr << fault << "\n";
      return 2;
    }
    constexpr std::int64_t kMicros = 1'000'000;
    const auto access = LoadAccess(args->config, std::time(nullptr) * kMicros);
    if (!access.ok()) {
      std::cerr << access.status().message() << "\n";
      return 2;
    }
    if (args->check_config) {
      for (const std::string& one : access->warnings) std::cerr << "warning: " << one << "\n";
    }
  }
  if (args->action == ParsedArgs::Action::kPrintAndExit) {
    std::cout << args->text;
    return args->exit_code;
  }
  SetUpLog(ParseLogLevel(args->config.log.level).value_or(LogLevel::kInfo),
           ParseLogFormat(args->config.log.format).value_or(LogFormat::kText));

  RaiseDescriptorLimit();
  // gRPC's threads inherit it; those that take values in or sort them say otherwise.
  EnterThreadRole(ThreadRole::kAnswers, {});
  // Blocked before any thread starts, so that every thread inherits it and only sigtimedwait sees
  // these signals.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const auto reread = [argc, argv, env]() -> absl::StatusOr<Config> {
    absl::StatusOr<ParsedArgs> again = ParseCommandLine(argc, argv, env);
    if (!again.ok()) return again.status();
    return std::move(again->config);
  };
  const auto remove_ports_file = [&path = args->config.daemon.ports_file] {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove(path, ignored);
  };
  // One of an earlier run must not be taken for this one's.
  remove_ports_file();
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(args->config, reread);
  if (!daemon.ok()) {
    std::cerr << "tidemarkd: " << daemon.status().message() << "\n";
    return 1;
  }
  if (const std::string& path = args->config.daemon.ports_file; !path.empty()) {
    if (const absl::Status status = WritePortsFile(path, (*daemon)->endpoints()); !status.ok()) {
      std::cerr << "tidemarkd: " << status.message() << "\n";
      return 1;
    }
  }
  Log(LogLevel::kInfo, "ready");
  const ServiceManager manager(env("NOTIFY_SOCKET"));
  manager.Ready();

  // Neither steps with the wall clock.
  using SteadyClock = std::chrono::steady_clock;
  const auto pings = WatchdogInterval(env("WATCHDOG_USEC"), env("WATCHDOG_PID"), getpid());
  SteadyClock::time_point next_tick = SteadyClock::now() + Daemon::kTick;
  SteadyClock::time_point next_ping = pings ? SteadyClock::now() : SteadyClock::time_point::max();
  bool stalled = false;
  while (true) {
    const timespec wait = Until(std::min(next_tick, next_ping), SteadyClock::now());
    const int number = sigtimedwait(&signals, nullptr, &wait);
    if (number == SIGHUP) {
      manager.Reloading();
      // A refused reload is logged there and changes nothing.
      (*daemon)->Reload().IgnoreError();
      manager.Ready();
    } else if (number == SIGTERM || number == SIGINT) {
      Log(LogLevel::kInfo, "shutting down", {{"signal", number == SIGTERM ? "TERM" : "INT"}});
      manager.Stopping();
      // A second one ends the process at once. Not SIGHUP: whoever renews certificates or rotates
      // logs does not know of the shutdown.
      LetSignalsEnd();
      sigdelset(&signals, SIGHUP);
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      // The drain keeps to the deadline by itself; should something hang, SIGALRM ends the process.
      constexpr std::uint64_t kGraceSeconds = 5;
      alarm(static_cast<unsigned>(args->config.daemon.shutdown_deadline_s + kGraceSeconds));
      // What only the last snapshot has is not given up as soon.
      const auto saving = [&manager] {
        constexpr std::chrono::seconds kSaving{600};
        manager.Extend(kSaving);
        alarm(static_cast<unsigned>(kSaving.count()));
      };
      // It says "ready", and the ports may soon be somebody else's.
      remove_ports_file();
      return (*daemon)->Shutdown(saving).ok() ? 0 : 1;
    }
    // Also where one signal follows another.
    const SteadyClock::time_point now = SteadyClock::now();
    if (now >= next_tick) {
      (*daemon)->Tick();
      next_tick = now + Daemon::kTick;
    }
    if (now >= next_ping) {
      // Who was stopped, or whose machine was, has not had the time to go on: its state is asked
      // for, and judged at the next.
      if (now - next_ping > *pings) {
        (*daemon)->Stalled();
        manager.Alive();
      } else {
        TellAlive(**daemon, manager, stalled);
      }
      next_ping = now + *pings;
    }
  }
}

}  // namespace
}  // namespace tidemark::server

int main(int argc, char** argv) { return tidemark::server::Main(argc, argv); }
