#include "client/tool/command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>
#include <optional>

#include "client/client.h"
#include "client/tool/arguments.h"
#include "client/tool/gpu_info_command.h"
#include "client/tool/hierarchy_options.h"
#include "client/tool/json.h"
#include "client/tool/plot.h"
#include "client/tool/push_command.h"
#include "client/tool/store_command.h"
#include "client/tool/sum_ranges.h"
#include "client/tool/summary_commands.h"
#include "client/tool/text.h"
#include "client/tool/tls_options.h"
#include "client/tool/watch_arguments.h"
#include "client/tool/watch_command.h"

namespace tidemark::tool {
namespace {

using client::Client;
using client::Value;

// Everything that the command line can say. Numbers stay text until the command runs, so that their
// messages are ours.
struct Options {
  std::string server = "127.0.0.1:7070";
  TlsOptions tls;
  bool json = false;
  std::string stream;
  std::string type;
  std::string epsilon;
  std::string frequency_epsilon;
  std::string last;
  std::string window;
  std::string retry = "10s";
  std::string buckets;
  std::string bounds;
  std::string support;
  std::string repeat;
  std::string column, weight_column, y_column;
  std::string payload, form, tail_epsilon, sliding_epsilon;
  bool no_frequencies = false;
  std::optional<bool> sums;
  bool by_weight = false;
  bool hierarchical = false;
  bool software = false;
  HierarchyOptions hierarchy;
  StoreOptions store;
  std::string file = "-";
  std::string spread = "0.25,0.75", trim = "0";
  SumOptions sum;
  CompareOptions compare;
  WatchArguments watch;
  std::string subscription;
  std::vector<std::string> values;
  PushOptions push;
};

class Command {
 public:
  explicit Command(const Environment& environment) : environment_(environment) {}
  int Run(const std::vector<std::string>& arguments);

 private:
  void Define();
  CLI::App* Add(const char* name, const char* description, std::function<int()> run);
  CLI::App* AddWithStream(const char* name, const char* description, std::function<int()> run);
  CLI::App* AddWithName(const char* name, const char* description, std::function<int()> run);
  void AddScope(CLI::App* command);
  int Execute();

  client::ClientOptions To() const {
    client::ClientOptions to;
    to.server = options_.server;
    SetTls(options_.tls, to);
    return to;
  }
  client::Scope Scope() const;
  std::vector<Value> StreamValues(Client& client, const std::vector<std::string>& texts) {
    return ParseValues(client.DescribeStream(options_.stream).config.type, texts);
  }
  template <typename Answer>
  int Print(const Answer& answer) {
    environment_.out << (options_.json ? Dump(ToJson(answer)) + "\n" : ToText(answer));
    return kDone;
  }

  int Create();
  int Delete();
  int Export() {
    return RunExport(To(), options_.stream, options_.file, options_.json, environment_);
  }
  int Import() {
    return Print(Client(To()).ImportStream(options_.stream,
                                           ReadFiles(ShowAll(options_.values), environment_)));
  }
  int Merge() {
    return Print(Client(To()).MergeStreams(options_.stream, ShowAll(options_.values)));
  }
  int Rank();
  int Histogram();
  int Count();
  int Top();
  int Sum();
  int Spread();
  int Compare();
  int Push();
  int Watch();
  int Unsubscribe();
  int PrintDone(const char* what, const std::string& name);

