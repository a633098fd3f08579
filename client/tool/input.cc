#include "client/tool/input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "client/tool/arguments.h"

namespace tidemark::tool {
namespace {

std::string SystemMessage(const std::string& name, const char* what) {
  return std::string("cannot ") + what + " " + (name == "-" ? "standard input" : name) + ": " +
         std::strerror(errno);
}

// Cuts one field off the front of a record. What it gives is the raw text, its quotes included.
bool CutField(std::string_view* rest, bool* more, std::string_view* raw) {
  if (!*more) return false;
  std::size_t i = 0;
  if (!rest->empty() && (*rest)[0] == '"') {
    // A quote followed by a quote is one of the text; the closing one ends the quoted part.
    for (i = 1; i < rest->size(); ++i) {
      if ((*rest)[i] != '"') continue;
      if (i + 1 < rest->size() && (*rest)[i + 1] == '"') {
        ++i;
      } else {
        ++i;
        break;
      }
    }
  }
  const std::size_t end = rest->find(',', i);
  *raw = rest->substr(0, end);
  *more = end != std::string_view::npos;
  *rest = *more ? rest->substr(end + 1) : std::string_view();
  return true;
}

std::string_view Unquote(std::string_view raw, std::string* scratch) {
  if (raw.empty() || raw.front() != '"') return raw;
  std::size_t close = 1;
  bool doubled = false;
  for (; close < raw.size(); ++close) {
    if (raw[close] != '"') continue;
    if (close + 1 == raw.size() || raw[close + 1] != '"') break;
    doubled = true;
    ++close;
  }
  // Not closed, or with text behind the quote: no quoted field, and nothing of it may be left out.
  if (close >= raw.size() || !Trim(raw.substr(close + 1)).empty()) return raw;
  const std::string_view inner = raw.substr(1, close - 1);
  if (!doubled) return inner;
  scratch->clear();
  for (std::size_t i = 0; i < inner.size(); ++i) {
    scratch->push_back(inner[i]);
    if (inner[i] == '"') ++i;
  }
  return *scratch;
}

// Where in a CSV record a reader stands. As CutField reads it: a field is quoted if it begins with
// a quote; elsewhere a quote is a character like any other.
enum class CsvPlace { kFieldStart, kPlain, kQuoted, kQuoteInQuoted };

CsvPlace Advance(CsvPlace place, std::string_view text) {
  for (const char c : text) {
    switch (place) {
      case CsvPlace::kFieldStart:
        place = c == '"' ? CsvPlace::kQuoted : c == ',' ? CsvPlace::kFieldStart : CsvPlace::kPlain;
        break;
      case CsvPlace::kPlain:
        if (c == ',') place = CsvPlace::kFieldStart;
        break;
      case CsvPlace::kQuoted:
        if (c == '"') place = CsvPlace::kQuoteInQuoted;
        break;
      case CsvPlace::kQuoteInQuoted:  // a doubled quote, or the field ended before this character
        place = c == '"' ? CsvPlace::kQuoted : c == ',' ? CsvPlace::kFieldStart : CsvPlace::kPlain;
        break;
    }
  }
  return place;
}

}  // namespace

ByteSource::ByteSource(const std::string& path, int standard_input, int interrupt_fd)
    : name_(path),
      fd_(path == "-" ? standard_input : open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      owned_(path != "-"),
      interrupt_fd_(interrupt_fd) {
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) throw InputError(SystemMessage(name_, "open"));
  if (S_ISDIR(info.st_mode)) {
    if (owned_) close(fd_);
    throw InputError("cannot read " + name_ + ": it is a folder");
  }
  if (S_ISREG(info.st_mode)) size_ = static_cast<std::uint64_t>(info.st_size);
  pollable_ = !S_ISREG(info.st_mode);
}

ByteSource::~ByteSource() {
  if (owned_) close(fd_);
}

std::size_t ByteSource::Read(char* out, std::size_t size) {
  while (true) {
    if (interrupt_fd_ >= 0) {
      // A file is always ready, so this only looks; a pipe or terminal is waited for.
      std::array<pollfd, 2> fds = {{{interrupt_fd_, POLLIN, 0}, {fd_, POLLIN, 0}}};
      if (poll(fds.data(), pollable_ ? 2 : 1, pollable_ ? -1 : 0) < 0 && errno != EINTR) {
        throw InputError(SystemMessage(name_, "wait for"));
      }
      if ((fds[0].revents & POLLIN) != 0) {
        interrupted_ = true;
        return 0;
      }
    }
    const ssize_t got = read(fd_, out, size);
    if (got >= 0) {
      bytes_read_ += static_cast<std::uint64_t>(got);
      return static_cast<std::size_t>(got);
    }
    if (errno != EINTR && errno != EAGAIN) throw InputError(SystemMessage(name_, "read"));
  }
}

bool ByteSource::Rewind() { return lseek(fd_, 0, SEEK_SET) == 0; }

LineReader::LineReader(ByteSource* source, bool csv, std::size_t buffer_bytes)
    : source_(source), csv_(csv), buffer_(buffer_bytes) {}

bool LineReader::Fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= kMaxLineBytes) {
      throw InputError(source_->name() + ":" + std::to_string(next_line_) + ": longer than " +
                       std::to_string(kMaxLineBytes) + " bytes" +
                       (csv_ ? "; is a quote missing?" : ""));
    }
    buffer_.resize(buffer_.size() * 2);
  }
  const std::size_t got = source_->Read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

