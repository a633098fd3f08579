// What it costs to have values on the disk: the log beside raw sequential writing, and small
// definitions in the log, in a snapshot, and in SQLite where it is installed.
//
//   store_bench [FOLDER]     about 40 s, writes 512 MB at a time below FOLDER (default: the
//                            temporary folder), which should be on the disk that is asked about
//   store_bench --smoke      one small round: does it run, is every record read back
//
// In each round the log and raw O_DIRECT writing of 1 MiB at a time take turns on the same disk, so
// that the ratio is of one moment; absolute rates differ from machine to machine, and from minute
// to minute. Rates are of values' bytes, from the first Append until all are synced. Prints
// Markdown: least / median / greatest of the rounds. Exit status 1: a record was not read back.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/store/log_thread.h"
#include "server/store/snapshot_file.h"
#include "tests/bench/measuring.h"
#include "tests/bench/raw_writing.h"
#include "tests/support/temporary_folder.h"

#ifdef TIDEMARK_BENCH_SQLITE
#include <sqlite3.h>
#endif

namespace tidemark::store {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "store_bench: %s\n", what.c_str());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

struct LogRates {
  double write = 0;  // MB/s
  double read = 0;   // MB/s, from the page cache
  double syncs = 0;  // a second
};

LogRates LogRate(const std::string& below, std::uint64_t bytes, std::size_t record_bytes,
                 std::chrono::microseconds sync_interval) {
  const test::TemporaryFolder folder(below);
  const std::uint64_t records = bytes / record_bytes;
  const std::string values(record_bytes, 'v');
  Batch batch;
  batch.value_bytes = 4;
  batch.count = static_cast<std::uint32_t>(record_bytes / 4);
  batch.values = values;
  LogRates rates;
  const auto start = Clock::now();
  {
    LogThread thread(PosixFileSystem(), {.folder = folder.path(), .sync_interval = sync_interval},
                     {}, 1);
    for (std::uint64_t i = 0; i < records;) {
      batch.producer.sequence = i;
      const auto appended = thread.log().Append(batch, nullptr);
      if (appended.ok()) {
        ++i;
      } else if (thread.log().Stats().status.ok()) {  // as much is pending as may be
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      } else {
        Require(appended.status());
      }
    }
    Require(thread.Stop());
    const double seconds = Seconds(start);
    rates.write = static_cast<double>(records * record_bytes) / seconds * 1e-6;
    rates.syncs = static_cast<double>(thread.log().Stats().syncs) / seconds;
  }
  const auto read_start = Clock::now();
  std::uint64_t next = 0;
  const auto end =
      ReadLog(PosixFileSystem(), folder.path(), 0, [&](std::uint64_t, const LogEntry& entry) {
        const auto& read = std::get<Batch>(entry);
        if (read.producer.sequence != next++ || read.values != values) {
          Fail("a record was not read back");
        }
        return absl::OkStatus();
      });
  Require(end.status());
  if (next != records) Fail("records are missing");
  rates.read = static_cast<double>(records * record_bytes) / Seconds(read_start) * 1e-6;
  return rates;
}

// Small definitions, each durable before the next: a second.
double DefinitionsInLog(const std::string& below, int count, const std::string& definition) {
  const test::TemporaryFolder folder(below);
  LogWriter log(PosixFileSystem(),
                {.folder = folder.path(), .sync_interval = std::chrono::microseconds(0)}, {}, 1,
                nullptr);
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    const auto id = static_cast<std::uint64_t>(i);
    Require(log.Append(StreamCreated{id, definition}, nullptr).status());
    log.Step(Clock::now());
    if (log.Stats().durable_sequence != id + 1) Fail("a definition is not durable");
  }
  return count / Seconds(start);
}

// All of them at once.
double DefinitionsInSnapshot(const std::string& below, int count, const std::string& definition) {
  const test::TemporaryFolder folder(below);
  const auto start = Clock::now();
  auto writer = SnapshotWriter::Begin(PosixFileSystem(), folder.path(), 1, 0);
  Require(writer.status());
  for (int i = 0; i < count; ++i) Require(writer->Add(std::to_string(i), definition));
  Require(writer->Finish());
  return count / Seconds(start);
}

