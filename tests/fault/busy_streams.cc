#include "tests/fault/busy_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "client/tcp_producer.h"
#include "tests/e2e/oracle.h"
#include "tests/e2e/values.h"

namespace tidemark::fault {
namespace {

constexpr double kSupport = 0.01;
constexpr std::size_t kTextsAsked = 100;

std::string NameOf(std::size_t stream) { return test::Numbered("busy.", stream); }

std::uint64_t Apart(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

}  // namespace

BusyStreams::BusyStreams(test::TestDaemon& daemon, const BusyOptions& options)
    : options_(options), daemon_(daemon), client_(daemon.client().options()) {
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    client::StreamConfig config;
    config.type = options.kind == BusyKind::kNumbers ? client::ValueType::kFloat64
                                                     : client::ValueType::kString;
    config.quantile_epsilon = kEpsilon;
    config.frequency_epsilon = kEpsilon;
    client_.CreateStream(NameOf(stream), config);
  }
  thread_ = std::thread([this] {
    Run();
    large_ = true;  // or never
    large_.notify_all();
  });
  large_.wait(false);
}

BusyStreams::~BusyStreams() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

BusyFigures BusyStreams::EndAndJudge() {
  ends_ = true;
  thread_.join();
  return figures_;
}

void BusyStreams::Run() {
  try {
    client::TcpProducerOptions options;
    options.on_answer = [this](const client::BatchAnswer& answer) {
      EXPECT_TRUE(answer.status.ok())
          << "batch " << answer.batch_id << " of the busy streams: " << answer.status;
      EXPECT_EQ(answer.accepted, answer.status.ok() ? Values(answer.batch_id - 1) : 0);
      EXPECT_EQ(answer.refused, 0u);
      taken_.at(answer.batch_id - 1) = answer.status.ok();
      refused_ += Values(answer.batch_id - 1) - answer.accepted;
    };
    const std::unique_ptr<client::TcpProducer> producer = daemon_.Producer(options);
    Feed(*producer);
    Judge();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "the busy streams: " << error.what();
  }
}

void BusyStreams::Feed(client::TcpProducer& producer) {
  std::vector<client::TcpStream> streams;
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const auto open = producer.Open(NameOf(stream));
    ASSERT_TRUE(open.ok()) << open.status();
    streams.push_back(*open);
  }
  std::size_t judge_at = 16;
  for (std::size_t round = 0; round < kRoundsMin || !ends_; ++round) {
    for (const client::TcpStream& stream : streams) {
      const std::size_t number = taken_.size();
      taken_.push_back(false);
      absl::StatusOr<std::uint64_t> sent;
      if (options_.kind == BusyKind::kNumbers) {
        sent = producer.SendBatch(stream, Batch<double>(number));
      } else {
        const std::vector<std::string> texts = Batch<std::string>(number);
        sent =
            producer.SendStrings(stream, std::vector<std::string_view>(texts.begin(), texts.end()));
      }
      ASSERT_TRUE(sent.ok()) << sent.status();
      ASSERT_EQ(*sent, number + 1);
    }
    if (round == 0) {
      ASSERT_TRUE(producer.Flush().ok());
      large_ = true;
      large_.notify_all();
    }
    if (round == judge_at) {
      judge_at *= 4;
      ASSERT_TRUE(producer.Flush().ok());
      Judge();
    }
    if (!ends_) std::this_thread::sleep_for(options_.pause);
  }
  const absl::Status status = producer.Flush();
  ASSERT_TRUE(status.ok()) << status;
}

template <class T>
std::vector<T> BusyStreams::Batch(std::size_t number) const {
  const test::Shape shape =
      options_.kind == BusyKind::kNumbers ? test::Shape::kLognormal : test::Shape::kZipf;
  return test::MakeValues<T>(shape, Values(number), options_.seed * 1'000'003 + number);
}

template <class T>
std::vector<T> BusyStreams::Taken(std::size_t stream) const {
  std::vector<T> all;
  for (std::size_t number = stream; number < taken_.size(); number += kStreams) {
    if (!taken_[number]) continue;
    std::vector<T> batch = Batch<T>(number);
    std::move(batch.begin(), batch.end(), std::back_inserter(all));
  }
  return all;
}

void BusyStreams::Judge() {
  const std::size_t judged = figures_.judged + 1;
  figures_ = {.refused = refused_, .judged = judged};
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    const std::string name = NameOf(stream);
    SCOPED_TRACE(name);
    const std::uint64_t n =
        options_.kind == BusyKind::kNumbers ? JudgeNumbers(stream, name) : JudgeTexts(stream, name);
    const client::StreamInfo info = client_.DescribeStream(name);
    EXPECT_EQ(info.count, n) << (info.count < n ? "lost" : "counted twice");
    EXPECT_EQ(info.refused, 0u);
  }
}

void BusyStreams::Note(std::uint64_t n, std::uint64_t error) {
  if (figures_.values_min == 0 || n < figures_.values_min) {
    figures_.values_min = n;
    figures_.error_allowed = kEpsilon * static_cast<double>(n);
  }
  figures_.values_max = std::max(figures_.values_max, n);
  figures_.error_max = std::max(figures_.error_max, error);
}

std::uint64_t BusyStreams::JudgeNumbers(std::size_t stream, const std::string& name) {
  const test::Oracle<double> truth(Taken<double>(stream));
  std::vector<double> phi;
  for (int percent = 1; percent <= 99; ++percent) phi.push_back(percent / 100.0);
  const client::QuantilesAnswer answer = client_.Quantiles(name, phi);
  truth.Check(answer, phi, kEpsilon);
  std::vector<client::Value> asked;
  for (const client::QuantileAnswer& a : answer.answers) {
    asked.push_back(a.value);
    const double value = std::get<double>(a.value.kind);
    const auto target = static_cast<std::uint64_t>(
        std::max(1.0, std::ceil(a.phi * static_cast<double>(truth.n()) - 1e-9)));
    Note(truth.n(), Apart(target, std::clamp(target, truth.Below(value) + 1, truth.UpTo(value))));
  }
  truth.Check(client_.Ranks(name, asked), asked, kEpsilon);
  return truth.n();
}

std::uint64_t BusyStreams::JudgeTexts(std::size_t stream, const std::string& name) {
  const test::Oracle<std::string> truth(Taken<std::string>(stream));
  std::vector<client::Value> asked = {client::Value{std::string("never sent")}};
  // From frequent ones to rare ones: by their place among all values.
  for (std::size_t i = 0; i < kTextsAsked && truth.n() > 0; ++i) {
    client::Value text{truth.sorted()[i * truth.n() / kTextsAsked]};
    if (!(text == asked.back())) asked.push_back(std::move(text));
  }
  const client::CountsAnswer counts = client_.Counts(name, asked);
  truth.Check(counts, asked, kEpsilon);
  for (const client::ItemCount& item : counts.items) {
    Note(truth.n(), item.count_high - item.count_low);
  }
  truth.Check(client_.HeavyHitters(name, kSupport), kSupport, kEpsilon);
  return truth.n();
}

}  // namespace tidemark::fault
