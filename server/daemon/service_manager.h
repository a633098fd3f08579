// Tells the service manager how far the daemon is: systemd's Type=notify.
//
// Source: sd_notify(3). A message is one datagram to the AF_UNIX socket that the environment
// variable NOTIFY_SOCKET names: a path, or '@' and a name in the abstract namespace. libsystemd is
// not needed for that.
#ifndef TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_
#define TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

namespace tidemark::server {

/// How often to say Alive, from the environment's WATCHDOG_USEC and WATCHDOG_PID (null: not set): a
/// quarter of the time after which the manager takes silence for a fault, so that three in a row
/// may be late. nullopt: nobody listens, or it is another process (sd_watchdog_enabled(3)) than
/// `self` that is meant. What makes no sense is logged.
std::optional<std::chrono::microseconds> WatchdogInterval(const char* usec, const char* pid,
                                                          pid_t self);

/// Thread: one. Without an address every method does nothing. A message that cannot be sent is
/// logged, and the daemon goes on: the manager's own timeout decides what it makes of the silence.
class ServiceManager {
 public:
  /// `address`: the value of NOTIFY_SOCKET; null or empty where there is no manager to tell.
  explicit ServiceManager(const char* address) : address_(address == nullptr ? "" : address) {}

  void Ready() const { Tell("READY=1"); }
  /// Ready is to follow, whether or not the new configuration was taken.
  void Reloading() const;
  void Stopping() const { Tell("STOPPING=1"); }
  /// So long from now on may the stop take, whatever its configuration says (TimeoutStopSec).
  void Extend(std::chrono::seconds time) const;
  /// Only while the daemon does its work (progress_check.h).
  void Alive() const { Tell("WATCHDOG=1"); }

 private:
  void Tell(const std::string& message) const;

  const std::string address_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_
