#include "server/ingest/io_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cassert>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::server {
namespace {

// Sources that never end keep these threads busy; a query, which runs for microseconds, should not
// wait for their turn to end. See also server/sort/sort_stage.cc.
constexpr int kNice = 5;

}  // namespace

struct IoThreads::Impl {
  explicit Impl(int count) : io(count), work(io.get_executor()) {}
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::thread> threads;
};

IoThreads::IoThreads(int count, std::string_view name) : impl_(std::make_unique<Impl>(count)) {
  assert(count >= 1);
  for (int i = 0; i < count; ++i) {
    impl_->threads.emplace_back([this] {
      nice(kNice);  // on Linux that of the calling thread
      impl_->io.run();
    });
    const std::string thread_name = std::string(name.substr(0, 12)) + "-" + std::to_string(i);
    pthread_setname_np(impl_->threads.back().native_handle(), thread_name.substr(0, 15).c_str());
  }
}

IoThreads::~IoThreads() { Stop(); }

boost::asio::io_context& IoThreads::io() { return impl_->io; }

void IoThreads::Stop() {
  impl_->io.stop();
  for (auto& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace tidemark::server