#ifdef TIDEMARK_BENCH_SQLITE
// Of `transaction` definitions each, with a write-ahead log that is synced at each commit.
double DefinitionsInSqlite(const std::string& below, int count, int transaction,
                           const std::string& definition) {
  const test::TemporaryFolder folder(below);
  sqlite3* db = nullptr;
  const auto run = [&](const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) Fail(sqlite3_errmsg(db));
  };
  if (sqlite3_open((folder.path() + "/db").c_str(), &db) != SQLITE_OK) Fail("sqlite3_open");
  run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE streams(id INTEGER PRIMARY "
      "KEY, definition BLOB)");
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO streams VALUES(?, ?)", -1, &insert, nullptr);
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (i % transaction == 0) run("BEGIN");
    sqlite3_bind_int(insert, 1, i);
    sqlite3_bind_blob(insert, 2, definition.data(), static_cast<int>(definition.size()), nullptr);
    if (sqlite3_step(insert) != SQLITE_DONE) Fail(sqlite3_errmsg(db));
    sqlite3_reset(insert);
    if ((i + 1) % transaction == 0 || i + 1 == count) run("COMMIT");
  }
  const double rate = count / Seconds(start);
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return rate;
}
#endif

struct LogCase {
  const char* name;
  std::size_t record_bytes;
  std::chrono::microseconds sync_interval;
  std::uint64_t bytes;  // of a round
  std::vector<double> rates, ratios, reads, syncs;
};

void PrintLog(const std::string& below, int rounds, std::uint64_t scale) {
  using std::chrono::microseconds;
  LogCase cases[] = {
      {"64 KB, sync every 5 ms", 64 << 10, microseconds(5000), scale, {}, {}, {}, {}},
      {"64 KB, sync after sync", 64 << 10, microseconds(0), scale, {}, {}, {}, {}},
      {"1 KB, sync every 5 ms", 1 << 10, microseconds(5000), scale / 2, {}, {}, {}, {}},
      {"1 KB, sync after sync", 1 << 10, microseconds(0), scale / 2, {}, {}, {}, {}},
  };
  std::vector<double> raw_rates;
  for (int round = 0; round < rounds; ++round) {
    for (LogCase& each : cases) {
      const double raw = 1e-6 * bench::RawWritingRate(below, scale);
      raw_rates.push_back(raw);
      const LogRates log = LogRate(below, each.bytes, each.record_bytes, each.sync_interval);
      each.rates.push_back(log.write);
      each.ratios.push_back(raw > 0 ? log.write / raw : 0);
      each.reads.push_back(log.read);
      each.syncs.push_back(log.syncs);
    }
  }
  std::printf("%s, %d rounds, %.0f MB a turn\n\n", bench::CpuModel().c_str(), rounds,
              static_cast<double>(scale) * 1e-6);
  std::printf("| | MB/s | of raw | syncs/s | read back, MB/s |\n|---|---|---|---|---|\n");
  std::printf("| raw O_DIRECT, 1 MiB | %s | 1 | | |\n",
              bench::Print(bench::SpreadOf(raw_rates), 0).c_str());
  for (const LogCase& each : cases) {
    std::printf("| log, records of %s | %s | %s | %s | %s |\n", each.name,
                bench::Print(bench::SpreadOf(each.rates), 0).c_str(),
                bench::Print(bench::SpreadOf(each.ratios), 2).c_str(),
                bench::Print(bench::SpreadOf(each.syncs), 0).c_str(),
                bench::Print(bench::SpreadOf(each.reads), 0).c_str());
  }
}

void PrintDefinitions(const std::string& below, int rounds, int single, int many) {
  const std::string definition(300, 'd');
  struct Row {
    const char* name;
    std::function<double()> rate;
    std::vector<double> rates;
  };
  std::vector<Row> rows;
  rows.push_back(
      {"log, each synced", [&] { return DefinitionsInLog(below, single, definition); }, {}});
#ifdef TIDEMARK_BENCH_SQLITE
  rows.push_back({"SQLite, a transaction each",
                  [&] { return DefinitionsInSqlite(below, single, 1, definition); },
                  {}});
#endif
  rows.push_back(
      {"snapshot of all", [&] { return DefinitionsInSnapshot(below, many, definition); }, {}});
#ifdef TIDEMARK_BENCH_SQLITE
  rows.push_back({"SQLite, one transaction for all",
                  [&] { return DefinitionsInSqlite(below, many, many, definition); },
                  {}});
#endif
  for (int round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.rates.push_back(row.rate());
  }
  std::printf("\n| definitions of 300 bytes | a second |\n|---|---|\n");
  for (const Row& row : rows) {
    std::printf("| %s | %s |\n", row.name, bench::Print(bench::SpreadOf(row.rates), 0).c_str());
  }
}

}  // namespace
}  // namespace tidemark::store

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
  const std::string below = argc > 1 && !smoke ? argv[1] : std::filesystem::temp_directory_path();
  tidemark::store::PrintLog(below, smoke ? 1 : 5, smoke ? 4 << 20 : 512 << 20);
  tidemark::store::PrintDefinitions(below, smoke ? 1 : 5, smoke ? 3 : 300, smoke ? 50 : 100'000);
  return 0;
}
