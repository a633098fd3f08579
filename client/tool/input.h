// Bytes of a file or of standard input, and lines and CSV fields cut out of them without copying.
#ifndef TIDEMARK_CLIENT_TOOL_INPUT_H_
#define TIDEMARK_CLIENT_TOOL_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::tool {

/// Errors: InputError (see arguments.h) for everything that the system refuses.
class ByteSource {
 public:
  /// Opens `path`; "-" is `standard_input`, which stays open afterwards. Reading ends early, as at
  /// the end of the input, once `interrupt_fd` (-1: none) is readable.
  ByteSource(const std::string& path, int standard_input, int interrupt_fd);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// At most `size` bytes; 0 at the end.
  std::size_t Read(char* out, std::size_t size);
  /// Back to the start. False if the input cannot be read twice (a pipe, a terminal).
  bool Rewind();

  const std::string& name() const { return name_; }  ///< "-" for standard input
  std::optional<std::uint64_t> size() const { return size_; }
  std::uint64_t bytes_read() const { return bytes_read_; }  ///< rewinding does not reset it
  bool interrupted() const { return interrupted_; }

 private:
  std::string name_;
  int fd_;
  bool owned_;
  int interrupt_fd_;
  bool pollable_;
  std::optional<std::uint64_t> size_;
  std::uint64_t bytes_read_ = 0;
  bool interrupted_ = false;
};

/// Longest line, or record of a CSV file: what is longer is no list of values.
inline constexpr std::size_t kMaxLineBytes = 16 * 1024 * 1024;

class LineReader {
 public:
  // Few system calls at gigabytes a second, and it stays in the second-level cache.
  static constexpr std::size_t kBufferBytes = 512 * 1024;

  /// csv: a line end inside a quoted field, one that begins with a double quote, does not end the
  /// record. `buffer_bytes`: at least 1, doubled as often as a line needs.
  LineReader(ByteSource* source, bool csv, std::size_t buffer_bytes = kBufferBytes);

  /// The next line without its end ("\n" or "\r\n"), valid until the next call; false at the end.
  /// The last line needs no end. InputError for one longer than kMaxLineBytes, and for a record
  /// whose quoted field the input's end cuts off.
  bool Next(std::string_view* line);
  /// Of the line given last, from 1; its first one where a record has several.
  std::uint64_t line_number() const { return line_number_; }

 private:
  bool Fill();

  ByteSource* source_;
  bool csv_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not given out yet
  std::size_t end_ = 0;    // of what was read
  bool at_end_ = false;
  std::uint64_t line_number_ = 0;
  std::uint64_t next_line_ = 1;
};

/// Field `index` (from 0) of a CSV record: unquoted, "" inside quotes is one quote. A field with
/// text behind its closing quote is given as it stands. `scratch` holds the field where it had to
/// be put together. nullopt if there are fewer fields.
std::optional<std::string_view> CsvField(std::string_view record, std::size_t index,
                                         std::string* scratch);
/// The number of the field that equals `name`, from 0.
std::optional<std::size_t> FindCsvField(std::string_view record, std::string_view name);

/// Without spaces, tabs and carriage returns at both ends.
std::string_view Trim(std::string_view text);

}  // namespace tidemark::tool

#endif  // TIDEMARK_CLIENT_TOOL_INPUT_H_
