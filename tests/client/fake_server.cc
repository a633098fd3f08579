#include "tests/client/fake_server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "client/convert.h"
#include "tidemark/v1/info.grpc.pb.h"
#include "tidemark/v1/ingest.grpc.pb.h"
#include "tidemark/v1/query.grpc.pb.h"
#include "tidemark/v1/streams.grpc.pb.h"

namespace tidemark::client {
namespace {

using grpc::ServerContext;
using grpc::Status;
using grpc::StatusCode;

struct FakeStream {
  v1::StreamConfig config;
  std::vector<Value> values;
  std::uint64_t refused = 0;
};

bool Less(const Value& a, const Value& b) { return a.kind < b.kind; }

template <typename T>
T Load(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::vector<Value> Unpack(ValueType type, const std::string& bytes) {
  std::vector<Value> out;
  for (std::size_t at = 0; at < bytes.size(); at += PackedBytes(type)) {
    switch (type) {
      case ValueType::kFloat64:
        out.push_back({Load<double>(bytes, at)});
        break;
      case ValueType::kFloat32:
        out.push_back({Load<float>(bytes, at)});
        break;
      case ValueType::kInt64:
        out.push_back({Load<std::int64_t>(bytes, at)});
        break;
      case ValueType::kUint64:
        out.push_back({Load<std::uint64_t>(bytes, at)});
        break;
      case ValueType::kUint32:
        out.push_back({Load<std::uint32_t>(bytes, at)});
        break;
      case ValueType::kIpv4:
        out.push_back({Ipv4{Load<std::uint32_t>(bytes, at)}});
        break;
      case ValueType::kIpv6:
        out.push_back({Load<Ipv6>(bytes, at)});
        break;
      default:
        return out;
    }
  }
  return out;
}

bool IsNan(const Value& value) {
  if (const auto* d = std::get_if<double>(&value.kind)) return std::isnan(*d);
  if (const auto* f = std::get_if<float>(&value.kind)) return std::isnan(*f);
  return false;
}

}  // namespace

struct FakeServer::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, FakeStream> streams;
  std::uint64_t batches = 0;
  std::uint64_t largest_batch = 0;
  std::uint64_t refuse_number = 0;
  Status refusal;
  std::uint64_t hold = 0;
  std::uint64_t end_after = 0;
  std::uint64_t lose = 0;
  std::uint64_t unavailable_for = 0;
  struct Taken {
    std::uint64_t accepted;
    std::uint64_t refused;
  };
  std::map<std::pair<std::string, std::string>, std::map<std::uint64_t, Taken>> taken;
  std::optional<std::uint64_t> end_watches_after;
  std::uint64_t open_watches = 0;
  bool stall = false;
  bool stopping = false;

  // Takes one batch in; REQUIRES: mutex held.
  Status Take(const v1::Batch& batch, std::uint64_t* accepted, std::uint64_t* refused) {
    ++batches;
    if (batches == refuse_number) return refusal;
    const auto type = static_cast<ValueType>(batch.type());
    std::vector<Value> values;
    if (batch.has_string()) {
      for (const auto& s : batch.string().values()) values.push_back({s});
    } else {
      values = Unpack(type, batch.packed());
    }
    largest_batch = std::max<std::uint64_t>(largest_batch, values.size());
    const auto [at, created] = streams.try_emplace(batch.stream());
    if (created) at->second.config.set_type(batch.type());
    if (at->second.config.type() != batch.type()) {
      return Status(StatusCode::FAILED_PRECONDITION,
                    "stream \"" + batch.stream() + "\" is " +
                        std::string(TypeName(static_cast<ValueType>(at->second.config.type()))));
    }
    for (Value& value : values) {
      if (IsNan(value)) {
        ++*refused;
        ++at->second.refused;
      } else {
        at->second.values.push_back(std::move(value));
        ++*accepted;
      }
    }
    return Status::OK;
  }

  // The same of a batch that may have a number; REQUIRES: mutex held. What introduces a producer
  // does not count as a batch.
  Status TakeOnce(const v1::Batch& batch, std::uint64_t* accepted, std::uint64_t* refused,
                  bool* duplicate) {
    if (batch.number() == 0) return Take(batch, accepted, refused);
    auto& numbers = taken[{batch.stream(), batch.producer()}];
    if (const auto found = numbers.find(batch.number()); found != numbers.end()) {
      *accepted = found->second.accepted;
      *refused = found->second.refused;
      *duplicate = true;
      return Status::OK;
    }
    if (numbers.empty() && batch.number() != 1) {
      return Status(StatusCode::FAILED_PRECONDITION, "the producer is not known");
    }
    const std::uint64_t before = batches;
    const Status status = Take(batch, accepted, refused);
    if (batch.number() == 1) batches = before;
    if (status.ok()) numbers[batch.number()] = {*accepted, *refused};
    return status;
  }