  const Environment& environment_;
  CLI::App app_{"Quantiles and heavy hitters of streams, with proven error.", "tidemark"};
  Options options_;
  std::function<int()> run_;
};

CLI::App* Command::Add(const char* name, const char* description, std::function<int()> run) {
  CLI::App* command = app_.add_subcommand(name, description);
  command->fallthrough();  // --server and --json may follow the subcommand
  command->callback([this, run = std::move(run)] { run_ = run; });
  return command;
}

CLI::App* Command::AddWithStream(const char* name, const char* description,
                                 std::function<int()> run) {
  CLI::App* command = Add(name, description, std::move(run));
  command->add_option("STREAM", options_.stream, "Name of the stream")
      ->required()
      ->option_text(" ");
  return command;
}

CLI::App* Command::AddWithName(const char* name, const char* description,
                               std::function<int()> run) {
  CLI::App* command = Add(name, description, std::move(run));
  command->add_option("NAME", options_.subscription, "Its name")->required()->option_text(" ");
  return command;
}

void Command::AddScope(CLI::App* command) {
  auto* last = command->add_option("--last", options_.last, "Only the last N values");
  last->option_text("N");
  command->add_option("--window", options_.window, "Only the values of so much time, e.g. 5m")
      ->option_text("DURATION")
      ->excludes(last);
}

void Command::Define() {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "tidemark " TIDEMARK_VERSION);
  app_.add_option("--server", options_.server, "The daemon (default 127.0.0.1:7070)")
      ->option_text("HOST:PORT")
      ->envname("TIDEMARK_SERVER");
  AddTlsOptions(app_, options_.tls);
  app_.add_flag("--json", options_.json, "Print JSON");
  app_.footer("Exit status: 0 done, 1 refused by the daemon or not reachable, 2 usage.");

  CLI::App* push = AddWithStream("push", "Stream values into it: text, CSV or packed",
                                 [this] { return Push(); });
  push->add_option("FILE", options_.push.file, "The input; - (the default) is standard input")
      ->option_text(" ");
  push->add_option("--type", options_.type,
                   "Type of the values (default: the stream's, or the daemon's default)")
      ->option_text("T");
  push->add_option("--column", options_.column, "CSV: the column by number from 1 or by name")
      ->option_text("N");
  auto* weights = push->add_option("--weight-column", options_.weight_column,
                                   "CSV: the column of what each value counts for");
  weights->option_text("N");
  push->add_option("--y-column", options_.y_column, "CSV: the column of the y of pairs (x, y)")
      ->option_text("N")
      ->excludes(weights);
  push->add_option("--retry", options_.retry,
                   "Try a daemon that does not answer again for so long, each value counted once "
                   "(default 10s); none: not at all")
      ->option_text("DURATION");
  push->add_option("--repeat", options_.repeat, "Stream the file K times")->option_text("K");
  push->add_flag("--raw", options_.push.raw,
                 "The input is packed little-endian values, ipv6 in network order");
  push->add_flag("--skip-bad", options_.push.skip_bad,
                 "Count and skip what is no value (default: stop there)");

  CLI::App* create = AddWithStream("create", "Create a stream", [this] { return Create(); });
  create->add_option("--type", options_.type, std::string(client::TypeNames()))->option_text("T");
  create
      ->add_option("--epsilon", options_.epsilon,
                   "Largest error, as a share of n: of ranks, or of counts for strings and ipv6")
      ->option_text("E");
  create
      ->add_option("--frequency-epsilon", options_.frequency_epsilon,
                   "Largest count error, as a share of n")
      ->option_text("E");

  create
      ->add_option("--form", options_.form,
                   "How the order is kept: histogram, compact, or tail (finer towards the largest)")
      ->option_text("F")
      ->check(CLI::IsMember({"histogram", "compact", "tail"}));
  create
      ->add_option("--tail-epsilon", options_.tail_epsilon,
                   "Form tail: largest rank error, as a share of the distance from the largest")
      ->option_text("E");
  create->add_flag("--no-frequencies", options_.no_frequencies,
                   "Keep no counts of items; with --form compact, windows need no sort");
  // Not to the optional itself: CLI11 takes it for a count, and sets it where no flag is given.
  create->add_flag_function(
      "--sums,!--no-sums", [this](std::int64_t given) { options_.sums = given > 0; },
      "Add the values up, too: sum, and spread with tight means");
  create->add_option("--last", options_.last, "Answer over up to the last N values, too")
      ->option_text("N");
  create->add_option("--window", options_.window, "Answer over up to so much time, too, e.g. 1h")
      ->option_text("DURATION");
  create
      ->add_option("--sliding-epsilon", options_.sliding_epsilon,
                   "Largest error of those answers, as a share of the values that they cover")
      ->option_text("E");
  AddHierarchyOptions(create, options_.hierarchy);
  create->add_option("--payload", options_.payload, "What travels beside each value: weight or y")
      ->option_text("P")
      ->check(CLI::IsMember({"weight", "y"}));

