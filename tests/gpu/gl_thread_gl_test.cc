// The thread of a GL context, when the driver hangs.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "gpu/egl/headless_context.h"
#include "gpu/gl/gl_check.h"
#include "gpu/gl/gl_thread.h"

namespace tidemark::gl {
namespace {

using std::chrono::milliseconds;

TEST(GlThread, GivesUpADriverThatHangsWhileItOpens) {
  std::promise<void> comes_back;
  std::promise<void> came_back;
  try {
    const GlThread thread(
        [back = comes_back.get_future().share(), &came_back] {
          back.wait();
          auto context = std::make_unique<egl::HeadlessContext>(egl::HeadlessContext::Open(true));
          came_back.set_value();
          return context;
        },
        milliseconds(50));
    FAIL() << "no exception";
  } catch (const egl::EglError& error) {
    EXPECT_STREQ(error.what(),
                 "opening a GL context did not end within 50 ms (the GPU's driver hangs)");
  }
  comes_back.set_value();
  came_back.get_future().wait();  // and its thread ends by itself
}

TEST(GlThread, RunsNoTaskOnceOneHung) {
  std::promise<void> comes_back;
  auto thread = std::make_unique<GlThread>(true);
  std::atomic<int> ran{0};
  std::promise<void> began;
  const auto hang = [&began, back = comes_back.get_future().share()] {
    began.set_value();
    back.wait();
  };
  std::thread stuck([&] { EXPECT_THROW(thread->Run(hang, milliseconds(200)), GlError); });
  began.get_future().wait();
  const auto others_wait = thread->WaitingProbe();
  std::thread behind(
      [&] { EXPECT_THROW(thread->Run([&] { ++ran; }, milliseconds(200)), GlError); });
  stuck.join();
  behind.join();
  EXPECT_THROW(thread->Run([&] { ++ran; }, milliseconds(200)), GlError);
  comes_back.set_value();
  thread.reset();  // waits for the thread, now that it goes on
  EXPECT_EQ(ran, 0);
  EXPECT_FALSE(others_wait()) << "a task was left";
}

TEST(GlThread, FreesWhatItKeepsOnItsThread) {
  std::promise<std::thread::id> freed;
  std::thread::id gl;
  {
    GlThread thread(true);
    thread.Run([&] { gl = std::this_thread::get_id(); }, milliseconds(10'000));
    thread.Keep(std::shared_ptr<int>(new int(0), [&freed](int* kept) {
      delete kept;
      freed.set_value(std::this_thread::get_id());
    }));
  }
  EXPECT_EQ(freed.get_future().get(), gl);
}

}  // namespace
}  // namespace tidemark::gl
