#include "client/tool/push_command.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/tool/arguments.h"
#include "client/tool/input.h"
#include "client/tool/interrupt.h"
#include "client/tool/json.h"
#include "client/tool/progress.h"
#include "client/tool/text.h"
#include "client/tool/text_values.h"

namespace tidemark::tool {
namespace {

using client::ValueType;
using Clock = std::chrono::steady_clock;

client::ValueType FindType(client::Client& client, const PushOptions& options) {
  if (options.type) return *options.type;
  try {
    return client.DescribeStream(options.stream).config.type;
  } catch (const client::Error& error) {
    if (error.code() != client::Code::kNotFound) throw;
  }
  // Creating it tells the daemon's default.
  client::StreamConfig config;
  config.payload = options.payload;
  return client.CreateStream(options.stream, config).config.type;
}

// One push in progress: what was counted, and what ended it early.
class Run {
 public:
  Run(client::AcknowledgedPusher* pusher, const std::optional<client::Error>* refusal,
      ByteSource* source, const PushOptions& options, ValueType type,
      const Environment& environment)
      : pusher_(pusher),
        refusal_(refusal),
        source_(source),
        options_(options),
        type_(type),
        environment_(environment),
        progress_(environment.err_terminal,
                  source->size() ? std::optional(*source->size() * options.repeat) : std::nullopt) {
  }

  void PushAll() {
    for (std::uint64_t i = 0; i < options_.repeat && problem_.empty(); ++i) {
      if (i > 0 && !source_->Rewind()) {
        problem_ = "cannot read " + source_->name() + " again for --repeat";
        break;
      }
      if (options_.raw) {
        PushRaw();
      } else {
        PushText();
      }
      if (source_->interrupted()) problem_ = "interrupted";
    }
    environment_.err << progress_.Clear() << std::flush;
  }

