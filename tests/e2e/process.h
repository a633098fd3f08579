// Programs run by a test: started, watched, ended, none left behind.
#ifndef TIDEMARK_TESTS_E2E_PROCESS_H_
#define TIDEMARK_TESTS_E2E_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"
#include "tests/support/wait_until.h"

namespace tidemark::test {

std::string ReadFile(const std::string& path);

struct Launch {
  std::string program;
  std::vector<std::string> arguments;
  /// Added to this process's environment, from which all TIDEMARK_ variables are taken out.
  std::map<std::string, std::string> environment = {};
  /// What it reads as standard input; unset: nothing.
  std::optional<std::string> input = std::nullopt;
  /// Reads this file as standard input, instead of `input`.
  std::string input_path = {};
};

/// One child in a process group of its own. It dies with the thread that started it, and the
/// destructor kills it and whatever it started.
/// Thread: one. Errors: throws std::runtime_error if it cannot be started.
class Process {
 public:
  explicit Process(const Launch& launch);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void Signal(int number);
  /// Its exit status, 128 + the signal that ended it, or nullopt if it still runs after `patience`.
  std::optional<int> Wait(std::chrono::milliseconds patience = kPatience);
  /// Nothing of its process group is left. REQUIRES: Wait gave a status.
  bool NothingLeft() const;

  std::string out() const { return ReadFile(folder_ / "out"); }
  std::string err() const { return ReadFile(folder_ / "err"); }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

/// The program of that name in PATH; "" if there is none.
std::string FindProgram(const std::string& name);

struct Completed {
  int status = -1;  ///< -1: it did not end in time and was killed
  std::string out;
  std::string err;
};
/// Runs a program to its end.
Completed RunProgram(const Launch& launch);

}  // namespace tidemark::test

#endif  // TIDEMARK_TESTS_E2E_PROCESS_H_
