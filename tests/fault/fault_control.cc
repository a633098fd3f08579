#include "tests/fault/fault_control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tidemark::fault {

FaultControl::FaultControl(std::string folder, std::string archive)
    : folder_(std::move(folder)), archive_(std::move(archive)) {
  const std::string path = own_.Write("control", std::string(sizeof(Control), '\0'));
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* const at = fd < 0
                       ? MAP_FAILED
                       : mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (at == MAP_FAILED) throw std::runtime_error("map " + path + ": " + std::strerror(error));
  control_ = static_cast<Control*>(at);
}

FaultControl::~FaultControl() { munmap(control_, sizeof(Control)); }

std::map<std::string, std::string> FaultControl::Environment() const {
  return {{"LD_PRELOAD", TIDEMARK_FAULT_LIBRARY},
          {kControlVariable, own_ / "control"},
          {kFolderVariable, folder_},
          {kArchiveVariable, archive_}};
}

const char* FaultControl::Unusable() {
#ifdef TIDEMARK_SANITIZED
  return "sanitizers want to be the first library: nothing can be preloaded in this build";
#else
  return nullptr;
#endif
}

void FaultControl::Reset() {
  Disarm();
  for (auto& calls : control_->calls) calls = 0;
  control_->done = 0;
}

void FaultControl::Arm(Point point, Deed deed, std::uint64_t k, std::uint64_t times, int error,
                       std::size_t place) {
  Order& order = control_->orders[place];
  order.deed = static_cast<std::uint32_t>(Deed::kNone);
  order.error = error;
  order.first = k;
  order.last = times > kForEver - k ? kForEver : k + times - 1;
  order.point = static_cast<std::uint32_t>(point);
  order.deed = static_cast<std::uint32_t>(deed);
}

void FaultControl::ArmNow(Point point, Deed deed, int error, std::size_t place) {
  Arm(point, deed, calls(point) + 1, kForEver, error, place);
}

void FaultControl::Disarm() {
  for (Order& order : control_->orders) order.deed = static_cast<std::uint32_t>(Deed::kNone);
}

}  // namespace tidemark::fault
