#include "server/http/routes.h"

#include <algorithm>
#include <array>
#include <exception>

namespace tidemark::server {
namespace {

constexpr std::string_view kIndex =
    "<!doctype html>\n<html lang=\"en\"><title>Tidemark</title>\n<h1>Tidemark</h1>\n<ul>\n"
    "<li><a href=\"/metrics\">/metrics</a>: what Prometheus scrapes\n"
    "<li><a href=\"/-/healthy\">/-/healthy</a>: 200 while the process serves\n"
    "<li><a href=\"/-/ready\">/-/ready</a>: 200 when it takes values, 503 and the reason "
    "otherwise\n"
    "<li>POST /-/reload: reads the configuration anew\n</ul></html>\n";

HttpAnswer Index(const HttpCallbacks&) {
  return {.content_type = "text/html; charset=utf-8", .body = std::string(kIndex)};
}

HttpAnswer MetricsPage(const HttpCallbacks& callbacks) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = callbacks.metrics()};
}

HttpAnswer Healthy(const HttpCallbacks&) { return {.body = "healthy\n"}; }

HttpAnswer Ready(const HttpCallbacks& callbacks) {
  if (const std::optional<std::string> why = callbacks.not_ready()) {
    return {.code = 503, .body = "not ready: " + *why + "\n"};
  }
  return {.body = "ready\n"};
}

HttpAnswer Reload(const HttpCallbacks& callbacks) {
  const absl::Status status = callbacks.reload();
  if (!status.ok()) {
    return {.code = 500, .body = "not reloaded: " + std::string(status.message()) + "\n"};
  }
  return {.body = "reloaded\n"};
}

absl::Status Anybody(Caller& /*caller*/) { return absl::OkStatus(); }
absl::Status WhoMayQuery(Caller& caller) { return caller.MayOverAny(Role::kQuery); }
absl::Status WhoMayAll(Caller& caller) { return caller.MayOverAll(Role::kAdmin); }

struct Route {
  std::string_view path;
  /// Reading routes take GET and HEAD, the others POST and PUT: a link cannot trigger them.
  bool reads;
  HttpAnswer (*answer)(const HttpCallbacks&);
  absl::Status (*may)(Caller&);
};

constexpr std::array kRoutes = {
    Route{"/", true, Index, Anybody},
    Route{"/metrics", true, MetricsPage, WhoMayQuery},
    Route{"/-/healthy", true, Healthy, Anybody},
    Route{"/-/ready", true, Ready, Anybody},
    Route{"/-/reload", false, Reload, WhoMayAll},
};

}  // namespace

HttpAnswer Answer(std::string_view method, std::string_view target, const HttpCallbacks& callbacks,
                  Caller& caller) {
  const std::string_view path = target.substr(0, target.find('?'));
  const auto* const route =
      std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& r) { return r.path == path; });
  if (route == kRoutes.end()) return {.code = 404, .body = "no such page\n"};
  const bool allowed =
      route->reads ? method == "GET" || method == "HEAD" : method == "POST" || method == "PUT";
  HttpAnswer answer;
  if (!allowed) {
    answer.code = 405;
    answer.allow = route->reads ? "GET, HEAD" : "POST, PUT";
    answer.body = "method not allowed: use " + std::string(route->reads ? "GET" : "POST") + "\n";
  } else if (const absl::Status may = route->may(caller); !may.ok()) {
    answer.challenge = absl::IsUnauthenticated(may);
    answer.code = answer.challenge ? 401 : 403;
    answer.body = std::string(may.message()) + "\n";
  } else {
    try {
      answer = route->answer(callbacks);
    } catch (const std::exception& error) {
      answer = {.code = 500, .body = "internal error: " + std::string(error.what()) + "\n"};
    }
  }
  answer.path = route->path;
  return answer;
}

}  // namespace tidemark::server
