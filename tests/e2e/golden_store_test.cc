// The real daemon, on a real disk, starts from a copy of every store that an earlier version wrote
// (tests/server/durability/golden): it gives the answers that are kept beside the store, takes new
// values, and starts again. How folders are made: tests/server/durability/golden_folder_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "tests/e2e/test_daemon.h"
#include "tests/support/golden_files.h"

namespace tidemark::test {
namespace {

namespace fs = std::filesystem;

std::uint64_t BigEndian(std::span<const std::uint8_t> bytes) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : bytes) number = number << 8 | byte;
  return number;
}

std::string Text(const client::Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, client::Ipv4>) {
          return fmt::format("{}", held.address);
        } else if constexpr (std::is_same_v<Held, client::Ipv6>) {
          const std::span<const std::uint8_t> bytes(held.bytes);
          return fmt::format("{}:{}", BigEndian(bytes.first(8)), BigEndian(bytes.last(8)));
        } else {
          return fmt::format("{}", held);
        }
      },
      value.kind);
}

std::string Text(const client::PrefixCount& row) {
  if (row.text) return *row.text;
  return std::visit([](const auto& address) { return Text(client::Value{address}); }, row.address);
}

// A question's line; of what cannot be asked of this stream, the code.
std::string Told(const char* question, const auto& ask, const auto& row) {
  std::string out = fmt::format("  {}: ", question);
  try {
    const auto [answer, rows] = ask();
    out +=
        fmt::format("n {} uncertain {} refused {}", answer.n, answer.n_uncertain, answer.refused);
    for (const auto& one : rows) out += "; " + row(one);
  } catch (const client::Error& error) {
    out += client::CodeName(error.code());
  }
  return out + "\n";
}

std::string AnswersOf(client::Client& client, const std::string& stream,
                      const client::Scope& scope = {}) {
  std::string out = Told(
      "quantiles",
      [&] {
        const auto answer = client.Quantiles(stream, {0, 0.1, 0.5, 0.9, 1}, scope);
        return std::pair(answer, answer.answers);
      },
      [](const client::QuantileAnswer& row) {
        return fmt::format("{} {} [{}, {}]", row.phi, Text(row.value), row.rank_low, row.rank_high);
      });
  for (const bool by_weight : {false, true}) {
    out += Told(
        by_weight ? "weights" : "items",
        [&] {
          const auto answer = client.HeavyHitters(stream, 0.05, 0, scope, by_weight);
          return std::pair(answer, answer.items);
        },
        [](const client::ItemCount& row) {
          return fmt::format("{} [{}, {}]", Text(row.value), row.count_low, row.count_high);
        });
  }
  out += Told(
      "prefixes",
      [&] {
        const auto answer = client.HierarchicalHeavyHitters(stream, 0.1, scope);
        return std::pair(answer, answer.prefixes);
      },
      [](const client::PrefixCount& row) {
        return fmt::format("{}/{} [{}, {}] [{}, {}]", Text(row), row.length, row.count_low,
                           row.count_high, row.discounted_low, row.discounted_high);
      });
  if (!scope.whole()) return out;
  out += Told(
      "sums",
      [&] {
        const auto answer = client.Sums(stream, {client::AtMostShare{0.5}, client::AtMostShare{1}});
        return std::pair(answer, answer.answers);
      },
      [](const client::SumAnswer& row) {
        return fmt::format("[{}, {}] [{}, {}]", row.count_low, row.count_high, row.sum_low,
                           row.sum_high);
      });
  return out;
}

// As they are kept. What a stream does not have is not told over the wire: its defaults.
std::string Text(const client::StreamConfig& config) {
  const bool tail = config.quantile_form == client::QuantileForm::kTail;
  const bool separated = config.depth != 0;
  std::string out = fmt::format(
      "type {} payload {} form {} epsilon {} {} {} frequencies {} sums {} sliding {} {} {} depth "
      "{} "
      "{} {} prefixes",
      static_cast<int>(config.type), static_cast<int>(config.payload),
      static_cast<int>(config.quantile_form), config.quantile_epsilon, config.frequency_epsilon,
      tail ? config.tail_epsilon : 0.005, !config.no_frequencies, config.sums.value_or(false),
      config.sliding.max_values, config.sliding.max_time.count(),
      config.sliding.any() ? config.sliding.epsilon : 0.01, config.depth,
      static_cast<int>(separated ? config.separator.at(0) : '.'), separated && config.root_last);
  for (const std::uint32_t length : config.prefix_lengths) out += fmt::format(" {}", length);
  return out;
}

// All that the daemon has, as golden_folder_test.cc writes it, without the ids of streams and
// without subscriptions.
std::string Answers(TestDaemon& daemon) {
  client::Client& client = daemon.client();
  std::string out;
  for (const client::StreamInfo& listed : client.ListStreams()) {
    const std::string& name = listed.name;
    client::StreamInfo info;
    EXPECT_TRUE(WaitUntil([&] {
      info = client.DescribeStream(name);
      return info.pending == info.window_fill;  // no window under way
    }));
    out += fmt::format("{}: {}\n  n {}, refused {}, open {} of {}, windows {}\n", name,
                       Text(info.config), info.count, info.refused, info.window_fill,
                       info.window_capacity, info.windows_summarized);
    out += AnswersOf(client, name);
    if (info.config.sliding.max_values != 0) {
      out += " of the last 100\n" + AnswersOf(client, name, {.last_values = 100});
    }
    if (info.config.sliding.max_time.count() != 0) {
      out += " of the last 2 s\n" +
             AnswersOf(client, name, {.last_time = std::chrono::microseconds(2'000'000)});
    }
  }
  return out;
}

