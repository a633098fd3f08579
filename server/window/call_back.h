// What is called back later for somebody who may have gone by then: who keeps it can see that, and
// drop it.
#ifndef TIDEMARK_SERVER_WINDOW_CALL_BACK_H_
#define TIDEMARK_SERVER_WINDOW_CALL_BACK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"

namespace tidemark::server {

/// To be put into a std::function<void(Arguments...)>: what IngestSink::WhenReady and WhenDurable
/// are given by those who may go first, or what is kept for them grows while a disk hangs. Once
/// `asker` is gone it may be dropped and not called, with a lock of the keeper's held: what `done`
/// holds is cheap to destroy, and is not the asker itself.
template <class... Arguments>
struct OfAsker {
  std::weak_ptr<const void> asker;
  std::function<void(Arguments...)> done;

  void operator()(Arguments... arguments) const { done(std::forward<Arguments>(arguments)...); }
};

/// What WhenDurable is given.
using DurableOfAsker = OfAsker<std::uint64_t, const absl::Status&>;

/// Whether `done` is an OfAsker whose asker is gone.
template <class... Arguments>
bool IsGone(const std::function<void(Arguments...)>& done) {
  const auto* const of = done.template target<OfAsker<Arguments...>>();
  return of != nullptr && of->asker.expired();
}

/// `done`, of the same asker as `of`, if that has one.
inline std::function<void()> OfSameAsker(const std::function<void()>& of,
                                         std::function<void()> done) {
  const auto* const same = of.target<OfAsker<>>();
  if (same == nullptr) return done;
  return OfAsker<>{same->asker, std::move(done)};
}

/// When to look for those that have gone, so that looking costs little for each that comes, and no
/// more are kept than twice those that waited at the last look, or kLeast. Thread: one at a time.
class GoneAskers {
 public:
  static constexpr std::size_t kLeast = 64;

  /// Before one more comes to `waiting`. `gone` says whether one of its elements is.
  template <class Waiting, class Gone>
  void DropFrom(Waiting& waiting, Gone gone) {
    if (waiting.size() < look_at_) return;
    std::erase_if(waiting, gone);
    Left(waiting.size());
  }
  /// So many are left after others were called.
  void Left(std::size_t waiting) { look_at_ = std::max(kLeast, 2 * waiting); }

 private:
  std::size_t look_at_ = kLeast;
};

}  // namespace tidemark::server

#endif  // TIDEMARK_SERVER_WINDOW_CALL_BACK_H_