  const std::string& problem() const { return problem_; }
  std::uint64_t bad() const { return bad_; }
  const std::string& first_bad() const { return first_bad_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  void PushText() {
    switch (type_) {
      case ValueType::kFloat64:
        return PushTextOf<double>();
      case ValueType::kFloat32:
        return PushTextOf<float>();
      case ValueType::kInt64:
        return PushTextOf<std::int64_t>();
      case ValueType::kUint64:
        return PushTextOf<std::uint64_t>();
      case ValueType::kUint32:
        return PushTextOf<std::uint32_t>();
      case ValueType::kIpv4:
        return PushTextOf<client::Ipv4>();
      case ValueType::kIpv6:
        return PushTextOf<client::Ipv6>();
      case ValueType::kString:
        return PushTextOf<std::string>();
      case ValueType::kUnspecified:
        throw InputError("the daemon does not say which type stream \"" + options_.stream +
                         "\" has; give --type");
    }
  }

  template <typename T>
  void PushTextOf() {
    TextValues values(source_, type_, options_.column, LineReader::kBufferBytes,
                      options_.payload_column);
    std::vector<std::uint64_t> weights(WeightsAtOnce());
    std::vector<double> ys(YAtOnce());
    std::vector<T> batch(client::kBatchValues);  // strings in it keep their memory
    std::size_t filled = 0;
    std::size_t bytes = 0;
    const auto send = [&] {
      Send(std::span<const T>(batch.data(), filled), weights, ys);
      filled = 0;
      bytes = 0;
    };
    std::string_view text;
    while (Next(values, &text)) {
      bool good = !values.column_missing();
      if constexpr (std::is_same_v<T, std::string>) {
        good = good && client::IsUtf8(text);
        if (good) batch[filled].assign(text);
        bytes += text.size();
      } else {
        good = good && client::ParseText(text, &batch[filled]);
      }
      const bool good_value = good;
      if (!weights.empty()) {
        good = good && client::ParseText(values.payload(), &weights[filled]);
      } else if (!ys.empty()) {
        good = good && client::ParseText(values.payload(), &ys[filled]);
      }
      if (!good) {
        ++bad_;
        if (first_bad_.empty()) {
          first_bad_ = good_value ? values.PayloadProblem(options_.payload) : values.Problem(text);
        }
        if (options_.skip_bad) continue;
        problem_ = first_bad_;
        break;
      }
      if (++filled == batch.size() || bytes >= client::kBatchStringBytes) send();
    }
    if (filled > 0) send();
  }

  // What came before input that cannot be read is still sent, and counted in the report.
  bool Next(TextValues& values, std::string_view* text) {
    try {
      return values.Next(text);
    } catch (const InputError& error) {
      problem_ = error.what();
      return false;
    }
  }

  void PushRaw() {
    const std::size_t value_bytes = client::PackedBytes(type_);
    // Eight batches for each read.
    std::vector<char> buffer(8 * client::kBatchValues * value_bytes);
    std::size_t filled = 0;
    while (true) {
      const std::size_t got = source_->Read(buffer.data() + filled, buffer.size() - filled);
      filled += got;
      const std::size_t whole = filled / value_bytes * value_bytes;
      if (filled == buffer.size() || (got == 0 && whole > 0)) {
        pusher_->WritePacked(type_, std::as_bytes(std::span(buffer.data(), whole)));
        Count(whole / value_bytes);
        std::memmove(buffer.data(), buffer.data() + whole, filled - whole);
        filled -= whole;
      }
      if (got != 0) continue;
      if (filled > 0 && !source_->interrupted()) {
        problem_ = source_->name() + ": the last " + std::to_string(filled) +
                   " bytes are not a whole " + std::string(client::TypeName(type_));
      }
      return;
    }
  }

  std::size_t WeightsAtOnce() const {
    return options_.payload == client::PayloadType::kWeight ? client::kBatchValues : 0;
  }
  std::size_t YAtOnce() const {
    return options_.payload == client::PayloadType::kY ? client::kBatchValues : 0;
  }

  template <typename T>
  void Send(std::span<const T> batch, std::span<const std::uint64_t> weights,
            std::span<const double> ys) {
    client::Payloads payloads;
    if (!weights.empty()) payloads = weights.first(batch.size());
    if (!ys.empty()) payloads = ys.first(batch.size());
    if constexpr (std::is_same_v<T, std::string>) {
      pusher_->Write(batch, payloads);
    } else {
      pusher_->WritePacked(type_, std::as_bytes(batch), payloads);
    }
    Count(batch.size());
  }

  void Count(std::uint64_t values) {
    if (*refusal_) throw **refusal_;
    sent_ += values;
    const std::string line = progress_.Update(Clock::now() - start_, source_->bytes_read(), sent_);
    if (!line.empty()) environment_.err << line << std::flush;
  }

  client::AcknowledgedPusher* pusher_;
  const std::optional<client::Error>* refusal_;
  ByteSource* source_;
  const PushOptions& options_;
  ValueType type_;
  const Environment& environment_;
  Progress progress_;
  Clock::time_point start_ = Clock::now();
  std::uint64_t sent_ = 0;
  std::uint64_t bad_ = 0;
  std::string first_bad_;
  std::string problem_;
};

std::string Plural(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void Report(const PushOptions& options, ValueType type,
            const client::AcknowledgedPushSummary& summary, const Run& run, double seconds,
            std::ostream& out) {
  const double rate = seconds > 0 ? static_cast<double>(summary.accepted) / seconds : 0;
  if (options.json) {
    const Json json = {{"stream", options.stream},
                       {"type", client::TypeName(type)},
                       {"accepted", IntegerToJson(summary.accepted)},
                       {"refused", IntegerToJson(summary.refused)},
                       {"bad", IntegerToJson(run.bad())},
                       {"seconds", seconds},
                       {"values_per_second", rate}};
    out << Dump(json) << "\n";
    return;
  }
  out << Printable(options.stream) << ": " << Plural(summary.accepted, "value") << " taken in, "
      << ShowSeconds(seconds) << ", " << ShowRate(rate) << " values/s";
  if (summary.refused > 0)
    out << ", " << summary.refused << " refused (NaN, or not finite where values are summed)";
  if (run.bad() > 0) out << ", " << run.bad() << " skipped, the first: " << run.first_bad();
  out << "\n";
}

}  // namespace

int RunPush(const client::ClientOptions& to, const PushOptions& options,
            const Environment& environment) {
  if (options.raw && options.column) {
    throw UsageError("--raw and --column do not go together");
  }
  if (options.payload_column && !options.column) {
    throw UsageError("--weight-column and --y-column need --column for the values");
  }
  if (options.raw && options.type == ValueType::kString) {
    throw UsageError("strings have no packed form; leave --raw out");
  }
  Interrupt interrupt;
  ByteSource source(options.file, environment.input_fd, interrupt.fd());
  if (options.repeat > 1 && !source.size()) {
    throw UsageError("--repeat needs a file; " +
                     (options.file == "-" ? std::string("standard input") : options.file) +
                     " can be read only once");
  }
  client::Client client(to);
  const ValueType type = FindType(client, options);
  if (options.raw && client::PackedBytes(type) == 0) {
    throw UsageError("stream \"" + options.stream +
                     "\" holds strings, which have no packed form; leave --raw out");
  }
  client::AcknowledgedPushOptions pushing;
  pushing.retry_for = options.retry_for;
  std::optional<client::Error> refusal;  // the first batch that was refused ends the push
  pushing.on_acknowledgement = [&refusal](const client::Acknowledgement& answer) {
    if (answer.code != client::Code::kOk && !refusal) refusal.emplace(answer.code, answer.message);
  };
  client::AcknowledgedPusher pusher = client.PushAcknowledged(options.stream, pushing);
  // The first signal ends the input, and what was read is still sent.
  interrupt.SetAction([&pusher](int count) {
    if (count > 1) pusher.Cancel();
  });
  struct ClearAction {
    Interrupt& interrupt;
    ~ClearAction() { interrupt.SetAction({}); }
  } clear_action{interrupt};

  Run run(&pusher, &refusal, &source, options, type, environment);
  run.PushAll();
  const client::AcknowledgedPushSummary summary = pusher.Finish();
  if (refusal) throw *refusal;
  const double seconds = run.seconds();
  if (run.problem().empty()) {
    Report(options, type, summary, run, seconds, environment.out);
    return kDone;
  }
  if (options.json) Report(options, type, summary, run, seconds, environment.out);
  throw InputError(run.problem() + "; " + Plural(summary.accepted, "value") + " before it " +
                   (summary.accepted == 1 ? "was" : "were") + " taken in");
}

}  // namespace tidemark::tool