  // REQUIRES: mutex held.
  Status Find(const std::string& name, const FakeStream** out) const {
    const auto at = streams.find(name);
    if (at == streams.end()) {
      return Status(StatusCode::NOT_FOUND, "stream \"" + name + "\" does not exist");
    }
    *out = &at->second;
    return Status::OK;
  }

  template <typename Request, typename Response>
  Status Begin(ServerContext* context, const Request& request, Response* response,
               std::vector<Value>* sorted) {
    std::unique_lock lock(mutex);
    while (stall && !stopping && !context->IsCancelled()) {
      changed.wait_for(lock, std::chrono::milliseconds(5));
    }
    const FakeStream* stream = nullptr;
    if (Status status = Find(request.stream(), &stream); !status.ok()) return status;
    if (request.has_scope()) {
      return Status(StatusCode::FAILED_PRECONDITION,
                    "stream \"" + request.stream() + "\" was created without sliding windows");
    }
    *sorted = stream->values;
    std::sort(sorted->begin(), sorted->end(), Less);
    response->set_stream(request.stream());
    response->set_n(sorted->size());
    response->set_epsilon(0.001);
    return Status::OK;
  }

  Status Quantiles(ServerContext* context, const v1::QuantilesRequest& request,
                   v1::QuantilesResponse* response) {
    std::vector<Value> sorted;
    if (Status s = Begin(context, request, response, &sorted); !s.ok()) return s;
    for (const double phi : request.phi()) {
      if (!(phi >= 0 && phi <= 1)) {
        return Status(StatusCode::INVALID_ARGUMENT, "phi is not in [0, 1]");
      }
      if (sorted.empty()) return Status(StatusCode::FAILED_PRECONDITION, "the stream is empty");
      const auto rank = std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(std::ceil(phi * static_cast<double>(sorted.size()))));
      auto* answer = response->add_answers();
      answer->set_phi(phi);
      ToProto(sorted[rank - 1], answer->mutable_value());
      answer->set_rank_low(rank);
      answer->set_rank_high(rank);
    }
    return Status::OK;
  }

  Status HeavyHitters(ServerContext* context, const v1::HeavyHittersRequest& request,
                      v1::HeavyHittersResponse* response) {
    std::vector<Value> sorted;
    if (Status s = Begin(context, request, response, &sorted); !s.ok()) return s;
    response->set_support(request.support());
    std::vector<std::pair<std::uint64_t, Value>> runs;
    for (const Value& value : sorted) {
      if (runs.empty() || runs.back().second != value) runs.push_back({0, value});
      ++runs.back().first;
    }
    std::stable_sort(runs.begin(), runs.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [count, value] : runs) {
      if (static_cast<double>(count) < request.support() * static_cast<double>(sorted.size())) {
        break;
      }
      auto* item = response->add_items();
      ToProto(value, item->mutable_value());
      item->set_count_low(count);
      item->set_count_high(count);
    }
    return Status::OK;
  }
};

