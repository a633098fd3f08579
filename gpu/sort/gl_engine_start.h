// How every GL sorter begins: a GL thread, an engine that lives and dies on it, and what is known
// of the GL that it found.
#ifndef TIDEMARK_GPU_SORT_GL_ENGINE_START_H_
#define TIDEMARK_GPU_SORT_GL_ENGINE_START_H_

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/capabilities.h"
#include "gpu/gl/gl_check.h"
#include "gpu/gl/gl_thread.h"
#include "gpu/sort/sorter_factory.h"
#include "gpu/sort/window_sorter.h"

namespace tidemark::sort {

template <class Engine>
struct StartedEngine {
  std::unique_ptr<gl::GlThread> thread;
  Engine* engine = nullptr;  ///< owned by the GL thread
  GlReport gl;
};

/// `make` runs on the GL thread, and may still run after a throw: it owns what it uses. Engine has
/// capabilities(). Errors: throws SorterError when there is no context, or `make` throws GlError.
template <class Engine>
StartedEngine<Engine> StartEngine(bool allow_software,
                                  std::function<std::shared_ptr<Engine>()> make) {
  // Compiling a few programs takes milliseconds; a driver that needs this long hangs.
  constexpr std::chrono::seconds kLimit{60};
  StartedEngine<Engine> started;
  try {
    started.thread = std::make_unique<gl::GlThread>(allow_software);
    // Owned by the task, not by the caller: a driver that hangs here may go on after the throw.
    const auto made = std::make_shared<std::shared_ptr<Engine>>();
    started.thread->Run([made, make = std::move(make)] { *made = make(); }, kLimit);
    started.engine = made->get();
    started.thread->Keep(std::move(*made));
  } catch (const egl::EglError& error) {
    throw SorterError(error.what());
  } catch (const gl::GlError& error) {
    throw SorterError(error.what());
  }
  const gl::Capabilities& capabilities = started.engine->capabilities();
  started.gl.available = true;
  started.gl.vendor = capabilities.vendor;
  started.gl.renderer = capabilities.renderer;
  started.gl.version = capabilities.version;
  started.gl.software = capabilities.software;
  return started;
}

}  // namespace tidemark::sort

#endif  // TIDEMARK_GPU_SORT_GL_ENGINE_START_H_
