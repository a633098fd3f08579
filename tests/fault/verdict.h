// Whether a daemon, its data folder and its log hold what was sent: each value once, and summaries
// that are to the byte those of an uninterrupted run.
#ifndef TIDEMARK_TESTS_FAULT_VERDICT_H_
#define TIDEMARK_TESTS_FAULT_VERDICT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "client/client.h"
#include "tests/fault/feeds.h"
#include "tests/fault/writers.h"

namespace tidemark::fault {

using SentOfAll = std::array<Sent, kFeeds.size()>;

/// n of each stream is what was sent; quantiles, ranks, counts and sums have the truth, computed
/// anew from the seed, within their certificates.
void ExpectAnswersOf(client::Client& client, std::uint64_t seed, const SentOfAll& sent);

/// The log in `folder`, from its first record on, holds every batch that was sent once, with its
/// bytes, and nothing else. How many batches.
std::uint64_t ExpectLogOf(const std::string& folder, std::uint64_t seed, const SentOfAll& sent);

/// All of every stream, by name: what a start makes of `folder` in this process. The image: open
/// window, summaries over all and over sliding windows, dictionary, producers. `with_snapshot`: of
/// the newest snapshot and the log behind it; else of the log alone, from its first record on,
/// which is one run without an interruption.
std::map<std::string, std::string> ImagesOf(const std::string& folder, bool with_snapshot);

/// Exported bytes of every stream, by name.
std::map<std::string, std::string> ExportsOf(client::Client& client);

}  // namespace tidemark::fault

#endif  // TIDEMARK_TESTS_FAULT_VERDICT_H_