namespace {

using State = FakeServer::State;

v1::Stream Describe(const std::string& name, const FakeStream& stream) {
  v1::Stream out;
  out.set_name(name);
  *out.mutable_config() = stream.config;
  out.set_count(stream.values.size());
  out.set_refused(stream.refused);
  out.set_window_capacity(256);
  out.set_window_fill(stream.values.size());
  out.set_exact(true);
  return out;
}

class FakeStreams final : public v1::StreamService::Service {
 public:
  explicit FakeStreams(State* state) : state_(state) {}
  Status CreateStream(ServerContext*, const v1::CreateStreamRequest* request,
                      v1::CreateStreamResponse* response) override {
    if (request->name().empty()) return Status(StatusCode::INVALID_ARGUMENT, "the name is empty");
    v1::StreamConfig config = request->config();
    if (config.type() == v1::VALUE_TYPE_UNSPECIFIED) config.set_type(v1::VALUE_TYPE_FLOAT64);
    if (config.quantile_epsilon() == 0) config.set_quantile_epsilon(0.001);
    if (config.frequency_epsilon() == 0) config.set_frequency_epsilon(0.0001);
    const std::lock_guard lock(state_->mutex);
    const auto [at, created] = state_->streams.try_emplace(request->name());
    if (created) {
      at->second.config = config;
    } else if (at->second.config.SerializeAsString() != config.SerializeAsString()) {
      return Status(StatusCode::ALREADY_EXISTS,
                    "stream \"" + request->name() + "\" exists with other settings");
    }
    *response->mutable_stream() = Describe(at->first, at->second);
    return Status::OK;
  }
  Status ListStreams(ServerContext*, const v1::ListStreamsRequest* request,
                     v1::ListStreamsResponse* response) override {
    // Pages of two, so that the client has to turn them.
    const std::lock_guard lock(state_->mutex);
    for (const auto& [name, stream] : state_->streams) {
      if (name <= request->page_token() || !name.starts_with(request->prefix())) continue;
      if (response->streams_size() == 2) {
        response->set_next_page_token(response->streams(1).name());
        break;
      }
      *response->add_streams() = Describe(name, stream);
    }
    return Status::OK;
  }
  Status DescribeStream(ServerContext*, const v1::DescribeStreamRequest* request,
                        v1::DescribeStreamResponse* response) override {
    const std::lock_guard lock(state_->mutex);
    const FakeStream* stream = nullptr;
    if (Status s = state_->Find(request->name(), &stream); !s.ok()) return s;
    *response->mutable_stream() = Describe(request->name(), *stream);
    return Status::OK;
  }
  Status DeleteStream(ServerContext*, const v1::DeleteStreamRequest* request,
                      v1::DeleteStreamResponse*) override {
    const std::lock_guard lock(state_->mutex);
    const FakeStream* stream = nullptr;
    if (Status s = state_->Find(request->name(), &stream); !s.ok()) return s;
    state_->streams.erase(request->name());
    return Status::OK;
  }

 private:
  State* state_;
};

class FakeIngest final : public v1::IngestService::Service {
 public:
  explicit FakeIngest(State* state) : state_(state) {}
  Status Push(ServerContext*, grpc::ServerReader<v1::PushRequest>* reader,
              v1::PushResponse* response) override {
    v1::PushRequest request;
    while (reader->Read(&request)) {
      const std::lock_guard lock(state_->mutex);
      std::uint64_t accepted = 0, refused = 0;
      if (Status s = state_->Take(request.batch(), &accepted, &refused); !s.ok()) return s;
      response->set_batches(response->batches() + 1);
      response->set_accepted(response->accepted() + accepted);
      response->set_refused(response->refused() + refused);
    }
    return Status::OK;
  }
  Status PushAcknowledged(ServerContext* context,
                          grpc::ServerReaderWriter<v1::PushAcknowledgedResponse,
                                                   v1::PushAcknowledgedRequest>* io) override {
    v1::PushAcknowledgedRequest request;
    std::vector<v1::PushAcknowledgedResponse> waiting;
    while (io->Read(&request)) {
      std::unique_lock lock(state_->mutex);
      v1::PushAcknowledgedResponse response;
      response.set_batch_id(request.batch_id());
      std::uint64_t accepted = 0, refused = 0;
      bool duplicate = false;
      Status s;
      if (request.batch_id() != 0 && request.batch_id() == state_->unavailable_for) {
        state_->unavailable_for = 0;
        s = Status(StatusCode::UNAVAILABLE, "not now");
      } else {
        s = state_->TakeOnce(request.batch(), &accepted, &refused, &duplicate);
      }
      if (request.batch_id() != 0 && request.batch_id() == state_->lose) {
        state_->lose = 0;
        return Status(StatusCode::UNAVAILABLE, "the fake loses an acknowledgement");
      }
      response.set_duplicate(duplicate);
      response.set_accepted(accepted);
      response.set_refused(refused);
      response.set_code(s.error_code());
      response.set_message(s.error_message());
      waiting.push_back(response);
      if (waiting.size() < state_->hold) continue;
      const bool ends = request.batch_id() != 0 && request.batch_id() == state_->end_after;
      lock.unlock();
      for (const auto& r : waiting) io->Write(r);
      waiting.clear();
      if (ends) {
        return Status(grpc::StatusCode::UNAVAILABLE, "the fake ends it");
      }
    }
    for (const auto& r : waiting) io->Write(r);
    return context->IsCancelled() ? Status::CANCELLED : Status::OK;
  }

