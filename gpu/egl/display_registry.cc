#include "gpu/egl/display_registry.h"

#include <epoxy/egl.h>

#include <map>
#include <mutex>

namespace tidemark::egl {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<void*, int> users;
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

}  // namespace

bool AcquireDisplay(void* display) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  int& users = registry.users[display];
  if (users == 0 && eglInitialize(display, nullptr, nullptr) != EGL_TRUE) return false;
  ++users;
  return true;
}

void ReleaseDisplay(void* display) noexcept {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto entry = registry.users.find(display);
  if (entry == registry.users.end() || --entry->second > 0) return;
  registry.users.erase(entry);
  eglTerminate(display);
}

}  // namespace tidemark::egl