  Add("streams", "List the streams", [this] { return Print(Client(To()).ListStreams()); });
  AddWithStream("describe", "Everything about one stream",
                [this] { return Print(Client(To()).DescribeStream(options_.stream)); });
  AddWithStream("delete", "Delete a stream and all that it holds", [this] { return Delete(); });

  CLI::App* export_stream = AddWithStream(
      "export", "Write all that a stream's summaries hold to a file", [this] { return Export(); });
  export_stream->add_option("FILE", options_.file, "The file; - (the default) is standard output")
      ->option_text(" ");
  CLI::App* import_stream = AddWithStream("import", "A new stream from exported ones: their union",
                                          [this] { return Import(); });
  import_stream->add_option("FILE", options_.values, "Exported streams; - is standard input")
      ->required()
      ->option_text("...");
  CLI::App* merge = AddWithStream("merge", "A new stream: the union of streams of the daemon",
                                  [this] { return Merge(); });
  merge->add_option("FROM", options_.values, "The streams; they go on unchanged")
      ->required()
      ->option_text("...");

  CLI::App* quantile = AddWithStream("quantile", "Values at given shares of the order", [this] {
    return Print(
        Client(To()).Quantiles(options_.stream, ToNumbers("PHI", options_.values), Scope()));
  });
  quantile->add_option("PHI", options_.values, "Shares from 0 to 1")
      ->required()
      ->option_text("...");
  AddScope(quantile);

  CLI::App* rank = AddWithStream("rank", "How many values are at or below given ones",
                                 [this] { return Rank(); });
  rank->add_option("VALUE", options_.values, "Values of the stream's type")
      ->required()
      ->option_text("...");
  AddScope(rank);

  CLI::App* histogram =
      AddWithStream("histogram", "The distribution in buckets", [this] { return Histogram(); });
  auto* buckets = histogram->add_option("--buckets", options_.buckets, "Buckets of equal count");
  buckets->option_text("B");
  histogram->add_option("--bounds", options_.bounds, "Buckets between ascending values")
      ->option_text("V,V,...")
      ->excludes(buckets);
  AddScope(histogram);

  CLI::App* top =
      AddWithStream("top", "Items that make up at least a share of it", [this] { return Top(); });
  top->add_option("--support", options_.support, "The share, above 0 and at most 1")
      ->required()
      ->option_text("S");
  AddScope(top);
  top->add_flag("--by-weight", options_.by_weight, "Add up weights instead of counting");
  top->add_flag("--hierarchical", options_.hierarchical,
                "Prefixes of addresses or strings, without what heavy ones below them have");

  CLI::App* count = AddWithStream("count", "How often items came", [this] { return Count(); });
  count->add_option("ITEM", options_.values, "Items of the stream's type")
      ->required()
      ->option_text("...");
  AddScope(count);
  count->add_flag("--by-weight", options_.by_weight, "Add up weights instead of counting");

  CLI::App* sum = AddWithStream("sum", "Counts, sums and averages of y by x, or of the values",
                                [this] { return Sum(); });
  sum->add_option("--at-most", options_.sum.at_most, "Pairs with x <= V")->option_text("V...");
  sum->add_option("--between", options_.sum.between, "Pairs with LOW <= x <= HIGH")
      ->option_text("LOW,HIGH...");
  sum->add_option("--phi", options_.sum.phi, "Pairs with x up to the quantile PHI")
      ->option_text("PHI...");
  sum->add_option("--between-phi", options_.sum.between_phi,
                  "Pairs with x above one quantile, up to another")
      ->option_text("LOW,HIGH...");

  CLI::App* compare = AddWithStream("compare", "How far apart two streams, or two windows, are",
                                    [this] { return Compare(); });
  compare->add_option("OTHER", options_.compare.other, "The other stream; default: the same one")
      ->option_text(" ");
  AddScope(compare);
  compare
      ->add_option("--threshold", options_.compare.threshold,
                   "Say whether the distance exceeds it (default 0.05)")
      ->option_text("D");