 private:
  State* state_;
};

class FakeQuery final : public v1::QueryService::Service {
 public:
  explicit FakeQuery(State* state) : state_(state) {}
  Status Quantiles(ServerContext* context, const v1::QuantilesRequest* request,
                   v1::QuantilesResponse* response) override {
    return state_->Quantiles(context, *request, response);
  }
  Status HeavyHitters(ServerContext* context, const v1::HeavyHittersRequest* request,
                      v1::HeavyHittersResponse* response) override {
    return state_->HeavyHitters(context, *request, response);
  }
  Status Ranks(ServerContext* context, const v1::RanksRequest* request,
               v1::RanksResponse* response) override {
    std::vector<Value> sorted;
    if (Status s = state_->Begin(context, *request, response, &sorted); !s.ok()) return s;
    for (const auto& v : request->values()) {
      const auto rank = static_cast<std::uint64_t>(
          std::upper_bound(sorted.begin(), sorted.end(), FromProto(v), Less) - sorted.begin());
      auto* answer = response->add_answers();
      *answer->mutable_value() = v;
      answer->set_rank_low(rank);
      answer->set_rank_high(rank);
    }
    return Status::OK;
  }
  Status Counts(ServerContext* context, const v1::CountsRequest* request,
                v1::CountsResponse* response) override {
    std::vector<Value> sorted;
    if (Status s = state_->Begin(context, *request, response, &sorted); !s.ok()) return s;
    for (const auto& v : request->items()) {
      const auto count =
          static_cast<std::uint64_t>(std::count(sorted.begin(), sorted.end(), FromProto(v)));
      auto* item = response->add_items();
      *item->mutable_value() = v;
      item->set_count_low(count);
      item->set_count_high(count);
    }
    return Status::OK;
  }
  Status Histogram(ServerContext* context, const v1::HistogramRequest* request,
                   v1::HistogramResponse* response) override {
    std::vector<Value> sorted;
    if (Status s = state_->Begin(context, *request, response, &sorted); !s.ok()) return s;
    std::vector<Value> highs;
    if (request->has_bounds()) {
      for (const auto& v : request->bounds().values()) highs.push_back(FromProto(v));
    } else {
      for (std::uint32_t b = 1; b <= request->equi_depth(); ++b) {
        highs.push_back(sorted[sorted.size() * b / request->equi_depth() - 1]);
      }
    }
    std::uint64_t below = 0;
    for (std::size_t b = 0; b < highs.size() + (request->has_bounds() ? 1 : 0); ++b) {
      auto* bucket = response->add_buckets();
      if (b > 0) ToProto(highs[b - 1], bucket->mutable_low());
      std::uint64_t upto = sorted.size();
      if (b < highs.size()) {
        ToProto(highs[b], bucket->mutable_high());
        upto = static_cast<std::uint64_t>(
            std::upper_bound(sorted.begin(), sorted.end(), highs[b], Less) - sorted.begin());
      }
      bucket->set_count_low(upto - below);
      bucket->set_count_high(upto - below);
      below = upto;
    }
    return Status::OK;
  }
  Status Watch(ServerContext* context, const v1::WatchRequest* request,
               grpc::ServerWriter<v1::WatchResponse>* writer) override {
    const auto interval = std::chrono::seconds(request->interval().seconds()) +
                          std::chrono::nanoseconds(request->interval().nanos());
    struct Open {
      State* state;
      explicit Open(State* s) : state(s) { Add(1); }
      ~Open() { Add(-1); }
      void Add(int by) {
        const std::lock_guard lock(state->mutex);
        state->open_watches += static_cast<std::uint64_t>(by);
        state->changed.notify_all();
      }
    } open(state_);
    for (std::uint64_t sent = 0;; ++sent) {
      v1::WatchResponse response;
      const Status status =
          request->has_quantiles()
              ? state_->Quantiles(context, request->quantiles(), response.mutable_quantiles())
              : state_->HeavyHitters(context, request->heavy_hitters(),
                                     response.mutable_heavy_hitters());
      if (!status.ok()) return status;
      std::unique_lock lock(state_->mutex);
      if (state_->end_watches_after && sent == *state_->end_watches_after) {
        return Status(StatusCode::UNAVAILABLE, "shutting down");
      }
      lock.unlock();
      response.set_skipped(sent);
      response.set_time_us(1'700'000'000'000'000 + static_cast<std::int64_t>(sent));
      if (!writer->Write(response)) return Status::CANCELLED;
      lock.lock();
      const auto until = std::chrono::steady_clock::now() + interval;
      while (std::chrono::steady_clock::now() < until && !state_->stopping &&
             !context->IsCancelled()) {
        state_->changed.wait_for(lock, std::chrono::milliseconds(2));
      }
      if (state_->stopping || context->IsCancelled()) return Status::CANCELLED;
    }
  }

 private:
  State* state_;
};

class FakeInfo final : public v1::InfoService::Service {
 public:
  Status GetInfo(ServerContext*, const v1::GetInfoRequest*,
                 v1::GetInfoResponse* response) override {
    response->set_version("9.8.7");
    response->mutable_sorter()->set_requested("auto");
    response->mutable_sorter()->set_active("cpu");
    response->mutable_sorter()->set_reason("no graphics context");
    response->mutable_sorter()->mutable_gl()->set_error("no display");
    auto* m = response->mutable_sorter()->add_measurements();
    m->set_key_bits(64);
    m->set_window(262144);
    m->set_sorter("cpu");
    m->set_algorithm("radix");
    m->set_keys_per_second(125e6);
    m->set_chosen(true);
    v1::SorterInfo* sorter = response->mutable_sorter();
    sorter->set_cached(true);
    sorter->set_measured_at_us(1'795'346'431'000'000);
    auto* observed = sorter->add_observed();
    observed->set_sorter("gl-compute");
    observed->set_key_bits(32);
    observed->set_window(65536);
    observed->set_keys_per_second(3e9);
    observed->set_requests(120);
    const auto add_routes = [&](const char* name, const char* reason, std::uint64_t requests) {
      auto* routes = sorter->add_routes();
      routes->set_sorter(name);
      routes->set_reason(reason);
      routes->set_requests(requests);
    };
    add_routes("gl-compute", "faster", 116);
    add_routes("gl-compute", "probe", 4);
    add_routes("cpu", "busy", 31);
    auto* endpoint = response->add_endpoints();
    endpoint->set_name("http");
    endpoint->set_address("127.0.0.1:7072");
    response->mutable_limits()->set_max_streams(100'000);
    response->set_streams(3);
    response->set_values(std::uint64_t{1} << 60);
    response->set_uptime_us(90'061'000'000);
    return Status::OK;
  }
};

}  // namespace

struct FakeServer::Services {
  explicit Services(State* state) : streams(state), ingest(state), query(state) {}
  FakeStreams streams;
  FakeIngest ingest;
  FakeQuery query;
  FakeInfo info;
  std::unique_ptr<grpc::Server> server;
};

FakeServer::FakeServer()
    : state_(std::make_unique<State>()), services_(std::make_unique<Services>(state_.get())) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&services_->streams);
  builder.RegisterService(&services_->ingest);
  builder.RegisterService(&services_->query);
  builder.RegisterService(&services_->info);
  services_->server = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  services_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
  services_->server->Wait();
}

std::vector<Value> FakeServer::Values(const std::string& stream) const {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->streams.find(stream);
  return at == state_->streams.end() ? std::vector<Value>() : at->second.values;
}
std::uint64_t FakeServer::batches() const {
  const std::lock_guard lock(state_->mutex);
  return state_->batches;
}
std::uint64_t FakeServer::largest_batch() const {
  const std::lock_guard lock(state_->mutex);
  return state_->largest_batch;
}
void FakeServer::RefuseBatch(std::uint64_t number, int code, const std::string& message) {
  const std::lock_guard lock(state_->mutex);
  state_->refuse_number = number;
  state_->refusal = Status(static_cast<StatusCode>(code), message);
}
void FakeServer::Set(std::uint64_t State::*what, std::uint64_t to) {
  const std::lock_guard lock(state_->mutex);
  state_.get()->*what = to;
}
void FakeServer::EndPushesAfter(std::uint64_t batches) { Set(&State::end_after, batches); }
void FakeServer::LoseAcknowledgementOf(std::uint64_t batch_id) { Set(&State::lose, batch_id); }
void FakeServer::BeUnavailableFor(std::uint64_t batch_id) {
  Set(&State::unavailable_for, batch_id);
}
void FakeServer::HoldAcknowledgements(std::uint64_t count) { Set(&State::hold, count); }
void FakeServer::EndWatchesAfter(std::uint64_t answers) {
  const std::lock_guard lock(state_->mutex);
  state_->end_watches_after = answers;
}
std::uint64_t FakeServer::open_watches() const {
  const std::lock_guard lock(state_->mutex);
  return state_->open_watches;
}
void FakeServer::StallQueries() {
  const std::lock_guard lock(state_->mutex);
  state_->stall = true;
}

}  // namespace tidemark::client
