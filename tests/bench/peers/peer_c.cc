// The C interface of a table of peers, for compare.py: peers are counted from 0, and every function
// that can fail returns a negative number and leaves a message in peers_error().
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include "tests/bench/peers/peer.h"

namespace {

using tidemark::peers::Peer;
using tidemark::peers::Variants;

std::string& Error() {
  static thread_local std::string error;
  return error;
}

template <class Body>
auto Guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    Error() = error.what();
  }
  return -1;
}

double ThreadSeconds() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

extern "C" {

int peers_count() { return static_cast<int>(Variants().size()); }
const char* peers_name(std::size_t i) { return Variants()[i].name; }
const char* peers_kind(std::size_t i) { return Variants()[i].kind; }
const char* peers_value(std::size_t i) { return Variants()[i].value; }
const char* peers_promise(std::size_t i) { return Variants()[i].promise; }
double peers_epsilon(std::size_t i) { return Variants()[i].epsilon; }
const char* peers_error() { return Error().c_str(); }

Peer* peers_make(std::size_t i) {
  try {
    return Variants()[i].make().release();
  } catch (const std::exception& error) {
    Error() = error.what();
    return nullptr;
  }
}
void peers_free(Peer* peer) { delete peer; }

int peers_add(Peer* peer, const void* values, std::size_t count) {
  return Guard([&] {
    peer->Add(values, count);
    return 0;
  });
}

/// Bytes of the summary, the most of it, of windows, and exported.
int peers_bytes(Peer* peer, std::uint64_t* four) {
  return Guard([&] {
    four[0] = peer->Bytes();
    four[1] = peer->MostBytes();
    four[2] = peer->WindowBytes();
    four[3] = peer->ExportBytes();
    return 0;
  });
}

int peers_quantiles(Peer* peer, const double* phis, std::size_t count, float* values,
                    std::uint64_t* low, std::uint64_t* high) {
  return Guard([&] {
    peer->Quantiles({phis, count}, values, low, high);
    return 0;
  });
}

int peers_counts(Peer* peer, const void* items, std::size_t count, std::uint64_t* low,
                 std::uint64_t* high) {
  return Guard([&] {
    peer->Counts(items, count, low, high);
    return 0;
  });
}

std::int64_t peers_heavy_hitters(Peer* peer, double support) {
  return Guard([&] { return static_cast<std::int64_t>(peer->HeavyHitters(support)); });
}

/// Seconds of one quantile: asked again, or (with `value`) first after one more value was added.
double peers_quantile_seconds(Peer* peer, double phi, const void* value, std::size_t repeats) {
  return Guard([&] {
    double seconds = 0;
    for (std::size_t i = 0; i < repeats; ++i) {
      if (value != nullptr) peer->Add(value, 1);
      float answer = 0;
      std::uint64_t low = 0, high = 0;
      const double start = ThreadSeconds();
      peer->Quantiles({&phi, 1}, &answer, &low, &high);
      seconds += ThreadSeconds() - start;
    }
    return seconds / static_cast<double>(repeats);
  });
}

/// Seconds of one list of heavy hitters.
double peers_heavy_hitters_seconds(Peer* peer, double support, std::size_t repeats) {
  return Guard([&] {
    const double start = ThreadSeconds();
    for (std::size_t i = 0; i < repeats; ++i) peer->HeavyHitters(support);
    return (ThreadSeconds() - start) / static_cast<double>(repeats);
  });
}

/// Seconds of taking `other` into a copy of `peer`; the last copy is left at `merged` if it is
/// given.
double peers_merge_seconds(const Peer* peer, const Peer* other, std::size_t repeats,
                           Peer** merged) {
  return Guard([&] {
    double seconds = 0;
    std::unique_ptr<Peer> copy;
    for (std::size_t i = 0; i < repeats; ++i) {
      copy = peer->Clone();
      const double start = ThreadSeconds();
      copy->Merge(*other);
      seconds += ThreadSeconds() - start;
    }
    if (merged != nullptr) *merged = copy.release();
    return seconds / static_cast<double>(repeats);
  });
}

}  // extern "C"