  CLI::App* spread =
      AddWithStream("spread", "How far values lie apart, their mean, how many differ",
                    [this] { return Spread(); });
  spread->add_option("--between-phi", options_.spread, "The two quantiles (default 0.25,0.75)")
      ->option_text("LOW,HIGH");
  spread->add_option("--trim", options_.trim, "Share to leave out of the mean at either end")
      ->option_text("SHARE");
  AddScope(spread);

  CLI::App* watch = Add("watch", "A continuous query", [this] { return Watch(); });
  watch->add_option("STREAM", options_.stream, "Name of the stream")->option_text(" ");
  watch
      ->add_option("--subscription", options_.subscription,
                   "Watch what is kept under this name, instead of a stream")
      ->option_text("NAME");
  AddWatchOptions(watch, options_.watch);
  AddScope(watch);
  CLI::App* subscribe = AddWithName("subscribe", "Keep a continuous query under a name", [this] {
    return Print(Client(To()).Subscribe(
        options_.subscription,
        ToWatchQuery("subscribe", options_.stream, options_.watch, Scope())));
  });
  subscribe->add_option("STREAM", options_.stream, "Name of the stream")
      ->required()
      ->option_text(" ");
  AddWatchOptions(subscribe, options_.watch);
  AddScope(subscribe);
  AddWithName("unsubscribe", "Forget a continuous query", [this] { return Unsubscribe(); });
  Add("subscriptions", "List the continuous queries that are kept",
      [this] { return Print(Client(To()).ListSubscriptions()); });

  CLI::App* gpu_info =
      Add("gpu-info", "Graphics devices of this machine, and which sorters can run; asks no daemon",
          [this] { return RunGpuInfo(options_.software, options_.json, environment_); });
  gpu_info->add_flag("--software", options_.software, "Measure a software rasteriser, too");

