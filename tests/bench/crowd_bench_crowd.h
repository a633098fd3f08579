// Thousands of connections to one port that follow one script, driven by one thread.
#ifndef TIDEMARK_TESTS_BENCH_CROWD_BENCH_CROWD_H_
#define TIDEMARK_TESTS_BENCH_CROWD_BENCH_CROWD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::bench {

/// What each connection does.
struct Script {
  std::string first = {};  ///< sent as soon as it is connected
  std::string drip = {};   ///< then one byte of this each second, while there is one
  std::string flood = {};  ///< then this, again and again, as fast as it is taken
  /// It has settled once so many bytes have come; 0: as soon as it is connected.
  std::size_t answer_bytes = 0;
  bool deaf = false;  ///< what comes after that is left in the kernel
};

/// Thread: one.
class Crowd {
 public:
  /// They come one after the other, on a thread of their own.
  Crowd(std::uint16_t port, std::size_t members, const Script& script);
  /// Resets them all, so that none is left in TIME_WAIT.
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  std::size_t members() const { return members_.size(); }
  /// Those that have ever settled, and those that the daemon has closed.
  std::size_t settled() const { return settled_; }
  std::size_t ended() const { return ended_; }
  /// Those that it has closed after fewer bytes than an answer has.
  std::size_t misanswered() const { return misanswered_; }
  /// Whether each of them has settled or ended. Errors: throws std::runtime_error if a connection
  /// could not be opened.
  bool IsThere() const;

 private:
  struct Member {
    int fd = -1;
    std::size_t got = 0;
    std::size_t dripped = 0;
    std::size_t flooded = 0;  // of the script's flood
    bool has_settled = false;
  };
  void Live();
  void Connect(Member& member);
  void Drive();
  void Read(Member& member);
  void Flood(Member& member);
  void Drip(std::size_t tick);
  void Watch(const Member& member, int how) const;
  void Settle(Member& member);
  void End(Member& member);

  const std::uint16_t port_;
  const Script script_;
  std::vector<Member> members_;
  const int epoll_;
  std::atomic<std::size_t> settled_{0};
  std::atomic<std::size_t> ended_{0};
  std::atomic<std::size_t> misanswered_{0};
  std::atomic<std::size_t> arrived_{0};  // settled or ended
  std::string failure_;                  // written before failed_
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Lets this process and those that it starts have as many descriptors as the system lets it.
/// Returns how many that is.
std::size_t RaiseDescriptorLimit();

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_CROWD_BENCH_CROWD_H_
