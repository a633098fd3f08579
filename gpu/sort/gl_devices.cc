#include "gpu/sort/gl_devices.h"

#include <chrono>
#include <memory>
#include <stdexcept>

#include "gpu/egl/headless_context.h"
#include "gpu/egl/software_renderer.h"
#include "gpu/gl/capabilities.h"
#include "gpu/gl/gl_check.h"
#include "gpu/gl/gl_thread.h"

namespace tidemark::sort {
namespace {

// The slowest drivers need a few seconds.
constexpr std::chrono::seconds kLimit{30};

// What the current context says of its device.
void ReadInto(GlDevice& device) {
  const gl::Capabilities capabilities = gl::ReadCapabilities();
  const gl::ComputeCapabilities compute = gl::ReadComputeCapabilities();
  // A hardware device whose own driver does not work may be given a software one.
  device.software = device.software || capabilities.software;
  device.vendor = capabilities.vendor;
  device.renderer = capabilities.renderer;
  device.version = capabilities.version;
  device.shading_language = gl::ShadingLanguage();
  device.texture_size_max = capabilities.texture_size_max;
  device.draw_buffers_max = capabilities.draw_buffers_max;
  device.compute = compute.available;
  device.shared_bytes = compute.shared_bytes;
  device.invocations_max = compute.invocations_max;
  device.groups_max = compute.groups_max;
  device.storage_block_bytes = compute.storage_block_bytes;
  for (const gl::Feature& feature : gl::ReadFeatures()) {
    device.features.push_back({feature.name, feature.use, feature.present});
  }
}

GlDevice Describe(const egl::Device& listed) {
  GlDevice device;
  device.name = "EGL device " + std::to_string(listed.index);
  device.software = listed.software;
  device.drm_file = listed.drm_file;
  // On a thread of its own: a driver that hangs is told of, and the next device looked at.
  try {
    const auto read = std::make_shared<GlDevice>(device);
    gl::GlThread thread(
        [read, index = listed.index] {
          auto context =
              std::make_unique<egl::HeadlessContext>(egl::HeadlessContext::OpenDevice(index));
          read->reports_reset = context->reports_reset();
          return context;
        },
        kLimit);
    thread.Run([read] { ReadInto(*read); }, kLimit);
    return *read;
  } catch (const std::runtime_error& error) {  // egl::EglError, gl::GlError
    device.error = error.what();
  }
  return device;
}

}  // namespace

GlDevices DescribeGlDevices() {
  GlDevices found;
  try {
    for (const egl::Device& listed : egl::ListDevices()) {
      found.devices.push_back(Describe(listed));
    }
  } catch (const egl::EglError& error) {
    found.error = error.what();
  }
  for (const bool software : {false, true}) {
    for (std::size_t i = 0; i < found.devices.size() && found.chosen < 0; ++i) {
      const GlDevice& device = found.devices[i];
      if (device.error.empty() && device.software == software) found.chosen = static_cast<int>(i);
    }
  }
  return found;
}

}  // namespace tidemark::sort
