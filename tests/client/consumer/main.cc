// A program of somebody else. No daemon runs here, so that the right answer is UNAVAILABLE.
#include <tidemark/client/client.h>

#include <iostream>

int main() try {
  tidemark::client::Client client({.server = "127.0.0.1:1"});
  std::cout << FormatValue(client.Quantiles("s", {0.5}).answers.at(0).value) << "\n";
  return 1;
} catch (const tidemark::client::Error& error) {
  std::cout << error.what() << "\n";
  return error.code() == tidemark::client::Code::kUnavailable ? 0 : 1;
}