struct Kept {
  std::string answers;
  int subscriptions = 0;
};

// The answers that are kept, without what Answers() leaves out. They were given at the moment of
// the last batch; the clock of a daemon has gone on: the last two seconds have no values any more.
Kept KeptAnswers(const fs::path& folder) {
  Kept kept;
  std::istringstream lines(testing::Contents(folder.string() + ".answers"));
  bool of_time = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ")) of_time = line == " of the last 2 s";
    if (const std::size_t n = line.find(": n "); of_time && n != std::string::npos) {
      const std::size_t refused = line.find(" refused ");
      line =
          line.substr(0, n) + ": n 0 uncertain 0" + line.substr(refused, line.find(';') - refused);
    }
    if (line.starts_with("  subscription ")) {
      ++kept.subscriptions;
      continue;
    }
    if (!line.starts_with(' ')) {
      const std::size_t id = line.find(" (id ");
      line.erase(id, line.find("): ") + 1 - id);
    }
    kept.answers += line + "\n";
  }
  return kept;
}

// A batch of three, by the producer that the store knows, with that number: what it was answered.
client::BatchAnswer SendNumbered(const TestDaemon& daemon, std::uint64_t number) {
  constexpr std::array<std::uint64_t, 2> kProducer = {0x7469646d61726b, 7};
  client::BatchAnswer told;
  client::TcpProducerOptions options;
  options.producer.resize(sizeof kProducer);
  std::memcpy(options.producer.data(), kProducer.data(), sizeof kProducer);
  options.on_answer = [&told](const client::BatchAnswer& answer) { told = answer; };
  const auto producer = daemon.Producer(options);
  const auto stream = producer->Open("numbered");
  EXPECT_TRUE(stream.ok()) << stream.status();
  if (!stream.ok()) return told;
  const std::vector<double> values(3, 0.5);
  EXPECT_TRUE(producer->SendNumbered(*stream, number, {}, std::as_bytes(std::span(values))).ok());
  EXPECT_TRUE(producer->Flush().ok());
  return told;
}

// New values for a stream of numbers, one of texts, and a new stream.
void TakesNewValues(TestDaemon& daemon) {
  client::Client& client = daemon.client();
  const std::uint64_t before = client.DescribeStream("numbered").count;
  // The last batch that was taken in is known; the next one is new.
  EXPECT_EQ(SendNumbered(daemon, before / 3).accepted, 3u);
  EXPECT_EQ(client.DescribeStream("numbered").count, before);
  EXPECT_EQ(SendNumbered(daemon, before / 3 + 1).accepted, 3u);
  EXPECT_EQ(client.DescribeStream("numbered").count, before + 3);
  EXPECT_EQ(daemon.Metric("tidemark_ingest_duplicates_total"), 1);

  const std::uint64_t floats = client.DescribeStream("kind 0").count;
  client::Pusher pusher = client.Push("kind 0");
  pusher.Write(std::vector<double>(1'000, 12.5));  // several windows
  EXPECT_EQ(pusher.Finish().accepted, 1'000u);
  EXPECT_EQ(client.Quantiles("kind 0", {0.5}).n, floats + 1'000);
  const std::uint64_t texts = client.DescribeStream("made again").count;
  client::Pusher items = client.Push("made again");
  if (client.DescribeStream("made again").config.type == client::ValueType::kString) {
    items.Write(std::vector<std::string>(100, "an item of today"));
  } else {
    items.Write(std::vector<double>(100, 1));
  }
  EXPECT_EQ(items.Finish().accepted, 100u);
  EXPECT_EQ(client.DescribeStream("made again").count, texts + 100);
  client::Pusher fresh = client.Push("of today");
  fresh.Write(std::vector<double>{1, 2, 3});
  EXPECT_EQ(fresh.Finish().accepted, 3u);
}

TEST(GoldenStore, OfEveryVersionStartsAnswersAndGoesOn) {
  const std::vector<fs::path> folders =
      testing::FoldersIn(TIDEMARK_SOURCE_FOLDER "/tests/server/durability/golden");
  ASSERT_GE(folders.size(), 4u);
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder);
    const std::string name = folder.filename().string();
    const std::string mode = name.substr(name.rfind('-') + 1);
    ASSERT_TRUE(mode == "log" || mode == "snapshot") << "its name ends with the mode";
    const TemporaryFolder data;
    fs::copy(folder, data / "store", fs::copy_options::recursive);
    // The windows that the folders were made with.
    const std::vector<std::string> flags = {"--data-dir",   data.path(), "--durability", mode,
                                            "--window-min", "16",        "--window-max", "256"};
    const Kept kept = KeptAnswers(folder);
    ASSERT_FALSE(kept.answers.empty());
    std::string after;
    {
      TestDaemon daemon(flags);
      testing::ExpectSameAnswers(Answers(daemon), kept.answers);
      EXPECT_EQ(daemon.Metric("tidemark_named_subscriptions"), kept.subscriptions);
      TakesNewValues(daemon);
      after = Answers(daemon);
      EXPECT_NE(after, kept.answers);
      daemon.Stop();
    }
    {
      TestDaemon again(flags);
      testing::ExpectSameAnswers(Answers(again), after);
      EXPECT_EQ(again.Metric("tidemark_named_subscriptions"), kept.subscriptions);
      // Every file is of today by now, or can still be read.
      EXPECT_EQ(SendNumbered(again, again.client().DescribeStream("numbered").count / 3).accepted,
                3u);
      testing::ExpectSameAnswers(Answers(again), after);
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tidemark::test