bool LineReader::Next(std::string_view* line) {
  std::size_t scanned = 0;  // bytes of the record that hold no line end that ends it
  std::uint64_t lines = 1;
  CsvPlace place = CsvPlace::kFieldStart;
  while (true) {
    const char* const start = buffer_.data() + begin_;
    const std::size_t size = end_ - begin_;
    const void* found =
        scanned < size ? std::memchr(start + scanned, '\n', size - scanned) : nullptr;
    const std::size_t stop =
        found == nullptr ? size : static_cast<std::size_t>(static_cast<const char*>(found) - start);
    if (csv_ && scanned < stop) place = Advance(place, {start + scanned, stop - scanned});
    if (found == nullptr) {
      scanned = size;
      if (Fill()) continue;
      // What an interruption cut off is no whole line.
      if (source_->interrupted() || size == 0) return false;
      if (place == CsvPlace::kQuoted) {
        throw InputError(source_->name() + ":" + std::to_string(next_line_) +
                         ": a quoted field begins in this record and is never closed");
      }
    } else if (place == CsvPlace::kQuoted) {
      scanned = stop + 1;
      ++lines;
      continue;
    }
    // Fill may have moved the buffer; begin_ and stop stay right.
    std::string_view out(buffer_.data() + begin_, stop);
    begin_ += found == nullptr ? stop : stop + 1;
    if (!out.empty() && out.back() == '\r') out.remove_suffix(1);
    line_number_ = next_line_;
    next_line_ += lines;
    *line = out;
    return true;
  }
}

std::optional<std::string_view> CsvField(std::string_view record, std::size_t index,
                                         std::string* scratch) {
  bool more = true;
  std::string_view raw;
  for (std::size_t i = 0; CutField(&record, &more, &raw); ++i) {
    if (i == index) return Unquote(raw, scratch);
  }
  return std::nullopt;
}

std::optional<std::size_t> FindCsvField(std::string_view record, std::string_view name) {
  bool more = true;
  std::string_view raw;
  std::string scratch;
  for (std::size_t i = 0; CutField(&record, &more, &raw); ++i) {
    if (Trim(Unquote(raw, &scratch)) == name) return i;
  }
  return std::nullopt;
}

std::string_view Trim(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace tidemark::tool
