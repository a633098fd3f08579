// Tells the service manager how far the daemon is: systemd's Type=notify.
//
// Source: sd_notify(3). A message is one datagram to the AF_UNIX socket that the environment
// variable NOTIFY_SOCKET names: a path, or '@' and a name in the abstract namespace. libsystemd is
// not needed for that.
#ifndef TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_
#define TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_

#include <string>

namespace tidemark::server {

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

 private:
  void Tell(const std::string& message) const;

  const std::string address_;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_DAEMON_SERVICE_MANAGER_H_
