#include "client/tool/summary_commands.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "client/tool/arguments.h"
#include "client/tool/input.h"
#include "client/tool/json.h"
#include "client/tool/text.h"

namespace tidemark::tool {
namespace {

// Beside the file and renamed, so that an older export is there until the new one is whole.
// What is no plain file (a pipe, a device, a link) is written to as it is.
void Replace(const std::string& file, const std::string& bytes) {
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(file, ignored).type();
  const bool plain =
      type == std::filesystem::file_type::regular || type == std::filesystem::file_type::not_found;
  const std::string part = plain ? file + ".part" : file;
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out || (plain && std::rename(part.c_str(), file.c_str()) != 0)) {
    const std::string reason = std::strerror(errno);
    if (plain) std::remove(part.c_str());
    throw InputError("cannot write \"" + Printable(file) + "\": " + reason);
  }
}

}  // namespace

int RunExport(const client::ClientOptions& to, const std::string& stream, const std::string& file,
              bool json, const Environment& environment) {
  const std::string bytes = client::Client(to).ExportStream(stream);
  if (file == "-") {
    environment.out << bytes;
    return kDone;
  }
  Replace(file, bytes);
  if (json) {
    environment.out << Dump({{"stream", stream}, {"file", file}, {"bytes", bytes.size()}}) << "\n";
  } else {
    environment.out << Printable(stream) << ": " << bytes.size() << " bytes to " << Printable(file)
                    << "\n";
  }
  return kDone;
}

std::vector<std::string> ReadFiles(const std::vector<std::string>& files,
                                   const Environment& environment) {
  std::vector<std::string> contents;
  for (const std::string& file : files) {
    ByteSource source(file, environment.input_fd, -1);
    std::string& bytes = contents.emplace_back();
    std::array<char, 1 << 16> block;
    while (const std::size_t got = source.Read(block.data(), block.size())) {
      bytes.append(block.data(), got);
    }
  }
  return contents;
}

}  // namespace tidemark::tool
