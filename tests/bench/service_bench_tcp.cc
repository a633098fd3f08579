#include "tests/bench/service_bench_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <span>
#include <stdexcept>

#include "tests/bench/service_bench_daemon.h"
#include "tests/bench/service_bench_sections.h"
#include "wire/frame.h"

namespace tidemark::bench {
namespace {

void Check(const absl::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

constexpr std::size_t kReadBytes = std::size_t{512} << 10;

}  // namespace

const std::vector<float>& UniformValues() {
  static const std::vector<float> values = [] {
    std::vector<float> made(std::size_t{1} << 21);
    std::mt19937 random(20261121);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (float& value : made) value = uniform(random);
    return made;
  }();
  return values;
}

Sender::Sender(std::uint16_t port, const std::string& stream, client::TcpProducerOptions options) {
  auto producer = client::TcpProducer::Connect("127.0.0.1", port, options);
  Check(producer.status());
  producer_ = *std::move(producer);
  const auto opened = producer_->Open(stream, wire::WireType::kFloat32);
  Check(opened.status());
  stream_ = *opened;
}

void Sender::SendFrame(std::size_t values) {
  const std::vector<float>& all = UniformValues();
  if (at_ + values > all.size()) at_ = 0;
  Check(producer_->SendBatch(stream_, std::span(all).subspan(at_, values)).status());
  at_ += values;
  sent_ += values;
}

void Sender::Flush() {
  Check(producer_->Flush());
  if (producer_->accepted() != sent_) {
    throw std::runtime_error(std::to_string(sent_) + " values were sent and " +
                             std::to_string(producer_->accepted()) + " acknowledged");
  }
}

CountingReader::CountingReader() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("cannot listen on the loopback");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

CountingReader::~CountingReader() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& reader : readers_) reader.join();
  close(listener_);
}

void CountingReader::WaitForEnd(int connections) {
  for (int ended = ended_.load(); ended < connections; ended = ended_.load()) ended_.wait(ended);
  ended_ = 0;
}

void CountingReader::Accept() {
  while (true) {
    const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) return;
    readers_.emplace_back([this, peer] { Read(peer); });
  }
}

void CountingReader::Read(int socket) {
  std::vector<std::byte> buffer(kReadBytes);
  std::string opened;
  wire::AppendOpened(opened, 1, wire::WireType::kFloat32);
  bool answered = false;
  std::uint64_t bytes = 0;
  ssize_t got = 0;
  while ((got = recv(socket, buffer.data(), buffer.size(), 0)) > 0) {
    bytes += static_cast<std::uint64_t>(got);
    // A Sender sends nothing after preamble and OPEN until it has the answer.
    if (!answered && bytes > wire::kPreambleBytes + wire::kOpenHeaderBytes) {
      SendAll(socket, opened);
      answered = true;
    }
  }
  close(socket);
  ++ended_;
  ended_.notify_all();
}

void WaitUntilSummarized(client::Client& client, const std::string& stream,
                         std::uint64_t expected) {
  while (true) {
    const client::StreamInfo info = client.DescribeStream(stream);
    if (info.count != expected) {
      throw std::runtime_error("stream " + stream + " holds " + std::to_string(info.count) +
                               " values, " + std::to_string(expected) + " were acknowledged");
    }
    if (info.pending == info.window_fill) return;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

}  // namespace tidemark::bench
