#include "tests/fault/log_archive.h"

#include <chrono>
#include <set>
#include <system_error>
#include <utility>

#include "server/store/log_format.h"

namespace tidemark::fault {
namespace {

constexpr std::chrono::milliseconds kInterval{20};

std::set<std::string> Segments(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (store::SegmentNumber(name)) names.insert(std::move(name));
  }
  return names;
}

}  // namespace

LogArchive::LogArchive(std::string store, std::string archive, bool copies)
    : store_(std::move(store)), archive_(std::move(archive)), copies_(copies), thread_([this] {
        while (!ends_) {
          Link();
          std::this_thread::sleep_for(kInterval);
        }
      }) {}

LogArchive::~LogArchive() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void LogArchive::Link() {
  for (const std::string& name : Segments(store_)) {
    const std::string from = store_ + "/" + name;
    const std::string to = archive_ + "/" + name;
    std::error_code error;
    if (std::filesystem::equivalent(from, to, error)) continue;
    if (copies_) {
      const auto size = std::filesystem::file_size(from, error);
      const auto changed = std::filesystem::last_write_time(from, error);
      auto& seen = seen_[name];
      if (error || seen == std::pair(size, changed)) continue;
      seen = {size, changed};
    }
    // Of an abandoned segment the number may come again, after a restart. One that is gone
    // meanwhile stays as it was linked.
    const std::string fresh = to + ".new";
    if (copies_) {
      std::filesystem::copy_file(from, fresh, error);
    } else {
      std::filesystem::create_hard_link(from, fresh, error);
    }
    if (!error) std::filesystem::rename(fresh, to, error);
    if (error) std::filesystem::remove(fresh, error);
  }
}

void LogArchive::Complete() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  Link();
  const std::set<std::string> left = Segments(store_);
  for (const std::string& name : Segments(archive_)) {
    if (!left.empty() && name > *left.rbegin()) std::filesystem::remove(archive_ + "/" + name);
  }
}

}  // namespace tidemark::fault
