// Continuous queries that are kept under names, each with the stream that it is of: deleted with
// it, and part of its image.
#ifndef TIDEMARK_SERVER_WINDOW_SUBSCRIPTIONS_H_
#define TIDEMARK_SERVER_WINDOW_SUBSCRIPTIONS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace tidemark::server {

/// Of one request, as bytes: room for several hundred quantiles and a stream's longest name.
inline constexpr std::size_t kSubscriptionBytesMax = std::size_t{16} << 10;

/// Those of one stream: what is asked for, in bytes of the caller's, by name.
using StreamSubscriptions = std::map<std::string, std::string, std::less<>>;

struct Subscription {
  std::string name;
  std::string stream;
  std::string request;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_SUBSCRIPTIONS_H_