  AddStoreCommands(app_, options_.store, [this](StoreCommand command) {
    run_ = [this, command] { return command(options_.store, options_.json, environment_); };
  });
  Add("info", "Version, sorter in use and why, graphics, limits",
      [this] { return Print(Client(To()).Info()); });
}

client::Scope Command::Scope() const {
  client::Scope scope;
  if (!options_.last.empty()) scope.last_values = ToCount("--last", options_.last, UINT64_MAX);
  if (!options_.window.empty()) scope.last_time = ToDuration("--window", options_.window);
  return scope;
}

int Command::Create() {
  client::StreamConfig config;
  if (!options_.type.empty()) config.type = ToType(options_.type);
  // The daemon takes 0 for "the default", and says what else is wrong; a 0 written here is no wish
  // for the default.
  const auto epsilon = [](const char* option, const std::string& text) {
    if (text.empty()) return 0.0;
    const double number = ToNumber(option, text);
    if (!(number > 0)) throw UsageError(std::string(option) + ": must be above 0");
    return number;
  };
  const double main_epsilon = epsilon("--epsilon", options_.epsilon);
  config.frequency_epsilon = epsilon("--frequency-epsilon", options_.frequency_epsilon);
  if (config.HasRanks()) {
    config.quantile_epsilon = main_epsilon;
  } else if (main_epsilon != 0) {
    if (config.frequency_epsilon != 0) {
      throw UsageError("--epsilon and --frequency-epsilon are the same for " +
                       std::string(config.type == client::ValueType::kString ? "strings" : "ipv6") +
                       ": give one");
    }
    config.frequency_epsilon = main_epsilon;
  }
  if (options_.form == "histogram") config.quantile_form = client::QuantileForm::kHistogram;
  if (options_.form == "compact") config.quantile_form = client::QuantileForm::kCompact;
  if (options_.form == "tail") config.quantile_form = client::QuantileForm::kTail;
  config.tail_epsilon = epsilon("--tail-epsilon", options_.tail_epsilon);
  config.no_frequencies = options_.no_frequencies;
  config.sums = options_.sums;
  if (!options_.last.empty()) {
    config.sliding.max_values = ToCount("--last", options_.last, UINT64_MAX);
  }
  if (!options_.window.empty()) {
    config.sliding.max_time = ToDuration("--window", options_.window);
  }
  config.sliding.epsilon = epsilon("--sliding-epsilon", options_.sliding_epsilon);
  if (config.sliding.epsilon != 0 && !config.sliding.any()) {
    throw UsageError("--sliding-epsilon needs --last or --window");
  }
  SetHierarchy(options_.hierarchy, config);
  if (options_.payload == "weight") config.payload = client::PayloadType::kWeight;
  if (options_.payload == "y") config.payload = client::PayloadType::kY;
  const client::StreamInfo made = Client(To()).CreateStream(options_.stream, config);
  if (options_.type.empty() && main_epsilon != 0 && made.config.epsilon() != main_epsilon) {
    const std::string made_type(client::TypeName(made.config.type));
    throw client::Error(client::Code::kFailedPrecondition,
                        "\"" + options_.stream + "\" is of type " + made_type +
                            ", the daemon's default, of epsilon " +
                            ShowNumber(made.config.epsilon()) + ": --epsilon needs --type " +
                            made_type + " there. The stream exists now; delete it first");
  }
  return Print(made);
}

int Command::Top() {
  const double support = ToNumber("--support", options_.support);
  if (options_.hierarchical && options_.by_weight) throw UsageError(kWeighsByItself);
  Client client(To());
  if (!options_.hierarchical) {
    return Print(client.HeavyHitters(options_.stream, support, 0, Scope(), options_.by_weight));
  }
  return Print(client.HierarchicalHeavyHitters(options_.stream, support, Scope()));
}

int Command::Sum() {
  Client client(To());
  const client::ValueType type = client.DescribeStream(options_.stream).config.type;
  return Print(client.Sums(options_.stream, SumRanges(type, options_.sum)));
}

// A scope is that of the second stream: "how it is now" against "how it was", unless both names are
// given and both have a scope.
int Command::Compare() {
  const std::string& other =
      options_.compare.other.empty() ? options_.stream : options_.compare.other;
  const client::Scope scope = Scope();
  if (other == options_.stream && scope.whole()) {
    throw UsageError("compare: give another stream, or --last or --window for this one");
  }
  const double threshold = ToNumber("--threshold", options_.compare.threshold);
  return Print(Client(To()).Compare(options_.stream, {}, other, scope, threshold));
}

int Command::Spread() {
  const auto shares = ToNumbers("--between-phi", SplitList(ShowMinus(options_.spread)));
  if (shares.size() != 2) {
    throw UsageError("--between-phi: \"" + ShowMinus(options_.spread) + "\" is no LOW,HIGH");
  }
  return Print(Client(To()).Spread(
      options_.stream, {shares[0], shares[1], ToNumber("--trim", options_.trim), Scope()}));
}

int Command::Delete() {
  Client(To()).DeleteStream(options_.stream);
  return PrintDone("deleted", options_.stream);
}

int Command::PrintDone(const char* what, const std::string& name) {
  if (options_.json) {
    environment_.out << Dump({{what, name}}) << "\n";
  } else {
    environment_.out << what << " " << Printable(name) << "\n";
  }
  return kDone;
}

int Command::Rank() {
  const client::Scope scope = Scope();
  Client client(To());
  return Print(
      client.Ranks(options_.stream, StreamValues(client, ShowAll(options_.values)), scope));
}

int Command::Count() {
  const client::Scope scope = Scope();
  Client client(To());
  return Print(client.Counts(options_.stream, StreamValues(client, ShowAll(options_.values)), scope,
                             options_.by_weight));
}

int Command::Histogram() {
  const client::Scope scope = Scope();
  if (options_.buckets.empty() == options_.bounds.empty()) {
    throw UsageError("histogram: give --buckets B or --bounds V,V,...");
  }
  Client client(To());
  client::HistogramAnswer answer;
  if (!options_.bounds.empty()) {
    answer = client.Histogram(options_.stream,
                              StreamValues(client, SplitList(ShowMinus(options_.bounds))), scope);
    if (!options_.json) {
      environment_.out << Plot(answer, Bars::kCount, environment_.out_terminal);
      return kDone;
    }
  } else {
    const std::uint64_t buckets = ToCount("--buckets", options_.buckets, UINT32_MAX);
    answer = client.EquiDepthHistogram(options_.stream, static_cast<std::uint32_t>(buckets), scope);
  }
  if (options_.json) {
    environment_.out << Dump(ToJson(answer)) << "\n";
    return kDone;
  }
  // The first bucket begins at the smallest value, which the answer leaves out; its bar needs it.
  if (!answer.buckets.empty() && !answer.buckets.front().low) {
    const auto smallest = client.Quantiles(options_.stream, {0}, scope);
    if (!smallest.answers.empty()) answer.buckets.front().low = smallest.answers.front().value;
  }
  environment_.out << Plot(answer, Bars::kDensity, environment_.out_terminal);
  return kDone;
}

int Command::Push() {
  PushOptions& push = options_.push;
  push.stream = options_.stream;
  push.json = options_.json;
  if (!options_.type.empty()) push.type = ToType(options_.type);
  if (!options_.column.empty()) push.column = options_.column;
  if (!options_.weight_column.empty()) {
    push.payload = client::PayloadType::kWeight;
    push.payload_column = options_.weight_column;
  } else if (!options_.y_column.empty()) {
    push.payload = client::PayloadType::kY;
    push.payload_column = options_.y_column;
  }
  if (options_.retry != "none") {
    push.retry_for =
        std::chrono::ceil<std::chrono::milliseconds>(ToDuration("--retry", options_.retry));
  }
  if (!options_.repeat.empty()) push.repeat = ToCount("--repeat", options_.repeat, UINT32_MAX);
  return RunPush(To(), push, environment_);
}

int Command::Watch() {
  WatchCommandOptions watch;
  watch.json = options_.json;
  watch.subscription = options_.subscription;
  watch.query = AskedByWatch(options_.stream, watch.subscription, options_.watch, Scope());
  return RunWatch(To(), watch, environment_);
}

int Command::Unsubscribe() {
  Client(To()).Unsubscribe(options_.subscription);
  return PrintDone("deleted", options_.subscription);
}

int Command::Execute() {
  try {
    const int status = run_();
    environment_.out.flush();
    if (!environment_.out) {
      environment_.err << "tidemark: cannot write the output\n";
      return kRefused;
    }
    return status;
  } catch (const UsageError& error) {
    environment_.err << "tidemark: " << error.what() << "\n";
    return kUsage;
  } catch (const client::Error& error) {
    environment_.err << "tidemark: " << Printable(error.what()) << " ("
                     << client::CodeName(error.code()) << ")\n";
    return kRefused;
  } catch (const std::exception& error) {
    environment_.err << "tidemark: " << error.what() << "\n";
    return kRefused;
  }
}

int Command::Run(const std::vector<std::string>& arguments) {
  Define();
  std::vector<std::string> reversed = HideMinus(arguments);
  std::reverse(reversed.begin(), reversed.end());  // CLI11 takes them from the back
  try {
    app_.parse(std::move(reversed));
  } catch (const CLI::Success& success) {  // --help, --version
    app_.exit(success, environment_.out, environment_.err);
    return kDone;
  } catch (const CLI::ParseError& error) {
    // CLI11 says only that a subcommand is missing.
    const std::vector<std::string> left = app_.remaining();
    const bool unknown = app_.get_subcommands().empty() && !left.empty() && left[0][0] != '-';
    const std::string what =
        unknown ? "unknown command \"" + left[0] + "\"" : ShowMinus(error.what());
    environment_.err << "tidemark: " << what
                     << "\nSee tidemark --help, or tidemark COMMAND --help.\n";
    return kUsage;
  }
  return Execute();
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments, const Environment& environment) {
  return Command(environment).Run(arguments);
}

}  // namespace tidemark::tool
