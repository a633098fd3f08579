#include "server/ingest/io_threads.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cassert>
#include <string>
#include <thread>
#include <vector>

namespace tidemark::server {

struct IoThreads::Impl {
  explicit Impl(int count) : io(count), work(io.get_executor()) {}
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::thread> threads;
};

IoThreads::IoThreads(int count, std::string_view name, ThreadRole role)
    : impl_(std::make_unique<Impl>(count)) {
  assert(count >= 1);
  for (int i = 0; i < count; ++i) {
    const std::string thread_name = std::string(name.substr(0, 12)) + "-" + std::to_string(i);
    impl_->threads.emplace_back([this, role, thread_name] {
      EnterThreadRole(role, thread_name);
      impl_->io.run();
    });
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
